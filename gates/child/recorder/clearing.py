"""Whether an optimizer's gradients were cleared between two of its steps, by a call or by hand."""

from collections.abc import Iterator

from torch import Tensor
from torch.optim import Optimizer

from .observing import Observer, Reached, Scene, held


class Clearing(Observer):
    """Tells of each step that used gradients of the step before it, too."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._used: dict[int, list[Tensor]] = {}

    def cleared(self, optimizers: list[Optimizer]) -> None:
        """Forget the gradients that were used."""
        for optimizer in optimizers:
            self._used.pop(id(optimizer), None)

    def before_backward(self, reached: Reached) -> None:  # noqa: ARG002  # as all observers are told
        """Look for gradients that were cleared by hand."""
        for optimizer in self._scene.optimizers:
            if id(optimizer) in self._used:
                grads = [grad for grad in _gradients(optimizer) if not grad.is_sparse]
                if not any(bool(grad.any()) for grad in grads):
                    del self._used[id(optimizer)]

    def after_step(self, optimizer: Optimizer) -> None:
        """Tell of gradients that were used again: now, as a closure may have cleared them in the step itself.

        Others that were put in their place are not the same.
        """
        before = {id(grad) for grad in self._used.get(id(optimizer), ())}
        now = list(_gradients(optimizer))
        if any(id(grad) in before for grad in now):
            self._scene.journal.tell("uncleared", optimizers=[self._scene.number(optimizer)])
        self._used[id(optimizer)] = now

    def over(self) -> None:
        """Begin anew: the next test may have an optimizer where another one was."""
        self._used.clear()


def _gradients(optimizer: Optimizer) -> Iterator[Tensor]:
    return (param.grad for param in held(optimizer) if param.grad is not None)
