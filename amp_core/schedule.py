"""Learning rates as a function of the steps that were really applied."""

import math
from collections.abc import Callable

import torch
from torch import Tensor


class Schedule:
    """Sets an optimizer's learning rates from a table of factors, indexed on the device by applied steps.

    A skipped step does not advance the index, and looking it up reads nothing back to the host. The optimizer's
    learning rates become float32 scalars on `device`. After the table's end its last factor stays.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        factor: Callable[[int], float],
        *,
        steps: int,
        device: torch.device | str,
    ) -> None:
        if steps < 1:
            raise ValueError(f"steps must be at least 1 for a schedule, found {steps!r}")
        self._factors = torch.tensor([factor(step) for step in range(steps)], device=device)
        self._base = [torch.tensor(float(group["lr"]), device=device) for group in optimizer.param_groups]
        self._rates = [base.clone() for base in self._base]
        for group, rate in zip(optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate
        self.advance(torch.zeros((), dtype=torch.int64, device=device))

    @property
    def lr(self) -> Tensor:
        """Return the first group's learning rate, a live scalar that `advance` changes in place."""
        return self._rates[0]

    def advance(self, applied: Tensor) -> None:
        """Set the rates for the next step; `applied` is an int64 scalar on the device."""
        factor = self._factors.take(applied.clamp(max=self._factors.numel() - 1))
        for rate, base in zip(self._rates, self._base, strict=True):
            torch.mul(base, factor, out=rate)


def warmup_cosine(steps: int, *, warmup: int, floor: float = 0.1) -> Callable[[int], float]:
    """Return a factor that rises linearly for `warmup` steps, then falls along a cosine to `floor` at `steps`."""

    def factor(applied: int) -> float:
        if applied < warmup:
            return (applied + 1) / warmup
        progress = min(1.0, (applied - warmup) / max(1, steps - warmup))
        return floor + (1.0 - floor) * 0.5 * (1.0 + math.cos(math.pi * progress))

    return factor
