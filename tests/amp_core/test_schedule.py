"""Tests of learning rates by applied steps."""

import pytest
import torch
from torch import nn

from amp_core.schedule import Schedule, warmup_cosine


def test_each_group_keeps_its_own_base_rate() -> None:
    one, other = nn.Linear(1, 1), nn.Linear(1, 1)
    groups = [{"params": one.parameters(), "lr": 1.0}, {"params": other.parameters(), "lr": 0.1}]
    optimizer = torch.optim.AdamW(groups, fused=True)
    schedule = Schedule(optimizer, lambda step: 1.0 - step / 4, steps=4, device="cpu")
    schedule.advance(torch.tensor(2))
    assert [group["lr"].item() for group in optimizer.param_groups] == pytest.approx([0.5, 0.05])
    assert schedule.lr.item() == 0.5


def test_the_last_rate_stays_after_the_table_s_end() -> None:
    optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0, fused=True)
    schedule = Schedule(optimizer, lambda step: 1.0 / (1 + step), steps=3, device="cpu")
    schedule.advance(torch.tensor(99))
    assert schedule.lr.item() == pytest.approx(1 / 3)


def test_warmup_rises_to_one_and_the_cosine_falls_to_the_floor() -> None:
    factor = warmup_cosine(100, warmup=10, floor=0.1)
    values = [factor(step) for step in range(101)]
    assert values[0] == 0.1
    assert values[9] == values[10] == 1.0
    assert values[55] == pytest.approx(0.55)
    assert values[100] == pytest.approx(0.1)
    assert values[10:] == sorted(values[10:], reverse=True)


def test_a_schedule_without_steps_is_refused() -> None:
    optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0, fused=True)
    with pytest.raises(ValueError, match="steps must be at least 1 for a schedule, found 0"):
        Schedule(optimizer, lambda _: 1.0, steps=0, device="cpu")


def test_a_schedule_lies_where_the_parameters_do() -> None:
    optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0, fused=True)
    assert Schedule(optimizer, lambda _: 1.0, steps=1).lr.device == torch.device("cpu")
    with pytest.raises(ValueError, match=r"^the schedule must be on the parameters' device cpu, found 'meta'"):
        Schedule(optimizer, lambda _: 1.0, steps=1, device="meta")
