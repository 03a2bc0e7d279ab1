"""Gradients that code puts in place by itself, after they were cleared and without a backward pass."""

from torch import Tensor
from torch.optim import Optimizer

from .observing import Observer, Reached, Scene, held


class Given(Observer):
    """Tells, before a step, that an optimizer has gradients which no backward pass has left since they were cleared."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._cleared: dict[int, list[Tensor]] = {}  # of each optimizer, what it has no gradient of

    def gone(self, optimizers: list[Optimizer]) -> None:
        """Remember what has no gradient now."""
        for optimizer in optimizers:
            self._cleared[id(optimizer)] = [param for param in held(optimizer) if not _has_gradient(param)]

    def after_backward(self, reached: Reached) -> None:
        """Forget those whose gradients a backward pass has left."""
        for optimizer in self._scene.holding(reached.params) if reached.whole else self._scene.optimizers:
            self._cleared.pop(id(optimizer), None)

    def ready(self, optimizer: Optimizer) -> None:
        """Look for gradients all the same."""
        if any(map(_has_gradient, self._cleared.pop(id(optimizer), ()))):
            self._scene.journal.tell("given_grad", optimizers=[self._scene.number(optimizer)])

    def over(self) -> None:
        """Begin anew."""
        self._cleared.clear()


def _has_gradient(param: Tensor) -> bool:
    return param.grad is not None and bool(param.grad.any())
