"""Tests that a step's gradients are its own, whoever else ran a backward pass through its model."""

import pytest
import torch
from torch import Tensor, nn

from amp_core.step import Batch, TrainStep

NAMES = ("fp32", "bf16", "fp16")
BATCH = (torch.ones(1, 2),)


def still(module: nn.Module) -> torch.optim.Optimizer:
    """Return an optimizer that moves nothing: the same step has the same gradient each time."""
    return torch.optim.SGD(module.parameters(), lr=0.0, fused=True)


def output(model: nn.Module, batch: Batch) -> Tensor:
    loss: Tensor = model(batch[0]).float().mean() / 64  # the first loss scale does not overflow
    return loss


def a_step(model: nn.Module, optimizer: torch.optim.Optimizer, name: str) -> TrainStep:
    return TrainStep(model, optimizer, name, output, max_grad_norm=None)


@pytest.mark.parametrize("name", NAMES)
def test_steps_in_turn_leave_each_other_no_gradients(name: str) -> None:
    generator, critic = nn.Linear(2, 2, bias=False), nn.Linear(2, 1, bias=False)
    both = nn.Sequential(generator, critic)
    of_critic, of_generator = a_step(critic, still(critic), name), a_step(both, still(generator), name)
    norms = [(of_critic(BATCH).grad_norm.item(), of_generator(BATCH).grad_norm.item()) for _ in range(3)]
    assert norms == [norms[0]] * 3


@pytest.mark.parametrize("name", NAMES)
def test_a_backward_of_the_users_own_does_not_count(name: str) -> None:
    model = nn.Linear(2, 1, bias=False)
    step = a_step(model, still(model), name)
    expected = step(BATCH).grad_norm.item()
    (output(model, BATCH) * 1e3).backward()  # type: ignore[no-untyped-call]  # torch declares no types for it
    assert step(BATCH).grad_norm.item() == expected


@pytest.mark.parametrize("name", NAMES)
def test_parameters_trained_later_bring_no_old_gradients(name: str) -> None:
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 1, bias=False))
    step = a_step(model, still(model[1]), name)
    for _ in range(3):
        step(BATCH)
    step.optimizer.add_param_group({"params": model[0].parameters()})
    assert step(BATCH).grad_norm.item() == a_step(model, still(model), name)(BATCH).grad_norm.item()
