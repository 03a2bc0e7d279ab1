"""Buffers of modules that were finite when training began, and are not when it ends."""

from weakref import WeakKeyDictionary

import torch
from torch import nn

from .observing import Observer, Scene


class Buffers(Observer):
    """Names what a step that was left out has ruined all the same, such as the statistics of a BatchNorm."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._finite: WeakKeyDictionary[nn.Module, set[str]] = WeakKeyDictionary()

    def before_call(self, module: nn.Module) -> None:
        """Take down which buffers are finite before the first call."""
        if module not in self._finite:
            self._finite[module] = _finite(module)

    def ended(self) -> None:
        """Tell of those that are not finite any more."""
        ruined = sorted(name for module, names in self._finite.items() for name in names - _finite(module))
        self._scene.journal.tell("buffers", ruined=ruined[:MOST])


MOST = 8


def _finite(module: nn.Module) -> set[str]:
    floating = ((name, buffer) for name, buffer in module.named_buffers() if buffer.is_floating_point())
    return {name for name, buffer in floating if bool(torch.isfinite(buffer).all())}
