"""Copies of batches to a device."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from amp_core.step import Batch


def pins_memory(device_type: str) -> bool:
    """Say whether batches for a device type are pinned, and so may be copied without blocking."""
    return device_type in ("cuda", "xpu")


def to_device(batch: Batch, device: torch.device, *, non_blocking: bool = True) -> Batch:
    """Return the batch, a tuple, list or dictionary of tensors, on the device; lists become tuples.

    What may be copied without blocking is, if that is safe: from pinned memory. A copy to the host always blocks:
    whoever read it before it had ended would read garbage.

    Raises:
        ValueError: the batch is a bare tensor, whose rows would be taken for inputs and targets.
    """
    found: object = batch
    if isinstance(found, Tensor):
        raise ValueError(  # noqa: TRY004  the data are wrong, not the code
            f"the loader's batches are tensors of shape {tuple(found.shape)}, expected tuples of tensors: wrap the data"
            " in a TensorDataset"
        )
    placed: Batch = _each(batch, lambda tensor: tensor.to(device, non_blocking=non_blocking and _may_not_block(tensor)))
    return placed


def tensors_of(batch: Any) -> Iterator[Tensor]:  # noqa: ANN401  a batch may be nested
    """Yield the tensors of a batch: a tuple, a list or a dictionary of tensors, or of such."""
    if isinstance(batch, Mapping | list | tuple):
        for each in batch.values() if isinstance(batch, Mapping) else batch:
            yield from tensors_of(each)
    elif hasattr(batch, "record_stream"):
        yield batch


def samples_in(batch: Batch) -> int:
    """Return how many samples a batch holds: the length of its first tensor, 1 if that is a scalar."""
    first = next(tensors_of(batch), None)
    return 0 if first is None else len(first) if first.ndim else 1


class SideStream:
    """Copies batches to an accelerator beside the work of its current stream."""

    def __init__(self, device: torch.device) -> None:
        self._module = torch.get_device_module(device)  # torch.cuda, or torch.xpu with the same names
        self._stream = self._module.Stream(device)

    def to_device(self, batch: Batch, device: torch.device) -> Batch:
        """Return the batch on the device; only this stream may use it before `hand_over`."""
        with self._module.stream(self._stream):
            return to_device(batch, device)

    def hand_over(self, batch: Batch) -> None:
        """Make the current stream wait for the copies so far, and its allocator keep their memory until it is done."""
        current = self._module.current_stream(self._stream.device)
        current.wait_stream(self._stream)
        for tensor in tensors_of(batch):
            tensor.record_stream(current)


def _each(batch: Any, change: Callable[[Tensor], Tensor]) -> Any:  # noqa: ANN401  the same
    if isinstance(batch, Mapping):
        return {name: _each(each, change) for name, each in batch.items()}
    if isinstance(batch, list | tuple):
        kept = [_each(each, change) for each in batch]
        return type(batch)(*kept) if hasattr(batch, "_fields") else tuple(kept)
    return change(batch) if hasattr(batch, "is_pinned") else batch  # text and numbers have no device


def _may_not_block(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu" and tensor.is_pinned()
