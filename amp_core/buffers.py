"""The buffers of a model, such as BatchNorm's statistics, put back where the step that wrote them was skipped."""

import torch
from torch import Tensor, nn
from torch._utils import _unflatten_dense_tensors


class KeptBuffers:
    """Keeps the buffers that a model saves while a step writes them, and puts them back without a host read.

    Buffers that are not saved, such as tables of rotary embeddings, are taken for constants.
    """

    def __init__(self, model: nn.Module) -> None:
        saved = {id(value) for value in model.state_dict(keep_vars=True).values()}
        kinds: dict[tuple[torch.dtype, torch.device], list[Tensor]] = {}
        for buffer in model.buffers():
            if id(buffer) in saved:
                kinds.setdefault((buffer.dtype, buffer.device), []).append(buffer)
        self._groups = list(kinds.values())  # each of one dtype and device: it is copied at once
        self._before: list[Tensor] = []

    def keep(self) -> None:
        """Keep the buffers as they are before a step."""
        self._before = [_packed(group) for group in self._groups]

    def put_back(self, bad: Tensor | None = None) -> None:
        """Put back what was kept if `bad`, a scalar on the device, is 1; without it, as after an error, in any case."""
        for group, before in zip(self._groups, self._before, strict=True):
            _unpack(before if bad is None else torch.where(bad != 0.0, before, _packed(group)), group)


def _packed(group: list[Tensor]) -> Tensor:
    return torch.cat([buffer.detach().flatten() for buffer in group])


@torch.no_grad()
def _unpack(values: Tensor, group: list[Tensor]) -> None:
    parts = _unflatten_dense_tensors(values, group)  # type: ignore[no-untyped-call]  # torch declares no types for it
    torch._foreach_copy_(group, parts)
