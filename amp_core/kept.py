"""What a step that is not taken leaves as it was: buffers, such as BatchNorm's statistics, and the optimizers."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch._utils import _unflatten_dense_tensors

Place: TypeAlias = tuple[dict[str, Any], str]  # a module's buffers, and the name of one


class Kept:
    """Keeps a model's saved buffers while a step writes them, puts them back without a host read, and counts writes.

    Buffers that are not saved, such as tables of rotary embeddings, are taken for constants.
    """

    def __init__(self, model: nn.Module, params: Sequence[Tensor], optimizers: Sequence[torch.optim.Optimizer]) -> None:
        saved = {id(value) for value in model.state_dict(keep_vars=True).values()}
        kinds: dict[tuple[torch.dtype, torch.device], list[Place]] = {}
        for module in model.modules():
            for name, buffer in module.named_buffers(recurse=False):
                if id(buffer) in saved:
                    saved.remove(id(buffer))  # another module may have it, too
                    kinds.setdefault((buffer.dtype, buffer.device), []).append((module._buffers, name))  # noqa: SLF001
        self._groups = list(kinds.values())  # each of one dtype and device: it is copied at once
        self._params, self._optimizers = params, optimizers
        self._writes = self._count()

    def keep(self) -> None:
        """Keep the buffers as they are before a step."""
        self._writes = self._count()
        self._held = [[buffers[name] for buffers, name in group] for group in self._groups]
        self._before = [_packed(held) for held in self._held]

    def put_back(self, bad: Tensor | None = None) -> None:
        """Put back what was kept if `bad`, a scalar on the device, is 1; without it, as after an error, in any case."""
        for group, held, before in zip(self._groups, self._held, self._before, strict=True):
            found = [buffers.get(name) for buffers, name in group]  # others, where a model does not write into its own
            now = [old if new is None or new.shape != old.shape else new for new, old in zip(found, held, strict=True)]
            _unpack(before if bad is None else torch.where(bad != 0.0, before, _packed(now)), now)

    def moved(self) -> bool:
        """Say whether parameters, or the step counts that fused optimizers write as well, were written since."""
        return self._count() != self._writes

    def _count(self) -> int:
        states = [state for each in self._optimizers for state in each.state.values()]
        counts = [count for state in states if isinstance(count := state.get("step"), Tensor)]
        return sum([each._version for each in (*self._params, *counts)])  # noqa: SLF001  torch has no public way to ask


def _packed(group: list[Tensor]) -> Tensor:
    return torch.cat([buffer.detach().flatten() for buffer in group])


@torch.no_grad()
def _unpack(values: Tensor, group: list[Tensor]) -> None:
    parts = _unflatten_dense_tensors(values, group)  # type: ignore[no-untyped-call]  # torch declares no types for it
    torch._foreach_copy_(group, parts)
