"""An endless, resumable stream of batches on the device, and windows of batches."""

import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Self, TypeAlias

import torch
from torch.utils.data import DataLoader, DistributedSampler

from amp_core.data.order import EpochOrder, epoch_seed
from amp_core.data.transfer import SideStream, pins_memory, to_device
from amp_core.randomness import random_state, restore_random_state
from amp_core.step import Batch

NO_BATCH = "the loader has no batch: pass data that fill one, and a loader that can be iterated again every epoch"

Placed: TypeAlias = tuple[int, int, Batch]  # epoch, how many of its batches this one completes, the batch


class Stream:
    """An endless iterator of batches on the device, an epoch after the other, that resumes at exactly the next batch.

    `epoch` and `batch` say how many batches of which epoch the consumer has got, whatever was prefetched; `wait_s` is
    how many seconds the host has waited for the loader. An accelerator's next batch is copied while one is in use.

    What `loader` made resumes by index, loading nothing twice. Any other iterable of batches resumes by loading
    and dropping the batches before, which takes as long as they took; torch's generators that order it are seeded by
    (`seed`, epoch). Random numbers that samples draw in workers repeat after a resume only if seeded by the sample's
    index.

    Raises:
        ValueError: an epoch has no batch.
    """

    def __init__(self, loader: Iterable[Batch], device: torch.device | str, *, seed: int = 0) -> None:
        device = torch.device(device)
        self.epoch = 0
        self.batch = 0
        self.wait_s = 0.0
        self._loader = loader
        self._device = device
        self._seed = seed
        self._copies = SideStream(device) if pins_memory(device.type) else None
        self._to_device = to_device if self._copies is None else self._copies.to_device
        if _length(loader) == 0:
            raise ValueError(NO_BATCH)
        self._loaded = (0, 0)
        self._ahead: Placed | None = None
        self._batches: Iterator[Batch] | None = None  # no generator of this class: in a cycle, workers would outlive it

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Batch:
        epoch, batch, tensors = placed = self._ahead or self._load()
        if self._copies is not None:
            self._ahead = placed  # so that it is not lost if the next one cannot be loaded
            self._copies.hand_over(tensors)
            self._ahead = self._load()
        self.epoch, self.batch = epoch, batch
        return tensors

    def state_dict(self) -> dict[str, int]:
        """Return the position and what it depends on, as plain integers."""
        return {"epoch": self.epoch, "batch": self.batch, **_depends_on(self._loader, self._seed)}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Go to a position; the next batch is the one that would have come next there.

        Raises:
            ValueError: the batches there came in another order than they do here.
        """
        ours = _depends_on(self._loader, self._seed)
        for kind in ("seed", "stream_seed"):  # what `loader` made has the one, all else the other
            if kind in state and kind not in ours:
                raise ValueError("the state is of a stream over another kind of loader: resume with the same loader")
        for name, here in ours.items():
            there = state.get(name, here)
            if there != here:
                raise ValueError(
                    f"the state is of a stream with {name}={there!r}, here it is {here!r}:"
                    " resume with the same data and loader, or start without the state"
                )
        self.epoch, self.batch = self._loaded = (state["epoch"], state["batch"])
        self._ahead = self._batches = None

    def _load(self) -> Placed:
        """Return the next batch on the device, of the next epoch if this one is over; count the wait for it."""
        begun = time.perf_counter()
        epoch, done = self._loaded
        if self._batches is None:
            self._batches = self._after(epoch, done)
        batch = next(self._batches, None)
        self.wait_s += time.perf_counter() - begun
        if batch is not None:
            self._loaded = (epoch, done + 1)
            return epoch, done + 1, self._to_device(batch, self._device)
        if done == 0:
            raise ValueError(NO_BATCH)
        self._loaded, self._batches = (epoch + 1, 0), None
        return self._load()

    def _after(self, epoch: int, done: int) -> Iterator[Batch]:
        if own := _own(self._loader):
            order, batch_size = own
            order.set_epoch(epoch, done * batch_size)
            return iter(self._loader)
        if not done:
            return self._seeded(epoch)
        before = random_state()
        batches = self._seeded(epoch)
        dropped = sum(1 for _ in islice(batches, done))
        restore_random_state(before)  # samples that draw random numbers drew them before the state was saved
        if dropped < done:
            raise ValueError(f"the state is at batch {done}, the loader has only {dropped}: resume with the same data")
        return batches

    def _seeded(self, epoch: int) -> Iterator[Batch]:
        """Return an iterator over a loader whose torch generators are seeded while it draws its order."""
        seed, sampler = epoch_seed(self._seed, epoch), getattr(self._loader, "sampler", None)
        if isinstance(sampler, DistributedSampler):
            sampler.set_epoch(epoch)
        for holder in (self._loader, sampler):
            if isinstance(own := getattr(holder, "generator", None), torch.Generator):
                own.manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            batches = iter(self._loader)
            first = list(islice(batches, 1))  # a sampler draws its order when it is first asked
        return chain(first, batches)


def windows(batches: Iterable[Batch], size: int) -> Iterator[tuple[Batch, ...]]:
    """Return the batches in windows of `size`; the last one has what is left.

    Raises:
        ValueError: the size is below 1.
    """
    if size < 1:
        raise ValueError(f"size must be at least 1 batch a window, found {size!r}")
    iterator = iter(batches)
    return iter(lambda: tuple(islice(iterator, size)), ())


def _own(batches: Iterable[Batch]) -> tuple[EpochOrder, int] | None:
    """Return the order and the batch size of what `loader` made; None for any other iterable."""
    if not isinstance(batches, DataLoader) or batches.batch_size is None or not isinstance(batches.sampler, EpochOrder):
        return None
    return batches.sampler, batches.batch_size


def _depends_on(batches: Iterable[Batch], stream_seed: int) -> dict[str, int]:
    """Return the numbers that decide which batch has which position, as far as they are known."""
    length, own = _length(batches), _own(batches)
    known = {} if length is None else {"batches": length}
    if own is None:
        return {**known, "stream_seed": stream_seed}
    order, batch_size = own
    seed = -1 if order.seed is None else order.seed  # -1: in the order of the data
    return {**known, "samples": order.samples, "batch_size": batch_size, "world": order.world, "seed": seed}


def _length(sized: object) -> int | None:
    try:
        return len(sized)  # type: ignore[arg-type]  # whether it has a length is the question
    except TypeError:
        return None
