"""Whether an optimizer's gradients were cleared between two of its steps, by a call or by hand."""

from torch.optim import Optimizer

from .observing import Observer, Reached, Scene, held


class Clearing(Observer):
    """Tells of each step that used gradients of the step before it, too."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._used: set[int] = set()

    def cleared(self, optimizers: list[Optimizer]) -> None:
        """Forget the gradients that were used."""
        self._used -= {id(optimizer) for optimizer in optimizers}

    def before_backward(self, reached: Reached) -> None:  # noqa: ARG002  # as all observers are told
        """Look for gradients that were cleared by hand."""
        for optimizer in self._scene.optimizers:
            if id(optimizer) in self._used:
                grads = [param.grad for param in held(optimizer) if param.grad is not None]
                if not any(bool(grad.any()) for grad in grads if not grad.is_sparse):
                    self._used.discard(id(optimizer))

    def after_step(self, optimizer: Optimizer) -> None:
        """Tell of gradients that were used again: now, as a closure may have cleared them in the step itself."""
        if id(optimizer) in self._used:
            self._scene.journal.tell("uncleared", optimizers=[self._scene.number(optimizer)])
        self._used.add(id(optimizer))
