"""Tests of learning rates by applied steps."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler

from amp_core import schedule as schedules
from amp_core.schedule import Schedule, warmup_cosine
from amp_core.step import TrainStep

SCHEDULERS: dict[str, Callable[[torch.optim.Optimizer], lr_scheduler.LRScheduler]] = {
    "cosine": lambda optimizer: lr_scheduler.CosineAnnealingLR(optimizer, 5),
    "one cycle": lambda optimizer: lr_scheduler.OneCycleLR(optimizer, 0.5, total_steps=9, cycle_momentum=False),
    "lambda": lambda optimizer: lr_scheduler.LambdaLR(optimizer, lambda step: step / 4),
    "warmup": lambda optimizer: lr_scheduler.SequentialLR(
        optimizer,
        [lr_scheduler.LinearLR(optimizer, 0.1, total_iters=3), SCHEDULERS["one cycle"](optimizer)],
        milestones=[3],
    ),
}


def of_two_groups() -> tuple[nn.Sequential, torch.optim.Optimizer]:
    model = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    groups = [{"params": part.parameters(), "lr": lr} for part, lr in zip(model, (0.4, 0.1), strict=True)]
    return model, torch.optim.AdamW(groups, fused=True)


@pytest.mark.filterwarnings("ignore:The epoch parameter:UserWarning")  # torch 2.8's SequentialLR passes it itself
@pytest.mark.parametrize("make", SCHEDULERS.values(), ids=SCHEDULERS)
@pytest.mark.parametrize("steps", [9, None], ids=["table", "growing table"])
def test_torch_s_own_schedulers_follow_applied_steps(
    make: Callable[..., lr_scheduler.LRScheduler], steps: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedules, "FIRST_ROWS", 2)
    (model, ours), (_, other) = of_two_groups(), of_two_groups()
    theirs, scheduler = make(other), make(ours)
    given = Schedule.of(scheduler, steps=steps) if steps else scheduler
    step = TrainStep(model, ours, "fp16", lambda module, batch: module(batch[0]).float().mean(), schedule=given)
    for index in range(11):
        rates = [float(group["lr"]) for group in other.param_groups]
        assert [group["lr"].item() for group in ours.param_groups] == pytest.approx(rates)
        if not step((torch.tensor([[math.inf if index in (2, 5) else 1.0]]),)).found_inf:
            other.step()
            theirs.step()
        with pytest.raises(RuntimeError, match=r"^this scheduler was taken over, and follows applied steps: do"):
            scheduler.step()


def test_what_follows_more_than_steps_or_moves_more_than_rates_is_refused() -> None:
    optimizer = of_two_groups()[1]
    with pytest.raises(ValueError, match=r"^ReduceLROnPlateau follows a metric: call its step in fit's on_validation$"):
        Schedule.of(lr_scheduler.ReduceLROnPlateau(optimizer), steps=9)
    with pytest.raises(ValueError, match=r"^OneCycleLR moves more than rates: pass cycle_momentum=False$"):
        Schedule.of(lr_scheduler.OneCycleLR(optimizer, 0.5, total_steps=9), steps=9)
    with pytest.raises(ZeroDivisionError):
        Schedule.of(lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (5 - step)))


def test_a_growing_table_reaches_as_far_as_a_loop_of_one_s_own() -> None:
    _, optimizer = of_two_groups()
    Schedule.of(lr_scheduler.StepLR(optimizer, 3000)).advance(torch.tensor(3000))
    assert [group["lr"].item() for group in optimizer.param_groups] == pytest.approx([0.04, 0.01])


@pytest.mark.parametrize(("applied", "factor"), [(2, 0.5), (99, 0.25)])
def test_each_group_keeps_its_own_base_rate_and_the_last_one_after_the_table_s_end(applied: int, factor: float) -> None:
    _, optimizer = of_two_groups()
    schedule = Schedule(optimizer, lambda step: 1.0 - step / 4, steps=4, device="cpu")
    schedule.advance(torch.tensor(applied))
    assert [group["lr"].item() for group in optimizer.param_groups] == pytest.approx([0.4 * factor, 0.1 * factor])
    assert schedule.lr.item() == pytest.approx(0.4 * factor)


def test_warmup_rises_to_one_and_the_cosine_falls_to_the_floor() -> None:
    factor = warmup_cosine(100, warmup=10, floor=0.1)
    values = [factor(step) for step in range(101)]
    assert values[0] == 0.1
    assert values[9] == values[10] == 1.0
    assert values[55] == pytest.approx(0.55)
    assert values[100] == pytest.approx(0.1)
    assert values[10:] == sorted(values[10:], reverse=True)


def test_a_schedule_has_steps_and_lies_where_the_parameters_do() -> None:
    optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0, fused=True)
    assert Schedule(optimizer, lambda _: 1.0, steps=1).lr.device == torch.device("cpu")
    with pytest.raises(ValueError, match="steps must be at least 1 for a schedule, found 0"):
        Schedule(optimizer, lambda _: 1.0, steps=0, device="cpu")
    with pytest.raises(ValueError, match=r"^the schedule must be on the parameters' device cpu, found 'meta'"):
        Schedule(optimizer, lambda _: 1.0, steps=1, device="meta")
