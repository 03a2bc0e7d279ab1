"""Calls one training step of the tested project with everything around it recorded.

    python -m gates_probe.recorder QUESTION

The journal ends with what came of the call.
"""

import math
import traceback
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.amp.autocast_mode import autocast
from torch.optim import Optimizer

from ..asking import Teller, named, program
from .calls import Calls, Trackers, around
from .observing import (
    Reached,
    Scene,
    changed,
    copied,
    dtype_name,
    gradients,
    has_finite_gradients,
    has_gradient,
    held,
    is_finite,
    rates,
    returned_by,
    same,
)
from .reference import Reference
from .steps import Steps

NEAR = 0.01


class Gradients:
    """Tells of gradients that a step did not get from the backward passes since the one before it."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._used: dict[int, list[Tensor]] = {}  # of each optimizer, those that its last step used
        self._cleared: dict[int, list[Tensor]] = {}  # of each optimizer, the parameters that have none
        self._scaled: dict[int, tuple[float, float]] = {}  # of each optimizer, the length of all, and the scale

    def cleared(self, optimizers: list[Optimizer]) -> None:
        """Forget the gradients that were used, and remember what has none now."""
        for optimizer in optimizers:
            self._used.pop(id(optimizer), None)
            self._cleared[id(optimizer)] = [param for param in held(optimizer) if not has_gradient(param)]

    def before_backward(self, reached: Reached) -> None:
        """Look for gradients that were cleared by hand."""
        for optimizer in self._scene.led_to(reached):
            if id(optimizer) in self._used and not any(map(has_gradient, held(optimizer))):
                del self._used[id(optimizer)]

    def after_backward(self, reached: Reached) -> None:
        """Take down which gradients a backward pass has left, and how long they are where they are scaled."""
        for optimizer in self._scene.led_to(reached):
            self._cleared.pop(id(optimizer), None)
        scale = self._scene.scale_of(reached.scaler)
        for optimizer in self._scene.holding(reached.params) if scale != 1.0 else ():
            self._scaled[id(optimizer)] = _length(optimizer), scale

    def before_clip(self, params: list[Tensor]) -> None:
        """Tell of gradients that were divided by the loss scale since the backward pass."""
        for optimizer in self._scene.holding(params):
            before, scale = self._scaled.pop(id(optimizer), (0.0, 1.0))
            if before and abs(_length(optimizer) * scale / before - 1) < NEAR:
                self._scene.tell("unscale_by_hand", optimizers=[self._scene.number(optimizer)])

    def ready(self, optimizer: Optimizer) -> None:
        """Tell of gradients where there were none, and no backward pass left any."""
        if any(map(has_gradient, self._cleared.pop(id(optimizer), ()))):
            self._scene.tell("given_grad", optimizers=[self._scene.number(optimizer)])

    def after_step(self, optimizer: Optimizer) -> None:
        """Tell of gradients that were used again: now, as a closure may have cleared them in the step itself.

        Others that were put in their place are not the same.
        """
        before = {id(grad) for grad in self._used.get(id(optimizer), ())}
        now = gradients(optimizer)
        if any(id(grad) in before for grad in now):
            self._scene.tell("uncleared", optimizers=[self._scene.number(optimizer)])
        self._used[id(optimizer)] = now


def _length(optimizer: Optimizer) -> float:
    grads = [grad for grad in gradients(optimizer) if not grad.is_sparse]
    return float(torch.nn.utils.get_total_norm(grads)) if grads else 0.0


class Spoiled:
    """Tells, after a step, of the parameters and buffers of the called modules that it left without finite numbers."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._finite: dict[int, tuple[str, Tensor]] = {}
        self._known: set[int] = set()

    def before_call(self, module: nn.Module) -> None:
        """Remember what is finite before the module is called for the first time; a mask may be infinite."""
        for kind, owned in (("buffer", module.named_buffers()), ("parameter", module.named_parameters())):
            for name, tensor in owned:
                if id(tensor) not in self._known and tensor.is_floating_point():
                    self._known.add(id(tensor))
                    if is_finite(tensor):
                        self._finite[id(tensor)] = (f"{kind} {name}", tensor)

    def after_step(self, optimizer: Optimizer) -> None:  # noqa: ARG002  # as all observers are told
        """Tell of each such tensor once; a sum in float64 is finite where all of its numbers are."""
        sums = [tensor.detach().sum(dtype=torch.float64) for _, tensor in self._finite.values()]
        if all(map(math.isfinite, map(float, sums))):
            return
        gone = {key: name for key, (name, tensor) in self._finite.items() if not is_finite(tensor)}
        for key in gone:
            del self._finite[key]
        if gone:
            self._scene.tell("spoiled", names=sorted(gone.values()))


