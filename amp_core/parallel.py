"""Training over several processes: how they start, what wraps the model, and what a step must know of other ranks."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from typing import Any

import torch
from torch import Tensor, distributed, nn

from amp_core.device import pick

GLOO_SETTLES_S = 0.2
"""Gloo's threads outlive the group; one that still holds a tensor when the interpreter ends aborts it (torch 2.13)."""


@dataclass(frozen=True)
class Rank:
    """This process among `size` that train together: its index, its index on this machine, and its device."""

    index: int
    local: int
    size: int
    device: torch.device

    @property
    def first(self) -> bool:
        """Say whether this is the rank that writes files and logs."""
        return self.index == 0


@contextmanager
def world(device: str | None = None, *, timeout_s: float = 600.0) -> Iterator[Rank]:
    """Join the processes that torchrun started, for a block; without torchrun this is a world of one.

    `device` is a type, such as "cuda" (default: the accelerator, else the CPU); each rank takes the device of its
    local index. A rank that waits longer than `timeout_s` for the others fails. An error leaves at once,
    without waiting for anybody, and says which rank it was: torchrun then ends the others.

    Raises:
        ValueError: the device is not there or names an index, or torchrun's environment is incomplete.
    """
    rank = _rank(device)
    if not distributed.is_torchelastic_launched():
        yield rank
        return
    if rank.device.type != "cpu":
        torch.accelerator.set_device_index(rank.device)
    distributed.init_process_group(
        _backend(rank.device),
        timeout=timedelta(seconds=timeout_s),
        device_id=None if rank.device.type == "cpu" else rank.device,
    )
    try:
        yield rank
    except BaseException as error:
        error.add_note(f"on rank {rank.index} of {rank.size}")
        raise
    distributed.barrier()  # nobody takes the group down while another still uses it
    distributed.destroy_process_group()
    time.sleep(GLOO_SETTLES_S)


def wrap(model: nn.Module, how: str, *, blocks: tuple[type[nn.Module], ...] = (), **options: Any) -> nn.Module:  # noqa: ANN401  torch's
    """Return the model made ready for training over the ranks, all of which start from rank 0's weights.

    "ddp" keeps a replica on every rank. "fsdp2" shards parameters, gradients and optimizer states in place; each
    module of a type in `blocks` is gathered on its own, the rest at once. Make the optimizer afterwards. In a
    world of one the model comes back as it is. `options` go to DistributedDataParallel, such as
    `find_unused_parameters=True`, or to `fully_shard`, such as `reshard_after_forward=False`.

    Raises:
        ValueError: `how` is neither, or no module is of a type in `blocks`.
    """
    if how not in _WRAPPERS:
        raise ValueError(f"unknown way to wrap a model {how!r}: expected one of {', '.join(_WRAPPERS)}")
    found = [module for module in model.modules() if isinstance(module, blocks)]
    if blocks and not found:
        names = ", ".join(sorted(block.__name__ for block in blocks))
        raise ValueError(f"the model has no module of type {names}: name the type of its repeated blocks")
    return _WRAPPERS[how](model, found, options) if distributed.is_initialized() else model


def without_sync(model: nn.Module) -> AbstractContextManager[object]:
    """Return a context in which neither forward nor backward exchanges gradients; of a plain module, nothing.

    It must be around both: DistributedDataParallel decides in the forward pass what the backward pass exchanges.
    """
    no_sync = getattr(model, "no_sync", None)
    if no_sync is not None:
        context: AbstractContextManager[object] = no_sync()
        return context
    set_sync = getattr(model, "set_requires_gradient_sync", None)  # FSDP2's
    return nullcontext() if set_sync is None else _turned_off(set_sync)


def total_over_ranks(model: nn.Module, total: Tensor) -> tuple[Tensor, int]:
    """Return a total summed over the ranks that average the model's gradients, and their number."""
    if not _is_distributed(model):
        return total, 1
    group = getattr(model, "process_group", None)  # DistributedDataParallel's; FSDP2 is taken to span the world
    return _reduced(total, group=group), distributed.get_world_size(group)


