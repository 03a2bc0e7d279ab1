"""Learning rates as a function of the steps that were really applied."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


class Schedule:
    """Sets the learning rates of one or several optimizers from a table of factors, indexed by applied steps.

    The index lives on the device: a skipped step does not advance it, and looking it up reads nothing back to the
    host. The optimizers' learning rates become float32 scalars on the parameters' device. After the table's end its
    last factor stays.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer],
        factor: Callable[[int], float],
        *,
        steps: int,
        device: torch.device | str | None = None,
    ) -> None:
        if steps < 1:
            raise ValueError(f"steps must be at least 1 for a schedule, found {steps!r}")
        device = _device_of(_groups(optimizer), device)
        self._factors = torch.tensor([factor(step) for step in range(steps)], device=device)
        self._base = [torch.tensor(float(group["lr"]), device=device) for group in _groups(optimizer)]
        self._rates = [base.clone() for base in self._base]
        self.bind(optimizer)
        self.advance(torch.zeros((), device=device))

    @property
    def lr(self) -> Tensor:
        """Return the first group's learning rate, a live scalar that `advance` changes in place."""
        return self._rates[0]

    def bind(self, optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer]) -> None:
        """Give the optimizer these rates; loading an optimizer's state puts others in their place.

        Raises:
            ValueError: there are not as many parameter groups as the schedule has rates, or one takes none of them.
        """
        groups = _groups(optimizer)
        if len(groups) != len(self._rates):
            raise ValueError(
                f"the schedule was made for {len(self._rates)} parameter groups, found {len(groups)}:"
                " make it after the last add_param_group"
            )
        for group, rate in zip(groups, self._rates, strict=True):
            if group.get("foreach") and not group.get("capturable"):
                raise ValueError(
                    "foreach optimizers take no learning rate on the device: pass fused=True, or capturable=True"
                )
            group["lr"] = rate

    def advance(self, applied: Tensor) -> None:
        """Set the rates for the next step; `applied` is a whole number in a scalar on the device, of any dtype."""
        factor = self._factors.take(applied.clamp(max=self._factors.numel() - 1).long())
        for rate, base in zip(self._rates, self._base, strict=True):
            torch.mul(base, factor, out=rate)


def _device_of(groups: list[dict[str, Any]], asked: torch.device | str | None) -> torch.device:
    """Return the parameters' device; one that was asked for must be it."""
    device: torch.device = groups[0]["params"][0].device
    if asked is not None and (torch.empty(0, device=asked).device if asked != device else device) != device:
        raise ValueError(f"the schedule must be on the parameters' device {device}, found {str(asked)!r}: leave it out")
    return device


def _groups(optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer]) -> list[dict[str, Any]]:
    optimizers = [optimizer] if isinstance(optimizer, torch.optim.Optimizer) else optimizer
    return [group for each in optimizers for group in each.param_groups]


def warmup_cosine(steps: int, *, warmup: int, floor: float = 0.1) -> Callable[[int], float]:
    """Return a factor that rises linearly for `warmup` steps, then falls along a cosine to `floor` at `steps`."""

    def factor(applied: int) -> float:
        if applied < warmup:
            return (applied + 1) / warmup
        progress = min(1.0, (applied - warmup) / max(1, steps - warmup))
        return floor + (1.0 - floor) * 0.5 * (1.0 + math.cos(math.pi * progress))

    return factor