class Hidden:
    """Tells once of each device that is asked for and hidden, and whether that ended the run."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._asked: set[tuple[str, str | None]] = set()
        around(scene, autocast, "__init__", self._autocast)

    def ended_by(self, error: BaseException) -> None:
        """Tell that the run ended because a device was not there."""
        begins = torch.cuda._lazy_init.__code__  # noqa: SLF001  # all ways to CUDA lead there
        if any(frame.f_code is begins for frame, _ in traceback.walk_tb(error.__traceback__)):
            self._scene.tell("hidden", what=f"{error}".partition("\n")[0], ends=True)

    def _autocast(
        self, _context: autocast, device_type: str, dtype: torch.dtype | None = None, enabled: object = True, *_: object
    ) -> None:
        if enabled:
            self._tell(device_type, dtype_name(dtype or torch.get_autocast_dtype(device_type)))

    def scaler(self, _scaler: GradScaler, device: str = "cuda", *args: object, **kwargs: object) -> None:
        """Tell of a scaler's device."""
        if kwargs.get("enabled", args[4] if len(args) > 4 else True):
            self._tell(device, None)

    def _tell(self, device: str, dtype: str | None) -> None:
        kind = device.partition(":")[0]
        module: Any = getattr(torch, kind, None)
        absent = hasattr(module, "is_available") and not module.is_available()
        if absent and (device, dtype) not in self._asked:
            self._asked.add((device, dtype))
            self._scene.tell("hidden", what=f"{kind.upper()} is not available", dtype=dtype)


@dataclass
class Watch:
    """One optimizer, as it was when its gradients were made infinite.

    It is `over` once its window is, and `cleared` where the infinite gradient is gone with it.
    """

    optimizer: Optimizer
    scaler: GradScaler | None
    infinite: Tensor
    params: list[tuple[Tensor, Tensor]]
    state: dict[tuple[int, str], Tensor]
    facts: dict[str, Any]
    over: bool = False
    cleared: bool = False

    @property
    def taken(self) -> bool:
        """Return whether the step was taken, or left out by the scaler."""
        return "changed" in self.facts

    @property
    def awaits_update(self) -> bool:
        """Return whether the scaler's update after the step is still to come, as where it has other optimizers."""
        return self.taken and self.scaler is not None and "scale_after" not in self.facts

    def compare(self) -> None:
        """Take down, after the step, what it changed: parameters, and moments and counters by their names."""
        now = _state(self.optimizer).items()
        same_as_before = {key: same(value, self.state.get(key, torch.zeros_like(value))) for key, value in now}
        names = sorted({name for (_, name), same_value in same_as_before.items() if not same_value})
        self.facts |= {"changed": changed(self.params), "state_changed": names}


