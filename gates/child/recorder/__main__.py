"""Calls one training step of the tested project with everything around it recorded.

    python -m gates_probe.recorder QUESTION

The journal ends with what came of the call.
"""

import math
import traceback
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.amp.autocast_mode import autocast
from torch.optim import Optimizer

from ..asking import Teller, named, program
from .calls import Calls, Forwards, Trackers, around
from .observing import Journal, Reached, Scene, dtype_name, has_gradient, held, returned_by, safely
from .overflow import Overflow
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
                self._scene.journal.tell("unscale_by_hand", optimizers=[self._scene.number(optimizer)])

    def ready(self, optimizer: Optimizer) -> None:
        """Tell of gradients where there were none, and no backward pass left any."""
        if any(map(has_gradient, self._cleared.pop(id(optimizer), ()))):
            self._scene.journal.tell("given_grad", optimizers=[self._scene.number(optimizer)])

    def after_step(self, optimizer: Optimizer) -> None:
        """Tell of gradients that were used again: now, as a closure may have cleared them in the step itself.

        Others that were put in their place are not the same.
        """
        before = {id(grad) for grad in self._used.get(id(optimizer), ())}
        now = _gradients(optimizer)
        if any(id(grad) in before for grad in now):
            self._scene.journal.tell("uncleared", optimizers=[self._scene.number(optimizer)])
        self._used[id(optimizer)] = now


def _gradients(optimizer: Optimizer) -> list[Tensor]:
    return [param.grad for param in held(optimizer) if param.grad is not None]


def _length(optimizer: Optimizer) -> float:
    grads = [grad for grad in _gradients(optimizer) if not grad.is_sparse]
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
                    if _is_finite(tensor):
                        self._finite[id(tensor)] = (f"{kind} {name}", tensor)

    def after_step(self, optimizer: Optimizer) -> None:  # noqa: ARG002  # as all observers are told
        """Tell of each such tensor once; a sum in float64 is finite where all of its numbers are."""
        sums = [tensor.detach().sum(dtype=torch.float64) for _, tensor in self._finite.values()]
        if all(map(math.isfinite, map(float, sums))):
            return
        gone = {key: name for key, (name, tensor) in self._finite.items() if not _is_finite(tensor)}
        for key in gone:
            del self._finite[key]
        if gone:
            self._scene.journal.tell("spoiled", names=sorted(gone.values()))


def _is_finite(tensor: Tensor) -> bool:
    return bool(torch.isfinite(tensor.detach()).all())


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
            self._scene.journal.tell("hidden", what=f"{error}".partition("\n")[0], ends=True)

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
            self._scene.journal.tell("hidden", what=f"{kind.upper()} is not available", dtype=dtype)


@program
def main(asked: dict[str, Any], tell: Teller) -> None:
    """Record the call that was asked for."""
    scene = Scene(Journal(tell, asked["root"]))
    hidden = Hidden(scene)
    Calls(scene), Steps(scene, hidden.scaler), Forwards(scene)
    trackers = Trackers(scene)
    scene.journal.watched = trackers.look
    scene.observers += [Gradients(scene), Spoiled(scene)]
    scene.observers.append(Overflow(scene, **asked["overflow"]) if asked["overflow"] else Reference(scene))
    try:
        returned = returned_by(lambda: named(asked["call"])[1](*asked["args"]))
    except BaseException as error:
        hidden.ended_by(error)
        raise
    safely(scene.journal, "what was returned", lambda: trackers.returned(returned), None)
    scene.let_know("ended")
