"""Calls one training step of the tested project with everything around it recorded in the journal."""

import math
import traceback
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.amp.autocast_mode import autocast
from torch.optim import Optimizer

from ..asking import Teller, named, program
from . import observing
from .calls import Calls, Trackers, around, around_all
from .observing import Reached, Scene
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
            self._cleared[id(optimizer)] = [p for p in observing.held(optimizer) if not observing.has_gradient(p)]

    def before_backward(self, reached: Reached) -> None:
        """Look for gradients that were cleared by hand."""
        for optimizer in self._scene.led_to(reached):
            if id(optimizer) in self._used and not any(map(observing.has_gradient, observing.held(optimizer))):
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
                self._scene.tell("unscale_by_hand", optimizer)

    def ready(self, optimizer: Optimizer) -> None:
        """Tell of gradients where there were none, and no backward pass left any."""
        if any(map(observing.has_gradient, self._cleared.pop(id(optimizer), ()))):
            self._scene.tell("given_grad", optimizer)

    def after_step(self, optimizer: Optimizer) -> None:
        """Tell of gradients that were used again: now, as a closure may have cleared them in the step itself."""
        before = {id(grad) for grad in self._used.get(id(optimizer), ())}
        now = observing.gradients(optimizer)
        if any(id(grad) in before for grad in now):
            self._scene.tell("uncleared", optimizer)
        self._used[id(optimizer)] = now


def _length(optimizer: Optimizer) -> float:
    grads = [grad for grad in observing.gradients(optimizer) if not grad.is_sparse]
    return float(torch.nn.utils.get_total_norm(grads)) if grads else 0.0


