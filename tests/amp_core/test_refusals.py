"""Tests of what is handled or refused in one line, where it would have gone wrong silently or much later."""

import pytest
import torch
from torch import Tensor, nn

from amp_core.ema import Ema
from amp_core.schedule import Schedule
from amp_core.step import Batch, TrainStep


def difference(model: nn.Module, batch: Batch) -> Tensor:
    loss: Tensor = (model(batch[0]) - batch[1]).square().mean()
    return loss


def adamw(module: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(module.parameters(), lr=0.1, fused=True)


def pair(rows: int) -> tuple[Tensor, Tensor]:
    return torch.randn(rows, 4), torch.randn(rows, 4)


def test_what_is_no_batch_is_refused_at_every_call() -> None:
    model = nn.Linear(4, 4)
    step = TrainStep(model, adamw(model), "fp32", difference)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"^a batch is a tuple of tensors, found a tensor of shape \(2, 4\)"):
            step(*pair(2))  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"^a batch is empty: its first tensor has shape \(0, 4\)"):
            step(pair(2), pair(0))
        step(pair(2))
    assert step.read().applied == 2


def test_parameters_that_come_later_are_averaged_from_then_on() -> None:
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    model, ema = nn.Sequential(first, second), Ema(first.parameters(), 0.5)
    step = TrainStep(model, adamw(first), "fp32", difference, ema=ema)
    step(pair(2))
    before = second.weight.detach().clone()
    step.optimizer.add_param_group({"params": second.parameters()})
    step(pair(2))
    expected = (before + second.weight) / 2
    with step.with_averages():
        torch.testing.assert_close(second.weight.detach(), expected.detach())


def test_a_schedule_lies_where_the_parameters_do() -> None:
    optimizer = adamw(nn.Linear(1, 1))
    assert Schedule(optimizer, lambda _: 1.0, steps=1).lr.device == torch.device("cpu")
    with pytest.raises(ValueError, match=r"^the schedule must be on the parameters' device cpu, found 'meta'"):
        Schedule(optimizer, lambda _: 1.0, steps=1, device="meta")


def test_a_learning_rate_elsewhere_is_reported_on_the_device() -> None:
    model = nn.Linear(4, 4, device="meta")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.param_groups[0]["lr"] = torch.tensor(0.1)
    with pytest.warns(UserWarning, match="is not fused"):
        step = TrainStep(model, optimizer, "fp32", difference)
    assert step.lr.device == torch.device("meta")
