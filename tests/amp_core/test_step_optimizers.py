"""Tests of a step with optimizers of every make: who leaves out a bad step, and what a checkpoint may decide."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from amp_core.ema import Ema
from amp_core.schedule import Schedule
from amp_core.step import Batch, TrainStep

NAMES = ("fp32", "bf16", "fp16")
FLAGS: dict[str, dict[str, Any]] = {"fused": {"fused": True}, "foreach": {"foreach": True}, "plain": {"foreach": False}}


class OwnScaling(torch.optim.Optimizer):
    """Says that it handles the loss scale, by torch's old keyword, as the fused optimizers of CUDA libraries do."""

    _step_supports_amp_scaling = True

    def __init__(self, params: Any) -> None:
        super().__init__(params, {"lr": 0.1})

    @torch.no_grad()
    def step(  # type: ignore[override]  # as it is written elsewhere
        self, closure: None = None, grad_scaler: torch.amp.GradScaler | None = None
    ) -> None:
        if grad_scaler is not None and any(found.item() for found in grad_scaler._check_inf_per_device(self).values()):
            return
        for group in self.param_groups:
            for param in group["params"]:
                param.sub_(param.grad, alpha=group["lr"])


class OwnFused(torch.optim.AdamW):
    """Inherits torch's fused step, and takes another."""

    def step(self, closure: Any = None) -> Any:
        for param in self.param_groups[0]["params"]:
            param.data.sub_(param.grad)


def error(model: nn.Module, batch: Batch) -> Tensor:
    loss: Tensor = model(batch[0]).float().square().mean() / 64
    return loss


def a_step(optimizer: Any = torch.optim.AdamW, name: str = "fp32", scheduled: bool = False, **flags: Any) -> TrainStep:
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    made = optimizer(model.parameters(), **flags)
    schedule = Schedule(made, lambda _: 1.0, steps=3, device="cpu") if scheduled else None
    return TrainStep(model, made, name, error, schedule=schedule)


def weights(step: TrainStep) -> list[Tensor]:
    return [param.detach().clone() for param in step.model.parameters()]


def same(left: list[Tensor], right: list[Tensor]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(left, right, strict=True))


@pytest.mark.filterwarnings("ignore:.* is not fused")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("optimizer", "flags"), [(OwnScaling, {}), (OwnFused, {"fused": True})])
def test_what_an_optimizer_says_of_itself_lets_no_bad_step_through(optimizer: Any, flags: Any, name: str) -> None:
    step = a_step(optimizer, name, **flags)
    step((torch.ones(4, 2),))
    good = weights(step)
    step((torch.full((4, 2), float("nan")),))
    assert same(good, weights(step))
    assert (step.read().applied, step.read().skipped) == (1, 1)
    step((torch.ones(4, 2),))
    assert not same(good, weights(step))


@pytest.mark.filterwarnings("ignore:.* is not fused")
@pytest.mark.parametrize("saved", FLAGS)
@pytest.mark.parametrize(
    ("loaded", "scheduled"), [("fused", False), ("fused", True), ("foreach", False), ("plain", True)]
)
def test_a_checkpoint_does_not_choose_the_implementation(saved: str, loaded: str, scheduled: bool) -> None:
    first, again = a_step(**FLAGS[saved]), a_step(scheduled=scheduled, **FLAGS[loaded])
    first((torch.ones(4, 2),))
    again.load_state_dict(first.state_dict())
    assert {flag: again.optimizer.param_groups[0][flag] for flag in FLAGS[loaded]} == FLAGS[loaded]
    first((torch.ones(4, 2),))
    again((torch.ones(4, 2),))
    for one, other in zip(weights(first), weights(again), strict=True):
        torch.testing.assert_close(one, other)


class Refuses(torch.optim.SGD):
    """Cannot load a state."""

    def load_state_dict(self, state_dict: Any) -> None:
        if state_dict["state"]:
            raise ValueError("not this one")
        super().load_state_dict(state_dict)


@pytest.mark.filterwarnings("ignore:.* is not fused")
@pytest.mark.parametrize("part", ["optimizer", "averages"])
def test_a_state_is_loaded_whole_or_not_at_all(part: str) -> None:
    def build(second: Any) -> TrainStep:
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
        second.__name__ = "SGD"
        first = torch.optim.AdamW(model[0].parameters(), fused=True)
        made = [first, second(model[1].parameters(), lr=0.1, momentum=0.9)]
        return TrainStep(model, made, "fp32", error, ema=Ema(model.parameters(), 0.9))

    first, again = build(torch.optim.SGD), build(Refuses if part == "optimizer" else torch.optim.SGD)
    for step in (first, again):
        step((torch.ones(4, 2),))
    state = first.state_dict()
    if part == "averages":
        state["ema"] = {"averages": [torch.zeros(7)]}
    twin = build(torch.optim.SGD)
    twin.load_state_dict(again.state_dict())
    with pytest.raises(ValueError, match=r"not this one|averages"):
        again.load_state_dict(state)
    assert same(weights(again), weights(twin))
    assert same(*([*each.optimizer.state_dict()["state"][0].values()] for each in (again, twin)))
