"""Parameters and buffers that were finite and are not any more, whatever a scaler made of the step."""

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from .observing import Observer, Scene


class Spoiled(Observer):
    """Tells, after a step, of the parameters and buffers of the called modules that it left without finite numbers."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._finite: dict[int, tuple[str, Tensor]] = {}
        self._known: set[int] = set()

    def before_call(self, module: nn.Module) -> None:
        """Remember what is finite before the module is called for the first time; a mask may be infinite."""
        for kind, named in (("buffer", module.named_buffers()), ("parameter", module.named_parameters())):
            for name, tensor in named:
                if id(tensor) not in self._known and tensor.is_floating_point():
                    self._known.add(id(tensor))
                    if _is_finite(tensor):
                        self._finite[id(tensor)] = (f"{kind} {name}", tensor)

    def after_step(self, optimizer: Optimizer) -> None:  # noqa: ARG002  # as all observers are told
        """Tell of each such tensor once."""
        gone = {key: name for key, (name, tensor) in self._finite.items() if not _is_finite(tensor)}
        for key in gone:
            del self._finite[key]
        if gone:
            self._scene.journal.tell("spoiled", names=sorted(gone.values()))


def _is_finite(tensor: Tensor) -> bool:
    return bool(torch.isfinite(tensor.detach()).all())
