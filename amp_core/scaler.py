"""The loss scaler: dynamic for fp16, a guard against non-finite gradients for every precision."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


class ScaleCollapsed(RuntimeError):
    """So many steps in a row were skipped that training is no longer making progress."""


@dataclass(frozen=True)
class ScaleState:
    """A scaler's state on the host: the loss scale, and the steps applied and skipped so far."""

    scale: float
    applied: int
    skipped: int


class LossScaler(torch.amp.GradScaler):
    """A gradient scaler whose counters, floor and ceiling live on the device.

    A dynamic scaler (fp16) halves its scale on an overflow and doubles it after `growth_interval` good steps, within
    [`min_scale`, `max_scale`]. A static one keeps scale 1: it changes no bit of a good step, and skips a bad one.
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
    ) -> None:
        self.device = torch.device(device)
        super().__init__(
            self.device.type,
            init_scale=min(max(init_scale, min_scale), max_scale) if dynamic else 1.0,
            growth_interval=growth_interval,
        )
        self.dynamic = dynamic
        self.min_scale = min_scale
        self.max_scale = max_scale
        self.max_consecutive_skips = max_consecutive_skips
        self.applied = torch.zeros((), dtype=torch.int64, device=self.device)
        self.skipped = torch.zeros_like(self.applied)
        self._skipped_in_a_row = torch.zeros_like(self.applied)
        self._has_gradients = False
        self.found_inf = torch.zeros((), device=self.device)

    @property
    def loss_scale(self) -> Tensor:
        """Return the live scale, a float32 scalar on the device that `update` changes in place."""
        if self._scale is None:
            self._lazy_init_scale_growth_tracker(self.device)
        assert self._scale is not None
        return self._scale

    def skip_unless_finite(self, optimizer: torch.optim.Optimizer, grad_norm: Tensor) -> None:
        """Mark the step of an unscaled optimizer as one to skip if the gradient norm is not finite.

        Finite gradients can have an infinite norm; clipping by it would turn them into zeros, and weight decay
        and moments would move on nothing.
        """
        for found_inf in self._found_inf_per_device(optimizer).values():
            found_inf.logical_or_(torch.isfinite(grad_norm).logical_not().to(found_inf.device))

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Count the step as applied or skipped, and adapt the scale, all on the device."""
        self._count()
        super().update(new_scale if self.dynamic else 1.0)
        if self.dynamic:
            self.loss_scale.clamp_(self.min_scale, self.max_scale)

    def read(self) -> ScaleState:
        """Return the state on the host, in one copy.

        Raises:
            ScaleCollapsed: the last `max_consecutive_skips` steps or more were all skipped.
        """
        wide = torch.float32 if self.device.type == "mps" else torch.float64
        counters = (self.loss_scale, self.applied, self.skipped, self._skipped_in_a_row)
        scale, applied, skipped, in_a_row = torch.stack([value.to(wide) for value in counters]).tolist()
        if in_a_row >= self.max_consecutive_skips:
            raise ScaleCollapsed(
                f"the last {in_a_row:.0f} steps had non-finite gradients and were skipped, loss scale {scale:g}:"
                " look for NaN in the data or the model, or lower the learning rate"
            )
        return ScaleState(scale, int(applied), int(skipped))

    def state_dict(self) -> dict[str, Any]:
        """Return GradScaler's state and the counters, as plain numbers (a host read)."""
        counters = {"applied": self.applied, "skipped": self.skipped, "skipped_in_a_row": self._skipped_in_a_row}
        return {
            **super().state_dict(),
            "dynamic": self.dynamic,
            **{name: int(value.item()) for name, value in counters.items()},
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state; an empty one changes nothing, and one saved in the other mode gives only its counters."""
        if not state_dict:
            return
        if state_dict.get("dynamic", True) == self.dynamic:
            super().load_state_dict(state_dict)
        self.applied.fill_(state_dict.get("applied", 0))
        self.skipped.fill_(state_dict.get("skipped", 0))
        self._skipped_in_a_row.fill_(state_dict.get("skipped_in_a_row", 0))

    def _unscale_grads_(
        self, optimizer: torch.optim.Optimizer, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[torch.device, Tensor]:
        """Unscale as GradScaler does; a step without any gradient is one with nothing to do, not an error."""
        found = super()._unscale_grads_(optimizer, inv_scale, found_inf, allow_fp16)
        self._has_gradients = self._has_gradients or bool(found)
        return found or {self.device: found_inf}

    def _count(self) -> None:
        states = self._per_optimizer_states.values()
        found = [value.to(self.device) for state in states for value in state["found_inf_per_device"].values()]
        if found:
            self.found_inf = found[0] if len(found) == 1 else torch.stack(found).amax()
        if self._has_gradients:
            hit = self.found_inf.to(torch.int64)
            self.applied.add_(1).sub_(hit)
            self.skipped.add_(hit)
            self._skipped_in_a_row.add_(1).mul_(hit)
        self._has_gradients = False
