"""Gradients that code puts in place by itself, after they were cleared and without a backward pass."""

from torch.optim import Optimizer

from .observing import Observer, Reached, Scene, held


class Given(Observer):
    """Tells, before a step, that an optimizer has gradients which no backward pass has left since they were cleared."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._cleared: set[int] = set()

    def cleared(self, optimizers: list[Optimizer]) -> None:
        """Remember whose gradients are gone."""
        self._cleared |= {id(optimizer) for optimizer in optimizers}

    def after_backward(self, reached: Reached) -> None:
        """Forget those whose gradients a backward pass has left."""
        filled = self._scene.holding(reached.params) if reached.whole else self._scene.optimizers
        self._cleared -= {id(optimizer) for optimizer in filled}

    def ready(self, optimizer: Optimizer) -> None:
        """Look for gradients all the same."""
        if id(optimizer) in self._cleared and any(p.grad is not None and bool(p.grad.any()) for p in held(optimizer)):
            self._scene.journal.tell("given_grad", optimizers=[self._scene.number(optimizer)])
        self._cleared.discard(id(optimizer))

    def over(self) -> None:
        """Begin anew."""
        self._cleared.clear()
