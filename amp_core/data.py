"""Synthetic tokens that can be learnt up to a known ceiling, and how they reach the device."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, TensorDataset

from amp_core.step import Batch

BALANCING_ROUNDS = 200  # of alternating row and column sums; enough for a sharpness up to about 5


@dataclass(frozen=True)
class MarkovChain:
    """A chain over tokens; `transitions` is float64 (vocabulary, vocabulary), each row the odds of the next token."""

    transitions: Tensor

    @property
    def chance(self) -> float:
        """Return the best accuracy without looking at the tokens before: that of the most frequent token."""
        return float(self._frequencies().max())

    @property
    def ceiling(self) -> float:
        """Return the best accuracy that any model can have in the long run."""
        return float((self._frequencies() * self.transitions.amax(1)).sum())

    def sample(self, sequences: int, length: int, generator: torch.Generator) -> TensorDataset:
        """Draw a dataset of int64 tokens, (sequences, length), held in one tensor."""
        tokens = torch.multinomial(self._frequencies(), sequences, replacement=True, generator=generator)
        columns = [tokens]
        for _ in range(length - 1):
            tokens = torch.multinomial(self.transitions[tokens], 1, generator=generator).squeeze(1)
            columns.append(tokens)
        return TensorDataset(torch.stack(columns, dim=1))

    def _frequencies(self) -> Tensor:
        """Return how often each token occurs in the long run, float64 (vocabulary,)."""
        far_ahead: Tensor = torch.linalg.matrix_power(self.transitions, 1024)
        return far_ahead[0]


def draw_chain(vocab_size: int, *, sharpness: float, generator: torch.Generator) -> MarkovChain:
    """Draw a chain: the sharper, the surer is the next token; at sharpness 0 nothing can be learnt.

    All tokens are about equally frequent, so that a guess is right once in `vocab_size` times.

    Raises:
        ValueError: fewer than two tokens, or a negative sharpness.
    """
    if vocab_size < 2:
        raise ValueError(f"vocab_size must be at least 2 for a chain, found {vocab_size!r}")
    if not sharpness >= 0.0:
        raise ValueError(f"sharpness must be at least 0, found {sharpness!r}")
    odds = (sharpness * torch.randn(vocab_size, vocab_size, dtype=torch.float64, generator=generator)).exp()
    for _ in range(BALANCING_ROUNDS):
        odds = odds / odds.sum(0)
        odds = odds / odds.sum(1, keepdim=True)
    return MarkovChain(odds)


def pins_memory(device_type: str) -> bool:
    """Say whether batches for a device type are pinned, and so may be copied without blocking."""
    return device_type in ("cuda", "xpu")


def loader_options(
    *, device_type: str, workers: int = 0, prefetch_factor: int = 2, persistent_workers: bool = True
) -> dict[str, Any]:
    """Return DataLoader options that are legal together: no prefetching without workers, no pinning without a GPU.

    Raises:
        ValueError: a negative number of workers, or nothing to prefetch.
    """
    if workers < 0:
        raise ValueError(f"workers must be at least 0, found {workers!r}")
    if prefetch_factor < 1:
        raise ValueError(f"prefetch_factor must be at least 1, found {prefetch_factor!r}")
    options: dict[str, Any] = {"num_workers": workers, "pin_memory": pins_memory(device_type)}
    if workers:
        options |= {"prefetch_factor": prefetch_factor, "persistent_workers": persistent_workers}
    return options


def loader(
    dataset: Dataset[Batch],
    *,
    batch_size: int,
    device: torch.device,
    workers: int = 0,
    shuffle_with: torch.Generator | None = None,
) -> DataLoader[Batch]:
    """Return a loader; with a generator it shuffles and drops a last batch that is not full.

    Raises:
        ValueError: the loader would yield no batch.
    """
    shuffle = shuffle_with is not None
    size = len(dataset)  # type: ignore[arg-type]  # torch's Dataset declares no length; a tensor-backed one has it
    if size < (batch_size if shuffle else 1):
        raise ValueError(f"the dataset has {size} sequences, too few for a batch of {batch_size}: lower batch_size")
    return DataLoader(
        dataset,
        batch_size=batch_size,
        shuffle=shuffle,
        drop_last=shuffle,
        generator=shuffle_with or torch.Generator().manual_seed(0),  # without one it would draw from the global one
        **loader_options(device_type=device.type, workers=workers),
    )


def cycle(batches: DataLoader[Batch]) -> Iterator[Batch]:
    """Yield batches for ever, an epoch after the other; each epoch is shuffled anew if the loader shuffles."""
    while True:
        yield from batches


def to_device(batch: Batch, device: torch.device, *, non_blocking: bool) -> Batch:
    """Copy a batch to the device; `non_blocking` is safe and useful only for a pinned batch."""
    return tuple(tensor.to(device, non_blocking=non_blocking) for tensor in batch)