class Spoiled:
    """Tells, after a step, of the parameters and buffers of the called modules that it left without finite numbers."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._finite, self._known = dict[int, tuple[str, Tensor]](), set[int]()

    def before_call(self, module: nn.Module) -> None:
        """Remember what is finite before the module is called for the first time; a mask may be infinite."""
        for kind, owned in (("buffer", module.named_buffers()), ("parameter", module.named_parameters())):
            for name, tensor in owned:
                if id(tensor) not in self._known and tensor.is_floating_point():
                    self._known.add(id(tensor))
                    if observing.is_finite(tensor):
                        self._finite[id(tensor)] = (f"{kind} {name}", tensor)

    def after_step(self, optimizer: Optimizer) -> None:  # noqa: ARG002  # as all observers are told
        """Tell of each such tensor once."""
        gone = {key: name for key, (name, tensor) in self._finite.items() if not observing.is_finite(tensor)}
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
        around_all(scene, GradScaler, {"__init__": (self._of_scaler, None)})

    def ended_by(self, error: BaseException) -> None:
        """Tell that the run ended because a device was not there."""
        codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
        if torch.cuda._lazy_init.__code__ in codes:  # noqa: SLF001  # all ways to CUDA lead there
            self._scene.tell("hidden", what=f"{error}".partition("\n")[0], ends=True)

    def _autocast(
        self, _context: autocast, device_type: str, dtype: torch.dtype | None = None, enabled: object = True, *_: object
    ) -> None:
        if enabled:
            self._tell(device_type, observing.dtype_name(dtype or torch.get_autocast_dtype(device_type)))

    def _of_scaler(self, _scaler: GradScaler, device: str = "cuda", *args: object, **kwargs: object) -> None:
        if kwargs.get("enabled", args[4] if len(args) > 4 else True):
            self._tell(device, None)

    def _tell(self, device: str, dtype: str | None) -> None:
        kind = device.partition(":")[0]
        module: Any = getattr(torch, kind, None)
        if hasattr(module, "is_available") and not module.is_available() and (device, dtype) not in self._asked:
            self._asked.add((device, dtype))
            self._scene.tell("hidden", what=f"{kind.upper()} is not available", dtype=dtype)


class Overflow:
    """Makes a gradient of step number `step` infinite and tells what came of it; `optimizer` is the number of its own.

    The step is `over` once its window is, and `cleared` where the infinite gradient is gone with it.
    """

    def __init__(self, scene: Scene, step: int, *, scaled: bool, optimizer: int | None = None) -> None:
        self._scene, self._step, self._scaled, self._number = scene, step, scaled, optimizer
        self._watched: Optimizer | None = None
        self._scaler: GradScaler | None = None
        self._facts: dict[str, Any] = {}
        self._over = self._cleared = False

    def after_backward(self, reached: Reached) -> None:
        """Put one infinity into one gradient, once."""
        if self._facts or self._scene.attempts < self._step or (self._scaled and not reached.scaler):
            return
        params = reached.params if reached.whole else [p for one in self._scene.optimizers for p in observing.held(one)]
        known = {id(param) for param in params if param.grad is not None and not param.grad.is_sparse}
        for optimizer in self._scene.holding(params):
            found = [param for param in observing.held(optimizer) if id(param) in known and param.numel()]
            if found and self._number in (None, self._scene.number(optimizer)):
                self._begin(optimizer, reached.scaler, found[0])
                return

    def _begin(self, optimizer: Optimizer, scaler: GradScaler | None, infinite: Tensor) -> None:
        scene = self._scene
        self._watched, self._scaler, self._infinite = optimizer, scaler, infinite
        self._params, self._state = observing.copied(optimizer), _state(optimizer)
        before = {"scale_before": scene.scale_of(scaler), "rates_before": observing.rates(optimizer)}
        self._facts = {"optimizer": scene.number(optimizer), **before, **_limits(scaler)}
        assert infinite.grad is not None
        overflowing = _hooked(infinite, infinite.grad)
        with torch.no_grad():
            infinite.grad.copy_(overflowing)
        scene.tell("injected", optimizer)

    def cleared(self, optimizers: list[Optimizer]) -> None:
        """Note that the gradients, and with them the infinite one, were cleared."""
        if self._watched in optimizers:
            self._cleared = self._over = True

    def scheduled(self, optimizer: Optimizer) -> None:
        """Take the step that was made to overflow as over at the next backward pass."""
        self._over |= self._watched is optimizer

    def before_step(self, optimizer: Optimizer) -> None:
        """See whether what was made infinite is still so when the optimizer is to step."""
        if self._watched is optimizer and "changed" in self._facts:
            self.ended()
        elif self._watched is optimizer and "finite_at_step" not in self._facts:
            finite = observing.has_finite_gradients(optimizer)
            swallowed = finite and self._infinite.grad is not None and not self._cleared
            self._facts |= {"finite_at_step": finite, "swallowed": swallowed, "location": self._scene.location()}

    def after_step(self, optimizer: Optimizer) -> None:
        """Compare the parameters and the moments with what they were, bit by bit."""
        if self._watched is optimizer and "changed" not in self._facts:
            self._compare(optimizer)
            self._over = True

    def updated(self, scaler: GradScaler) -> None:
        """Take down the scale that the update after the step leads to."""
        if self._watched and self._scaler is scaler:
            self._over = True
            if "changed" in self._facts:
                self._facts.setdefault("scale_after", self._scene.scale_of(scaler))

    def before_backward(self, reached: Reached) -> None:
        """Tell what became of the step that was made to overflow, once the next one of its optimizer begins.

        A pass that may lead elsewhere is its own by its scaler: other threads have others. Of one with other optimizers
        the update may still come.
        """
        watched, scene, scaler = self._watched, self._scene, self._scaler
        if not watched or not (watched in scene.holding(reached.params) if reached.whole else reached.scaler is scaler):
            return
        if self._over and ("changed" not in self._facts or scaler is None or "scale_after" in self._facts):
            if scaler and reached.scaler:  # another one knows nothing of the overflow
                self._facts["scale_after"] = scene.scale_of(reached.scaler)
            self.ended()
        elif observing.has_finite_gradients(watched):  # what is now computed comes in place of it
            self._cleared = True

    def ended(self) -> None:
        """Tell what is not told yet."""
        if (optimizer := self._watched) is None:
            return
        self._watched = None
        if "changed" not in self._facts:
            self._compare(optimizer)
        scale = self._scene.scale_of(self._scaler)
        self._scene.tell("overflow", **{"scale_after": scale, "rates_after": observing.rates(optimizer), **self._facts})

    def _compare(self, optimizer: Optimizer) -> None:
        """Take down, after the step, what it changed: parameters, and moments and counters by their names."""
        now = _state(optimizer).items()
        kept = {key for key, value in now if observing.same(value, self._state.get(key, torch.zeros_like(value)))}
        names = sorted({name for key, _ in now if key not in kept for name in key[1:]})
        self._facts |= {"changed": observing.changed(self._params), "state_changed": names}


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
    Calls(scene), Steps(scene)
    trackers = Trackers(scene)
    scene.watched = trackers.look
    scene.observers += [Gradients(scene), Spoiled(scene)]
    scene.observers.append(Overflow(scene, **asked["overflow"]) if asked["overflow"] else Reference(scene))
    try:
        returned = observing.returned_by(lambda: named(asked["call"])[1](*asked["args"]))
    except BaseException as error:
        hidden.ended_by(error)
        raise
    scene.safely("what was returned", lambda: trackers.returned(returned))
    scene.let_know("ended")
