"""Learning rates as a function of the steps that were really applied."""

import copy
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Self

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

FIRST_ROWS = 1024  # of the table of a scheduler that goes on for ever


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
        base = torch.tensor([[float(group["lr"]) for group in _groups(optimizer)]], device=device)
        self._table = (base * torch.tensor([[factor(step)] for step in range(steps)], device=device)).squeeze(1)
        self._rows: Iterator[list[float]] | None = None  # what follows in a table that grows
        self._all = base.squeeze(1)  # a row of the table, whose rates move in one kernel; of one group it is (1,)
        self._rates = self._all.view(-1).unbind()
        self.bind(optimizer)
        self.advance(torch.zeros((), device=device))

    @classmethod
    def of(cls, *schedulers: LRScheduler, steps: int | None = None) -> Self:
        """Return the rates of torch's own schedulers, one an optimizer, from where they stand; call them no more.

        The table grows as long as training goes on, or ends after `steps`.

        Raises:
            ValueError: one needs a metric, or moves more than learning rates.
        """
        rows = (list(chain(*each)) for each in zip(*map(_rates_of, schedulers), strict=False))
        first = list(islice(rows, FIRST_ROWS if steps is None else steps))
        self = cls([each.optimizer for each in schedulers], lambda _: 1.0, steps=1)
        self._table = torch.tensor(first, device=self.lr.device).squeeze(1)
        self._rows = rows if steps is None else None
        for scheduler in schedulers:
            scheduler.step = _refuse  # type: ignore[assignment,method-assign]  # it would move the rates once more
        self.advance(torch.zeros((), device=self.lr.device), at_most=0)
        return self

    @property
    def lr(self) -> Tensor:
        """Return the first group's learning rate, a live scalar that `advance` changes in place."""
        return self._rates[0]

    def moves(self, optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer]) -> bool:
        """Say whether the rates of all the optimizers' groups are this schedule's."""
        return [id(group["lr"]) for group in _groups(optimizer)] == [*map(id, self._rates)]

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

    def advance(self, applied: Tensor, at_most: int | None = None) -> None:
        """Set the rates for the next step; `applied` is a whole number in a scalar on the device, of any dtype.

        `at_most`, which it does not exceed, spares a table that grows a host read, and others a kernel.
        """
        if self._rows is not None:
            self._reach(int(applied) if at_most is None else at_most)
        row, last = applied if applied.dtype is torch.int64 else applied.long(), self._table.shape[0] - 1
        torch.index_select(
            self._table, 0, row.clamp(max=last) if at_most is None or at_most > last else row, out=self._all
        )

    def _reach(self, step: int) -> None:
        """Have the table reach a step; it doubles, so that it grows seldom."""
        if self._rows is not None and step >= len(self._table):
            more = list(islice(self._rows, max(step, len(self._table))))
            if not more:
                self._rows = None
                return
            self._table = torch.cat([self._table, torch.tensor(more, device=self.lr.device).squeeze(1)])


def _refuse(*_: object) -> None:
    raise RuntimeError("this scheduler was taken over, and follows applied steps: do not call its step any more")


def _rates_of(scheduler: LRScheduler) -> Iterator[list[float]]:
    """Yield the rates of each group, step by step, by a copy of the scheduler on an optimizer without parameters."""
    if isinstance(scheduler, ReduceLROnPlateau):
        raise ValueError("ReduceLROnPlateau follows a metric: call its step in fit's on_validation")  # noqa: TRY004
    optimizer = torch.optim.SGD([torch.zeros(0)])
    groups = [{**group, "params": [], "lr": float(group["lr"])} for group in scheduler.optimizer.param_groups]
    optimizer.param_groups = groups
    others = [{**group, "lr": None} for group in groups]
    moved = copy.deepcopy(scheduler, {id(scheduler.optimizer): optimizer})
    while True:
        yield [group["lr"] for group in groups]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch misses the optimizer's steps
            try:
                type(moved).step(moved)
            except ValueError:
                parts = (moved, *getattr(moved, "_schedulers", ()))  # a SequentialLR's
                if any(hasattr(part, "total_steps") for part in parts):  # OneCycleLR has an end
                    return
                raise
        if others != [{**group, "lr": None} for group in groups]:
            raise ValueError(f"{type(scheduler).__name__} moves more than rates: pass cycle_momentum=False")


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
