"""Gradients that the project unscales by itself, without its scaler, before it clips them."""

import torch
from torch import Tensor
from torch.optim import Optimizer

from .observing import Observer, Reached, Scene, held

NEAR = 0.01


class ByHand(Observer):
    """Tells, before gradients are clipped, that they were divided by the loss scale since the backward pass."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._scaled: dict[int, tuple[float, float]] = {}  # of each optimizer: length of gradients, scale

    def after_backward(self, reached: Reached) -> None:
        """Take down how long the scaled gradients are."""
        scale = self._scene.scale_of(reached.scaler)
        for optimizer in self._scene.holding(reached.params) if scale != 1.0 else ():
            self._scaled[id(optimizer)] = _length(optimizer), scale

    def before_clip(self, params: list[Tensor]) -> None:
        """Compare their length with what it was."""
        for optimizer in self._scene.holding(params):
            before, scale = self._scaled.pop(id(optimizer), (0.0, 1.0))
            if before and abs(_length(optimizer) * scale / before - 1) < NEAR:
                self._scene.journal.tell("unscale_by_hand", optimizers=[self._scene.number(optimizer)])

    def over(self) -> None:
        """Begin anew."""
        self._scaled.clear()


def _length(optimizer: Optimizer) -> float:
    grads = [param.grad for param in held(optimizer) if param.grad is not None and not param.grad.is_sparse]
    return float(torch.nn.utils.get_total_norm(grads)) if grads else 0.0
