"""The loss scaler: dynamic for fp16, a guard against non-finite gradients for every precision."""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from amp_core.gradients import GradientNorms, measure_gradients
from amp_core.optimizers import begin_momentum, skips_on_device


class ScaleCollapsed(RuntimeError):
    """So many steps in a row were skipped that training is no longer making progress."""


@dataclass(frozen=True)
class ScaleState:
    """A scaler's state on the host: the loss scale, and the steps applied and skipped so far."""

    scale: float
    applied: int
    skipped: int


class Mark(NamedTuple):
    """Whether a step is taken, a scalar on the device: `good`, a truth value, and `bad`, float32 as kernels want it."""

    good: Tensor
    bad: Tensor


def refuse_foreign_state(state: Mapping[str, Any]) -> None:
    """Raise ValueError unless this is a scaler's state, ours or torch's, or an empty one."""
    missing = {"scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"} - set(state)
    if state and missing:
        raise ValueError(f"a scaler's state needs {', '.join(sorted(missing))}, found only {sorted(state)}")


class LossScaler(torch.amp.GradScaler):
    """A gradient scaler for every precision, whose counters, floor and ceiling live on the device.

    A dynamic scaler (fp16) halves its scale on an overflow and doubles it after `growth_interval` good steps, within
    [`min_scale`, `max_scale`]. A static one scales nothing, and skips a bad step as a dynamic one does. A step is bad
    if the norm of its true gradients is not finite; to look at the norm alone costs nothing where it is known.

    It is used like torch's: `scale`, `unscale_`, `step`, `update`. `agree`, before `step`, spares measuring the norm
    again, and makes several optimizers step together or not at all.

    `across` maps this rank's mark of a bad step, a float32 scalar (1 or 0), to that of all ranks; it is needed only
    where ranks hold different parameters and exchange no gradients (`amp_core.parallel.on_any_rank`).

    Raises:
        ValueError: a number is out of range.
    """

    def __init__(
        self,
        device: torch.device | str,
        *,
        dynamic: bool,
        init_scale: float = 2.0**16,
        growth_interval: int = 2000,
        min_scale: float = 1.0,
        max_scale: float = 2.0**24,
        max_consecutive_skips: int = 50,
        across: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        self.device = torch.device(device)
        if not 0.0 < min_scale <= max_scale < math.inf:
            raise ValueError(f"expected 0 < min_scale <= max_scale, found {min_scale!r} and {max_scale!r}")
        if not 0.0 < init_scale < math.inf or growth_interval < 1:
            raise ValueError(
                f"init_scale and growth_interval must be positive, found {init_scale!r} and {growth_interval!r}"
            )
        super().__init__(
            self.device.type,
            init_scale=min(max(init_scale, min_scale), max_scale) if dynamic else 1.0,
            growth_interval=growth_interval,
        )
        self._lazy_init_scale_growth_tracker(self.device)
        self.dynamic = dynamic
        self.min_scale = min_scale
        self.max_scale = max_scale
        self.max_consecutive_skips = max_consecutive_skips
        self.across = across
        self.applied = torch.zeros((), dtype=torch.int64, device=self.device)  # steps that were applied
        self.attempts = 0  # steps with gradients, applied or skipped
        self._zero, self._one, self._infinity = torch.tensor([0.0, 1.0, math.inf], device=self.device)
        self.found_inf = self._zero
        self._recent: deque[Tensor] = deque(maxlen=max_consecutive_skips)  # whether the last steps were bad
        self._marks: dict[int, Mark] = {}  # by optimizer
        self._stepped: set[int] = set()
        self._has_gradients = False

    @property
    def loss_scale(self) -> Tensor:
        """Return the live scale, a float32 scalar on the device that `update` changes in place."""
        assert self._scale is not None
        return self._scale

    def scale(self, outputs: Any) -> Any:  # noqa: ANN401  as in torch: a tensor, or a nest of them
        """Return a loss times the scale, for its backward pass; a static scaler returns it as it is."""
        return super().scale(outputs) if self.dynamic else outputs

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        """Divide an optimizer's gradients by the scale, once a step, as clipping must see true ones."""
        if self.dynamic:
            super().unscale_(optimizer)

    def agree(self, optimizers: Sequence[torch.optim.Optimizer], norms: GradientNorms) -> None:
        """Decide once for optimizers whose unscaled gradients have these norms: all of them step, or none.

        Finite gradients can have an infinite norm; clipping by it would turn them into zeros, and weight decay
        and moments would move on nothing.
        """
        mark = self._mark(norms.total < self._infinity)  # NaN is not
        if self.across is not None:
            mark = self._mark(self.across(mark.bad) == 0.0)
        for optimizer in optimizers:
            self._marks[id(optimizer)] = mark
        self._has_gradients |= bool(norms.params)

    def step(self, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> float | None:  # noqa: ANN401  as torch
        """Let an optimizer step, unless its step is bad; a fused one decides inside its kernel, without a host read.

        Raises:
            RuntimeError: it stepped since the last update, or a closure was passed.
        """
        if (args or kwargs) and any(each is not None for each in (*args, kwargs.pop("closure", None))):
            raise RuntimeError("a closure cannot be passed: its loss would have to be scaled and unscaled by itself")
        key = id(optimizer)
        if key in self._stepped:
            raise RuntimeError("step() was called twice for this optimizer: call update() after each step")
        if key not in self._marks:
            self._decide_alone(optimizer)
        self._stepped.add(key)
        begin_momentum(optimizer)
        bad = self._marks[key].bad
        if not skips_on_device(optimizer):
            return None if bad.item() else optimizer.step(**kwargs)
        fused: Any = optimizer  # torch's contract with its fused optimizers: two attributes that none declares
        fused.grad_scale, fused.found_inf = None, bad
        try:
            loss: float | None = optimizer.step(**kwargs)
        finally:
            del fused.grad_scale, fused.found_inf
        return loss

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Count the step as applied or skipped, and adapt the scale, all on the device."""
        marks = list(self._marks.values()) or self._marks_of_unscaling()
        if marks:
            mark = marks[0]
            if len(marks) > 1 and any(each is not mark for each in marks):
                mark = self._mark(torch.stack([each.good.to(self.device) for each in marks]).all())
            self.found_inf = mark.bad
            if self._has_gradients:
                self.attempts += 1
                self.applied.add_(mark.good)
                self._recent.append(mark.bad)
                if self.dynamic and new_scale is None:
                    self._adapt()
        if self.dynamic and new_scale is not None:
            self.loss_scale.copy_(torch.as_tensor(new_scale)).clamp_(self.min_scale, self.max_scale)
        self.abandon()

    def abandon(self) -> None:
        """Forget the step that is under way, as after an exception in its middle; scale and counters stay."""
        self._per_optimizer_states.clear()
        self._marks.clear()
        self._stepped.clear()
        self._has_gradients = False

    def read(self, blame: Callable[[], str] | None = None) -> ScaleState:
        """Return the state on the host, in one copy; `blame` says what is to blame, if it comes to that.

        Raises:
            ScaleCollapsed: the last `max_consecutive_skips` steps or more were all skipped.
        """
        wide = torch.float32 if self.device.type == "mps" else torch.float64
        recent = torch.stack([self._zero, *self._recent])
        counters = torch.stack((self.loss_scale.to(wide), self.applied.to(wide)))
        scale, applied, *bad = torch.cat((counters, recent.to(wide))).tolist()
        in_a_row = bad[::-1].index(0.0)
        if in_a_row >= self.max_consecutive_skips:
            culprit = "" if blame is None else f"; {blame()}"
            raise ScaleCollapsed(
                f"the last {in_a_row:.0f} steps had non-finite gradients and were skipped, loss scale {scale:g}"
                f"{culprit}: look for NaN in the data or the model, or lower the learning rate"
            )
        return ScaleState(scale, int(applied), self.attempts - int(applied))

    def state_dict(self) -> dict[str, Any]:
        """Return GradScaler's state and the counters, as plain numbers (a host read)."""
        applied, recent = int(self.applied.item()), torch.stack([self._zero, *self._recent]).tolist()
        return {
            **super().state_dict(),
            "dynamic": self.dynamic,
            "applied": applied,
            "skipped": self.attempts - applied,
            "skipped_in_a_row": recent[::-1].index(0.0),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state; an empty one changes nothing, and one saved in the other mode gives only its counters.

        Raises:
            ValueError: it is no scaler's state; nothing is changed then.
        """
        if not state_dict:
            return
        refuse_foreign_state(state_dict)
        if state_dict.get("dynamic", True) == self.dynamic:
            super().load_state_dict(state_dict)
            self.loss_scale.clamp_(self.min_scale, self.max_scale)
        self.attempts = state_dict.get("applied", 0) + state_dict.get("skipped", 0)
        self.applied.fill_(state_dict.get("applied", 0))
        self._recent.clear()
        self._recent.extend([self._one] * int(state_dict.get("skipped_in_a_row", 0)))

    def _adapt(self) -> None:
        """Back off or grow, as torch's scaler does, and stay within the limits."""
        scale = self.loss_scale
        assert self._growth_tracker is not None
        torch._amp_update_scale_(  # what torch's own update calls
            scale,
            self._growth_tracker,
            self.found_inf,
            self.get_growth_factor(),
            self.get_backoff_factor(),
            self.get_growth_interval(),
        )
        scale.clamp_(self.min_scale, self.max_scale)

    def _decide_alone(self, optimizer: torch.optim.Optimizer) -> None:
        """Decide for an optimizer of a loop that does not call `agree`."""
        if self.dynamic and not self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]:
            self.unscale_(optimizer)
        params = [param for group in optimizer.param_groups for param in group["params"]]
        self.agree([optimizer], measure_gradients(params, self.device))

    def _mark(self, good: Tensor) -> Mark:
        return Mark(good, torch.where(good, self._zero, self._one))

    def _marks_of_unscaling(self) -> list[Mark]:
        """Return what unscaling found, for a loop that unscales, looks for itself and does not step."""
        states = self._per_optimizer_states.values()
        marks = [Mark(bad == 0.0, bad) for state in states for bad in state["found_inf_per_device"].values()]
        self._has_gradients = bool(marks)
        return marks

    def _unscale_grads_(
        self, optimizer: torch.optim.Optimizer, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[torch.device, Tensor]:
        """Unscale as GradScaler does; a step without any gradient is one with nothing to do, not an error."""
        return super()._unscale_grads_(optimizer, inv_scale, found_inf, allow_fp16) or {self.device: found_inf}