def mean_over_ranks(value: Tensor) -> Tensor:
    """Return the mean over all ranks of a float tensor, such as a step's loss for the log; every rank must call it."""
    return _reduced(value.detach()) / distributed.get_world_size() if distributed.is_initialized() else value


def on_any_rank(bad: Tensor) -> Tensor:
    """Return the largest of all ranks' marks of a bad step (1 or 0), for a LossScaler's `across`.

    Ranks that hold different parameters and exchange no gradients skip together by it; every rank must call it.
    """
    return _reduced(bad, op=distributed.ReduceOp.MAX) if distributed.is_initialized() else bad


def is_first() -> bool:
    """Say whether this process is the one that writes files: rank 0, or the only one."""
    return not distributed.is_initialized() or distributed.get_rank() == 0


def from_every_rank(value: Any) -> list[Any]:  # noqa: ANN401  anything that can be pickled
    """Return every rank's value, in the ranks' order; every rank must call it, at the same time."""
    if not distributed.is_initialized():
        return [value]
    values: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(values, value)
    return values


def of_this_rank(values: Sequence[Any]) -> Any:  # noqa: ANN401  the same
    """Return this rank's entry of what `from_every_rank` returned; None if there were more or fewer ranks then."""
    index, size = (distributed.get_rank(), distributed.get_world_size()) if distributed.is_initialized() else (0, 1)
    return values[index] if len(values) == size else None


def is_sharded(value: object) -> bool:
    """Say whether a tensor is one rank's part of a whole, a DTensor; its import is spared."""
    return hasattr(value, "full_tensor")


def _reduced(value: Tensor, **how: Any) -> Tensor:  # noqa: ANN401  torch's
    reduced = value.clone()
    distributed.all_reduce(reduced, **how)
    return reduced


def _rank(device: str | None) -> Rank:
    kind = pick(device)
    if not distributed.is_torchelastic_launched():
        return Rank(0, 0, 1, kind)
    try:
        index, local, size = (int(os.environ[name]) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"))
    except (KeyError, ValueError) as error:
        raise ValueError(f"torchrun's environment is incomplete: {error}: start the program with torchrun") from error
    if kind.index is not None and size > 1:
        raise ValueError(f"expected a device type for {size} ranks, found {device!r}: pass {kind.type!r}")
    return Rank(index, local, size, kind if kind.type == "cpu" else pick(f"{kind.type}:{local}"))


def _backend(device: torch.device) -> str:
    """Return a backend for the device's tensors, and for those on the CPU beside it."""
    if device.type == "cpu":
        return "gloo"
    return f"cpu:gloo,{device.type}:{distributed.get_default_backend_for_device(device)}"


def _ddp(model: nn.Module, _blocks: list[nn.Module], options: dict[str, Any]) -> nn.Module:
    device = next(model.parameters()).device
    ids = None if device.type == "cpu" else [device]
    return nn.parallel.DistributedDataParallel(model, **{"device_ids": ids, "gradient_as_bucket_view": True, **options})


def _fsdp2(model: nn.Module, blocks: list[nn.Module], options: dict[str, Any]) -> nn.Module:
    from torch.distributed.device_mesh import init_device_mesh  # here, since importing it takes half a second
    from torch.distributed.fsdp import fully_shard

    with torch.no_grad():
        for tensor in chain(model.parameters(), model.buffers()):
            distributed.broadcast(tensor, 0)  # sharding takes each rank's own values, and they may differ
    mesh = init_device_mesh(next(model.parameters()).device.type, (distributed.get_world_size(),))
    for module in (*reversed(blocks), model):  # inner before outer
        fully_shard(module, **{"mesh": mesh, **options})
    return model


_WRAPPERS: dict[str, Callable[[nn.Module, list[nn.Module], dict[str, Any]], nn.Module]] = {"ddp": _ddp, "fsdp2": _fsdp2}


@contextmanager
def _turned_off(set_sync: Callable[[bool], None]) -> Iterator[None]:
    set_sync(False)
    try:
        yield
    finally:
        set_sync(True)


def _is_distributed(model: nn.Module) -> bool:
    exchanges = hasattr(model, "no_sync") or hasattr(model, "set_requires_gradient_sync")
    return exchanges and distributed.is_available() and distributed.is_initialized()
