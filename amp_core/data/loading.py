"""Loaders whose options are legal together and whose order is repeatable."""

from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from amp_core.data.order import EpochOrder
from amp_core.data.transfer import pins_memory
from amp_core.step import Batch


def loader_options(
    *, device_type: str, workers: int = 0, prefetch_factor: int = 2, persistent_workers: bool = True
) -> dict[str, Any]:
    """Return DataLoader options that are legal together: no prefetching without workers, no pinning without a GPU.

    Raises:
        ValueError: a negative number of workers, or nothing to prefetch.
    """
    _refuse_below(0, workers=workers)
    _refuse_below(1, prefetch_factor=prefetch_factor)
    options: dict[str, Any] = {"num_workers": workers, "pin_memory": pins_memory(device_type)}
    if workers:
        options |= {"prefetch_factor": prefetch_factor, "persistent_workers": persistent_workers}
    return options


def loader(
    dataset: Dataset[Batch],
    *,
    batch_size: int,
    device: torch.device | str,
    workers: int = 0,
    seed: int | None = None,
    drop_last: bool | None = None,
    prefetch_factor: int = 2,
    persistent_workers: bool = True,
    rank: int = 0,
    world: int = 1,
) -> DataLoader[Batch]:
    """Return a loader of a rank's share of a dataset; every combination of options is legal.

    With a seed it shuffles, every rank has as many samples, and a last batch that is not full is dropped unless
    `drop_last` says otherwise. Without one every sample is loaded once: right for evaluation. Iterated by hand, it
    repeats an epoch until `loader.sampler.set_epoch` is called, as with torch's DistributedSampler; a Stream calls it.

    A worker that is not persistent is seeded by (seed, epoch); a persistent one goes on with its random numbers.

    Hold the data in tensors, as a TensorDataset does: with workers, a Python list of samples is copied into each of
    them bit by bit, since reading an object writes its reference count.

    Raises:
        ValueError: no batch would come of it, the dataset has no length, or a number is out of range.
    """
    options = loader_options(
        device_type=torch.device(device).type,
        workers=workers,
        prefetch_factor=prefetch_factor,
        persistent_workers=persistent_workers,
    )
    _refuse_below(1, batch_size=batch_size, world=world)
    if rank not in range(world):
        raise ValueError(f"rank must be at least 0 and below world={world}, found {rank!r}")
    drop = seed is not None if drop_last is None else drop_last
    order = EpochOrder(_size(dataset), seed=seed, rank=rank, world=world, even=drop or seed is not None)
    if len(order) < (batch_size if drop else 1):
        share = "" if world == 1 else f", {len(order)} of them on rank {rank} of {world}"
        raise ValueError(
            f"the dataset has {order.samples} samples{share}, too few for a batch of {batch_size}: lower batch_size"
        )
    return DataLoader(
        dataset, batch_size=batch_size, sampler=order, drop_last=drop, generator=order.generator, **options
    )


def _size(dataset: Dataset[Batch]) -> int:
    try:
        return len(dataset)  # type: ignore[arg-type]  # torch's Dataset declares no length
    except TypeError as error:
        raise ValueError(
            f"{type(dataset).__name__} has no length: pass one that has, or give Stream a DataLoader of your own"
        ) from error


def _refuse_below(least: int, **numbers: int) -> None:
    for name, value in numbers.items():
        if not isinstance(value, int) or value < least:
            raise ValueError(f"{name} must be at least {least}, found {value!r}")
