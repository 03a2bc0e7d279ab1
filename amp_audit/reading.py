"""How often, and where, a training step makes the host wait for the device."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from amp_audit.operators import Op, Operators
from amp_audit.place import reads_host_counter, user_place

VALUES = {torch.Tensor.tolist, torch.Tensor.cpu, torch.Tensor.numpy, torch.Tensor.__array__}
"""Calls that run no operator on a CPU, where they copy nothing; on an accelerator they are copies like others."""

READING = {
    "aten::_local_scalar_dense", "aten::equal", "aten::is_nonzero", "aten::nonzero", "aten::masked_select",
    "aten::_unique2", "aten::unique_dim", "aten::unique_consecutive", "aten::unique_dim_consecutive",
    "aten::bincount", "aten::repeat_interleave.Tensor",
}  # fmt: skip
"""Operators whose result, or whose result's size, the host must wait for."""

MASKING = {"aten::index.Tensor", "aten::index_put", "aten::index_put_"}
"""Operators that look for the nonzero elements of a mask."""

COPYING = {"aten::_to_copy": 0, "aten::copy_": 1}
"""Operators that can copy to the host, and which argument they copy."""


@dataclass(frozen=True)
class HostRead:
    """A call that makes the host wait, the user's `path:line` that it comes from, and how often it was made."""

    call: str
    where: str
    count: int


@dataclass(frozen=True)
class HostReads:
    """All host reads of one call, in the order of their first occurrence, and the type of device it computed on."""

    reads: tuple[HostRead, ...]
    device_type: str

    @property
    def count(self) -> int:
        """Return the number of reads."""
        return sum(read.count for read in self.reads)


def host_reads(fn: Callable[[], object]) -> HostReads:
    """Call `fn` once, and return what in it makes, or on an accelerator would make, the host wait for the device.

    `.item()`, `.tolist()`, `.cpu()`, `.numpy()`, a tensor as a condition, copies to the host, and operators whose
    result has a size that depends on values, such as `nonzero` and boolean masks. If `fn` computes on an accelerator,
    reads of CPU tensors cost nothing and do not count; if it runs on a CPU alone, all count but the step counters of
    unfused optimizers, which stay on the CPU in every run.
    """
    seen = _Seen()
    with _Calls(seen), Operators(seen.see):
        fn()
    return seen.report()


class _Seen:
    """What the two modes have seen."""

    def __init__(self) -> None:
        self.device_type = "cpu"
        self._counts: Counter[tuple[str, str, bool]] = Counter()

    def see(self, op: Op) -> None:
        for tensor in (*op.inputs, *op.outputs):
            if tensor.device.type != "cpu":
                self.device_type = tensor.device.type
        if _waits(op):
            self.count(op.name, op.args[COPYING.get(op.name, 0)])

    def count(self, call: str, tensor: Tensor) -> None:
        if not reads_host_counter():
            self._counts[call, user_place(), tensor.device.type != "cpu"] += 1

    def report(self) -> HostReads:
        kept = {key: count for key, count in self._counts.items() if key[2] or self.device_type == "cpu"}
        reads = tuple(HostRead(call, where, count) for (call, where, _), count in kept.items())
        return HostReads(reads, self.device_type)


class _Calls(TorchFunctionMode):
    """Counts the methods of tensors that hand values to Python."""

    def __init__(self, seen: _Seen) -> None:
        super().__init__()
        self._seen = seen

    def __torch_function__(  # what a function takes and gives has no common type
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Any = (),  # noqa: ANN401
        kwargs: Any = None,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        if func in VALUES and args[0].device.type == "cpu":
            self._seen.count(f"Tensor.{func.__name__}", args[0])
        return func(*args, **(kwargs or {}))


def _waits(op: Op) -> bool:
    if op.name in MASKING:
        masks = [index for index in op.args[1] if index is not None and index.dtype in (torch.bool, torch.uint8)]
        return bool(masks) and not _fills(op)
    if op.name in COPYING:
        source, (copy,) = op.args[COPYING[op.name]], op.outputs
        blocking = not op.kwargs.get("non_blocking", len(op.args) > 2 and op.args[2])
        return blocking and copy.device.type == "cpu" and source.device.type not in ("cpu", "meta")
    return op.name in READING


def _fills(op: Op) -> bool:
    """Return whether it assigns one number of the host's by a mask, which torch does by masked_fill, without a wait."""
    return len(op.args) > 2 and op.args[2].numel() == 1 and op.args[2].device.type == "cpu"
