"""The order in which a dataset is seen: a function of a seed and the epoch, which can begin anywhere."""

import hashlib
from collections.abc import Iterator
from itertools import chain

import torch
from torch import Tensor
from torch.utils.data import Sampler

CHUNK = 65536  # indices that are Python numbers at a time


class EpochOrder(Sampler[int]):
    """The order in which one of `world` ranks sees the `samples` of a dataset in an epoch.

    With a seed it is a permutation that (seed, epoch) alone decide, else the order of the data. If `even`, all ranks
    have equally many samples, so that none waits in vain for the gradients of another; else every sample has one rank.
    `generator` is where a DataLoader draws its workers' seed: (seed, epoch) decide that, too.
    """

    def __init__(self, samples: int, *, seed: int | None, rank: int, world: int, even: bool) -> None:
        self.samples = samples
        self.seed = seed
        self.world = world
        self.generator = torch.Generator()
        self._share = slice(rank, samples // world * world if even else samples, world)
        self.set_epoch(0)

    def set_epoch(self, epoch: int, start: int = 0) -> None:
        """Choose the epoch of the next iterations; the first of them begins at its sample `start`."""
        self.epoch = epoch
        self._start = start
        self.generator.manual_seed(epoch_seed(self.seed or 0, epoch))

    def __len__(self) -> int:
        return len(range(self.samples)[self._share])

    def __iter__(self) -> Iterator[int]:
        start, self._start = self._start, 0
        order = self._order()[self._share][start:]
        parts = (order[at : at + CHUNK] for at in range(0, len(order), CHUNK))
        return chain.from_iterable(part.tolist() for part in parts)

    def _order(self) -> Tensor:
        if self.seed is None:
            return torch.arange(self.samples)
        generator = torch.Generator().manual_seed(epoch_seed(self.seed, self.epoch))
        return torch.randperm(self.samples, generator=generator)


def epoch_seed(seed: int, epoch: int) -> int:
    """Return 32 bits for an epoch: a hash, as by adding them epoch 1 of seed 0 would be epoch 0 of seed 1."""
    return int.from_bytes(hashlib.blake2b(f"{seed} {epoch}".encode(), digest_size=4).digest())
