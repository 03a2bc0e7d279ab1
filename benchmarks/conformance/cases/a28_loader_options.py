"""A28: loader options that are illegal without workers."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import torch
from torch.utils.data import DataLoader, TensorDataset

from amp_core.data import loader
from benchmarks.conformance.case import BROKEN, Case, Offers, Result, Subject, described, verdict

Loader: TypeAlias = Iterable[Sequence[torch.Tensor]]
DATA = TensorDataset(torch.arange(8.0))


def by_ours(workers: int) -> Loader:
    """Make a loader with amp_core."""
    return loader(
        DATA,
        batch_size=2,
        device=torch.device("cpu"),
        workers=workers,
        prefetch_factor=4,
        persistent_workers=True,
    )


def by_torch(workers: int) -> Loader:
    """Make torch's loader with the same options."""
    return DataLoader(DATA, batch_size=2, num_workers=workers, prefetch_factor=4, persistent_workers=True)


OFFERS: Offers[Callable[[int], Loader]] = Offers(
    {"amp_core": by_ours, "by_hand": by_torch, "broken": by_torch}, missing="takes loaders that are made by torch"
)


def judge(subject: Subject) -> Result:
    """Make a loader with and without workers from the same options, and load all data."""
    make = OFFERS.of(subject)
    loaded = {}
    for workers in (0, 1):
        try:
            loaded[workers] = sum(len(batch[0]) for batch in make(workers))
        except ValueError as error:
            return verdict(False, f"with {workers} workers: {described(error)}")
    counts = ", ".join(f"{count} with {workers} workers" for workers, count in loaded.items())
    return verdict(set(loaded.values()) == {len(DATA)}, f"samples loaded: {counts}")


CASE = Case(
    hazard="A28",
    question="Do the same loader options work with and without workers?",
    conforming="prefetching and persistence asked for with 0 workers load all data",
    references=("torch's DataLoader", "measured"),
    judge=judge,
    broken=BROKEN,
)
