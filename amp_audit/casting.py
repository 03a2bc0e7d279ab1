"""The dtypes that a training step really computed in."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import Tensor

from amp_audit.operators import Op, Operators

MATMULS = {
    "mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "_scaled_mm", "convolution",
    "convolution_backward",
}  # fmt: skip
ATTENTION = "attention"
MANY = 12  # more tensors than any operator takes that is not a foreach one


class Phase(StrEnum):
    """Which part of a step: `update` is what follows the backward pass, until gradients are recorded again."""

    FORWARD = "forward"
    BACKWARD = "backward"
    UPDATE = "update"


@dataclass(frozen=True)
class OpDtypes:
    """An operator, the phase it ran in, the floating dtypes of its inputs and outputs, and how often."""

    op: str
    phase: Phase
    inputs: tuple[torch.dtype, ...]
    outputs: tuple[torch.dtype, ...]
    count: int

    @property
    def is_matmul(self) -> bool:
        """Return whether it is a matrix product, a convolution or an attention: where the arithmetic is."""
        name = self.op.removeprefix("aten::").partition(".")[0]
        return name in MATMULS or ATTENTION in name


@dataclass(frozen=True)
class Dtypes:
    """Every operator with floating inputs or outputs, aggregated, in the order of its first occurrence."""

    ops: tuple[OpDtypes, ...]

    def matmuls(self, phase: Phase | None = None) -> dict[torch.dtype, int]:
        """Return how many matrix products ran in each dtype (the first input's), in one phase or in all."""
        found: Counter[torch.dtype] = Counter()
        for each in self.ops:
            if each.is_matmul and phase in (None, each.phase):
                found[each.inputs[0]] += each.count
        return dict(found)

    def ran_in(self, dtype: torch.dtype) -> bool:
        """Return whether there were matrix products, and all of them, forward and backward, ran in this dtype."""
        return set(self.matmuls()) == {dtype}


def dtypes(fn: Callable[[], object]) -> Dtypes:
    """Call `fn` once, and return the dtypes of each operator in it, as the kernels saw them, after autocast."""
    counts: Counter[tuple[str, Phase, tuple[torch.dtype, ...], tuple[torch.dtype, ...]]] = Counter()
    phase = Phase.FORWARD

    def see(op: Op) -> None:
        nonlocal phase
        phase = _phase(op, phase)
        inputs, outputs = _floating(op.inputs), _floating(op.outputs)
        if inputs or outputs:
            counts[op.name, phase, inputs, outputs] += 1

    with Operators(see):
        fn()
    return Dtypes(tuple(OpDtypes(*key, count) for key, count in counts.items()))


def _phase(op: Op, last: Phase) -> Phase:
    """Return the phase of an operator, given the last one's."""
    if torch._C._current_graph_task_id() != -1:  # noqa: SLF001  torch's only word on whether autograd's engine runs
        return Phase.BACKWARD
    recording = torch.is_grad_enabled() and any(each.requires_grad for each in op.inputs)
    return Phase.FORWARD if recording or last is Phase.FORWARD else Phase.UPDATE


def _floating(tensors: Iterable[Tensor]) -> tuple[torch.dtype, ...]:
    """Return the floating dtypes of some tensors; a foreach operator's many equal ones count as one."""
    found = [each.dtype for each in tensors if each.is_floating_point()]
    return tuple(dict.fromkeys(found)) if len(found) > MANY else tuple(found)