class Overflow:
    """Makes a gradient of step number `step` infinite after its first backward pass, and watches that step.

    Where it is known by its number which `optimizer` takes that step, no backward pass for another one is its first.
    """

    def __init__(self, scene: Scene, step: int, *, scaled: bool, optimizer: int | None = None) -> None:
        self._scene, self._step, self._scaled, self._optimizer = scene, step, scaled, optimizer
        self._watch: Watch | None = None
        self._told = False

    def after_backward(self, reached: Reached) -> None:
        """Put one infinity into one gradient, once."""
        if self._watch or self._told or self._scene.attempts < self._step or (self._scaled and not reached.scaler):
            return
        params = reached.params if reached.whole else [p for each in self._scene.optimizers for p in held(each)]
        known = {id(param) for param in params if param.grad is not None and not param.grad.is_sparse}
        for optimizer in self._scene.holding(params):
            found = [param for param in held(optimizer) if id(param) in known and param.numel()]
            if found and self._optimizer in (None, self._scene.number(optimizer)):
                self._begin(optimizer, reached.scaler, found[0])
                return

    def _begin(self, optimizer: Optimizer, scaler: GradScaler | None, infinite: Tensor) -> None:
        scene, number = self._scene, self._scene.number(optimizer)
        facts = {"optimizer": number, "scale_before": scene.scale_of(scaler), "rates_before": rates(optimizer)}
        assert infinite.grad is not None
        overflowing = _hooked(infinite, infinite.grad)
        self._watch = Watch(optimizer, scaler, infinite, copied(optimizer), _state(optimizer), facts)
        with torch.no_grad():
            infinite.grad.copy_(overflowing)
        scene.tell("injected", optimizers=[number])

    def cleared(self, optimizers: list[Optimizer]) -> None:
        """Note that the gradients, and with them the infinite one, were cleared."""
        if self._watch and self._watch.optimizer in optimizers:
            self._watch.cleared = self._watch.over = True

    def scheduled(self, optimizer: Optimizer) -> None:
        """Take the step that was made to overflow as over at the next backward pass."""
        if self._watch and self._watch.optimizer is optimizer:
            self._watch.over = True

    def before_step(self, optimizer: Optimizer) -> None:
        """See whether what was made infinite is still so when the optimizer is to step."""
        watch = self._watch
        if watch and watch.optimizer is optimizer and watch.taken:
            self._end(watch)
        elif watch and watch.optimizer is optimizer and "finite_at_step" not in watch.facts:
            finite = has_finite_gradients(optimizer)
            swallowed = finite and watch.infinite.grad is not None and not watch.cleared
            watch.facts |= {"finite_at_step": finite, "swallowed": swallowed}
            watch.facts["location"] = self._scene.location()

    def after_step(self, optimizer: Optimizer) -> None:
        """Compare the parameters and the moments with what they were, bit by bit."""
        if self._watch and self._watch.optimizer is optimizer and not self._watch.taken:
            self._watch.compare()
            self._watch.over = True

    def updated(self, scaler: GradScaler) -> None:
        """Take down the scale that the update after the step leads to."""
        if self._watch and self._watch.scaler is scaler:
            self._watch.over = True
            if self._watch.awaits_update:
                self._watch.facts["scale_after"] = self._scene.scale_of(scaler)

    def before_backward(self, reached: Reached) -> None:
        """Tell what became of the step that was made to overflow, once the next one of its optimizer begins.

        A backward pass that may lead elsewhere is taken for its own where it has its scaler: other threads have others.
        """
        watch, scene = self._watch, self._scene
        own = watch and (
            watch.optimizer in scene.holding(reached.params) if reached.whole else reached.scaler is watch.scaler
        )
        if watch is None or not own:
            return
        if watch.over and not watch.awaits_update:
            if watch.scaler and reached.scaler:  # another one knows nothing of the overflow
                watch.facts["scale_after"] = scene.scale_of(reached.scaler)
            self._end(watch)
        elif has_finite_gradients(watch.optimizer):  # what is now computed comes in place of it
            watch.cleared = True

    def ended(self) -> None:
        """Tell what is not told yet."""
        if self._watch:
            self._end(self._watch)

    def _end(self, watch: Watch) -> None:
        self._watch, self._told = None, True
        if not watch.taken:
            watch.compare()
        scale, limits = self._scene.scale_of(watch.scaler), _limits(watch.scaler)
        self._scene.tell(
            "overflow", **{"scale_after": scale, "rates_after": rates(watch.optimizer), **limits, **watch.facts}
        )


def _hooked(param: Tensor, grad: Tensor) -> Tensor:
    """Return a gradient with an infinity in it, as the project's hooks on the parameter would pass it on."""
    found = grad.detach().clone(memory_format=torch.contiguous_format)
    found.view(-1)[0] = math.inf
    for hook in list((param._backward_hooks or {}).values()):  # noqa: SLF001  # as autograd itself calls them
        changed = hook(found)
        found = found if changed is None else changed
    return found


def _limits(scaler: GradScaler | None) -> dict[str, float]:
    """Return what a scaler multiplies the scale with, unless it waits for several overflows first, and its least."""
    if scaler is None or not scaler.is_enabled():
        return {}
    least, waits = getattr(scaler, "min_scale", None), any("hysteresis" in name for name in vars(scaler))
    limits = {"backoff": None if waits else scaler.get_backoff_factor(), "least": least}
    return {name: float(limit) for name, limit in limits.items() if isinstance(limit, int | float)}


def _state(optimizer: Optimizer) -> dict[tuple[int, str], Tensor]:
    return {
        (id(param), name): value.detach().clone()
        for param, state in optimizer.state.items()
        if isinstance(state, dict)
        for name, value in state.items()
        if isinstance(value, Tensor)
    }


@program
def main(asked: dict[str, Any], tell: Teller) -> None:
    """Record the call that was asked for."""
    scene = Scene(tell, asked["root"])
    hidden = Hidden(scene)
    Calls(scene), Steps(scene, hidden.scaler)
    trackers = Trackers(scene)
    scene.watched = trackers.look
    scene.observers += [Gradients(scene), Spoiled(scene)]
    scene.observers.append(Overflow(scene, **asked["overflow"]) if asked["overflow"] else Reference(scene))
    try:
        returned = returned_by(lambda: named(asked["call"])[1](*asked["args"]))
    except BaseException as error:
        hidden.ended_by(error)
        raise
    scene.safely("what was returned", lambda: trackers.returned(returned))
    scene.let_know("ended")
