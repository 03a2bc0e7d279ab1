"""An overflow on purpose: one infinite gradient in one step, and what becomes of parameters, scale and rates."""

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.amp import GradScaler
from torch.optim import Optimizer

from .observing import Reached, Scene, changed, copied, has_finite_gradients, held, rates, same


@dataclass
class Watch:
    """One optimizer, as it was when its gradients were made infinite."""

    optimizer: Optimizer
    scaler: GradScaler | None
    infinite: Tensor
    params: list[tuple[Tensor, Tensor]]
    state: dict[tuple[int, str], Tensor]
    rates: list[float]
    scale: float
    facts: dict[str, Any] = field(default_factory=dict)
    boundary: bool = False
    cleared: bool = False

    @property
    def taken(self) -> bool:
        """Return whether the step was taken, or left out by the scaler."""
        return "changed" in self.facts

    @property
    def awaits_update(self) -> bool:
        """Return whether the scaler's update after the step is still to come, as where it has other optimizers."""
        return self.taken and self.scaler is not None and "scale_after" not in self.facts

    def compared(self) -> dict[str, Any]:
        """Return, after the step, what it changed."""
        return {"changed": changed(self.params), "state_changed": _state_changed(self)}


class Overflow:
    """Makes a gradient of step number `step` infinite after its first backward pass, and watches that step.

    Where it is known by its number which `optimizer` takes that step, no backward pass for another one is its first.
    """

    def __init__(self, scene: Scene, step: int, *, scaled: bool, optimizer: int | None = None) -> None:
        self._scene = scene
        self._step = step
        self._scaled = scaled
        self._optimizer = optimizer
        self._watch: Watch | None = None
        self._told = False

    def after_backward(self, reached: Reached) -> None:
        """Put one infinity into one gradient, once."""
        if self._watch or self._told or self._scene.attempts < self._step or (self._scaled and not reached.scaler):
            return
        candidates = reached.params if reached.whole else tuple(p for o in self._scene.optimizers for p in held(o))
        for optimizer in self._scene.holding(candidates):
            if self._optimizer not in (None, self._scene.number(optimizer)):
                continue
            wanted = {id(param) for param in candidates}
            for param in held(optimizer):
                if id(param) in wanted and param.grad is not None and not param.grad.is_sparse and param.grad.numel():
                    overflowing = _hooked(param, param.grad)
                    self._begin(optimizer, reached.scaler, param)
                    with torch.no_grad():
                        param.grad.copy_(overflowing)
                    return

    def _begin(self, optimizer: Optimizer, scaler: GradScaler | None, infinite: Tensor) -> None:
        scale, now = self._scene.scale_of(scaler), rates(optimizer)
        self._watch = Watch(optimizer, scaler, infinite, copied(optimizer), _state(optimizer), now, scale)
        self._scene.journal.tell("injected", optimizers=[self._scene.number(optimizer)], scale=scale)

    def cleared(self, optimizers: list[Optimizer]) -> None:
        """Note that the gradients, and with them the infinite one, were cleared."""
        if self._watch and self._watch.optimizer in optimizers:
            self._watch.cleared = self._watch.boundary = True

    def scheduled(self, optimizer: Optimizer) -> None:
        """Take the step that was made to overflow as over at the next backward pass."""
        if self._watch and self._watch.optimizer is optimizer:
            self._watch.boundary = True

    def before_step(self, optimizer: Optimizer) -> None:
        """See whether what was made infinite is still so when the optimizer is to step."""
        watch = self._watch
        if watch and watch.optimizer is optimizer and watch.taken:
            self._end(watch)
        elif watch and watch.optimizer is optimizer:
            finite = has_finite_gradients(watch.optimizer)
            watch.facts.setdefault("finite_at_step", finite)
            kept = watch.infinite.grad is not None and not watch.cleared
            watch.facts.setdefault("swallowed", finite and kept)
            watch.facts.setdefault("location", self._scene.journal.location())

    def after_step(self, optimizer: Optimizer) -> None:
        """Compare the parameters and the moments with what they were, bit by bit."""
        watch = self._watch
        if watch and watch.optimizer is optimizer and not watch.taken:
            watch.facts |= watch.compared()
            watch.boundary = True

    def updated(self, scaler: GradScaler) -> None:
        """Take down the scale that the update after the step leads to."""
        watch = self._watch
        if watch and watch.scaler is scaler:
            watch.boundary = True
            if watch.taken:
                watch.facts.setdefault("scale_after", self._scene.scale_of(scaler))

    def before_backward(self, reached: Reached) -> None:
        """Tell what became of the step that was made to overflow, once the next one of its optimizer begins."""
        watch = self._watch
        if watch is None or not self._is_for(watch, reached):
            return
        if watch.boundary and not watch.awaits_update:
            if watch.scaler and reached.scaler:  # another one knows nothing of the overflow
                watch.facts["scale_after"] = self._scene.scale_of(reached.scaler)
            self._end(watch)
        elif has_finite_gradients(watch.optimizer):  # what is now computed comes in place of it
            watch.cleared = True

    def _is_for(self, watch: Watch, reached: Reached) -> bool:
        """Return whether a backward pass leads to the watched optimizer, or may do so; other threads have others."""
        if reached.whole:
            return watch.optimizer in self._scene.holding(reached.params)
        return reached.scaler is watch.scaler

    def ended(self) -> None:
        """Tell what is not told yet."""
        if self._watch:
            self._end(self._watch)

    def _end(self, watch: Watch) -> None:
        self._watch, self._told = None, True
        facts = {
            "optimizer": self._scene.number(watch.optimizer),
            "scale_before": watch.scale,
            "scale_after": self._scene.scale_of(watch.scaler),
            "backoff": _backoff(watch.scaler),
            "least": _least(watch.scaler),
            "rates_before": watch.rates,
            "rates_after": rates(watch.optimizer),
        }
        seen = watch.facts if watch.taken else {**watch.compared(), **watch.facts}
        self._scene.journal.tell("overflow", **{**facts, **seen})


def _hooked(param: Tensor, grad: Tensor) -> Tensor:
    """Return a gradient with an infinity in it, as the project's hooks on the parameter would pass it on."""
    found = grad.detach().clone(memory_format=torch.contiguous_format)
    found.view(-1)[0] = math.inf
    for hook in list((param._backward_hooks or {}).values()):  # noqa: SLF001  # as autograd itself calls them
        changed = hook(found)
        found = found if changed is None else changed
    return found


def _backoff(scaler: GradScaler | None) -> float | None:
    """Return what a scaler multiplies the scale with; none where it waits for several overflows first."""
    if scaler is None or not scaler.is_enabled() or any("hysteresis" in name for name in vars(scaler)):
        return None
    return scaler.get_backoff_factor()


def _least(scaler: GradScaler | None) -> float | None:
    """Return the least scale that a scaler of the project's own goes down to, where it says so."""
    least = getattr(scaler, "min_scale", None)
    return float(least) if isinstance(least, int | float) else None


def _state(optimizer: Optimizer) -> dict[tuple[int, str], Tensor]:
    return {
        (id(param), name): value.detach().clone()
        for param, state in optimizer.state.items()
        if isinstance(state, dict)
        for name, value in state.items()
        if isinstance(value, Tensor)
    }


def _state_changed(watch: Watch) -> list[str]:
    """Return the names of the moments and counters that are not what they were; a new one may begin at zero."""
    names = set()
    for key, value in _state(watch.optimizer).items():
        before = watch.state.get(key)
        same_value = not bool(value.any()) if before is None else same(value, before)
        if not same_value:
            names.add(key[1])
    return sorted(names)
