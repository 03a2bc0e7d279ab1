"""Overflows that happen by themselves: steps through a scaler whose gradients are not finite, and what they change."""

from torch.amp import GradScaler
from torch.optim import Optimizer

from .observing import Observer, Scene, held
from .overflow import Watch, told_of, watched

MOST_ELEMENTS = 2_000_000


class Skipping(Observer):
    """Watches each step that overflows by itself; it is told of after the scaler's update, or where none comes."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._watches: dict[int, Watch] = {}

    def before_step(self, optimizer: Optimizer) -> None:
        """Take down what a step that overflows must not change."""
        scaler = self._scene.here.scaler
        if scaler is None or not scaler.is_enabled() or id(scaler) not in self._scene.scaling:
            return
        self._end(self._watches.pop(id(optimizer), None))
        grads = [param for param in held(optimizer) if param.grad is not None and not param.grad.is_sparse]
        infinite = next((p for p in grads if p.grad is not None and not bool(p.grad.isfinite().all())), None)
        if infinite is None or sum(param.numel() for param in held(optimizer)) > MOST_ELEMENTS:
            return
        watch = watched(self._scene, optimizer, scaler, infinite)
        watch.facts |= {"finite_at_step": False, "step_place": self._scene.journal.place(), "own": self._scene.here.own,
                        **self._scene.journal.about()}  # fmt: skip
        self._watches[id(optimizer)] = watch

    def after_step(self, optimizer: Optimizer) -> None:
        """Compare what the step may have changed."""
        watch = self._watches.get(id(optimizer))
        if watch and not watch.taken:
            watch.facts |= watch.compared()

    def updated(self, scaler: GradScaler) -> None:
        """Tell of the steps before an update; its scale is theirs where one call led to both."""
        for key, watch in list(self._watches.items()):
            if watch.scaler is scaler and watch.taken:
                del self._watches[key]
                same = self._scene.journal.about().get("driven") == watch.facts.get("driven")
                self._end(watch, scale=self._scene.scale_of(scaler) if same else None)

    def over(self) -> None:
        """Tell what is not told yet."""
        watches, self._watches = self._watches, {}
        for watch in watches.values():
            self._end(watch)

    ended = over

    def _end(self, watch: Watch | None, scale: float | None = None) -> None:
        if watch and watch.taken:  # else the step itself raised
            self._scene.journal.tell("overflow", **told_of(self._scene, watch, scale))
