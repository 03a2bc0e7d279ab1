"""Tests that a step's gradients are its own, whoever else ran a backward pass through its model."""

import copy
from typing import Any

import pytest
import torch
from products import rounding, settable
from torch import Tensor, nn

from amp_core.precision import precision_for
from amp_core.step import Batch, TrainStep

NAMES = ("fp32", "bf16", "fp16")
BATCH = (torch.ones(1, 2),)


def still(module: nn.Module) -> torch.optim.Optimizer:
    """Return an optimizer that moves nothing: the same step has the same gradient each time."""
    return torch.optim.SGD(module.parameters(), lr=0.0, fused=True)


def output(model: nn.Module, batch: Batch) -> Tensor:
    loss: Tensor = model(batch[0]).float().mean() / 64  # the first loss scale does not overflow
    return loss


class Statistics(nn.Module):
    """BatchNorm, a buffer that nothing writes, and one that becomes another tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4, momentum=None), nn.Linear(4, 1))
        self.register_buffer("table", torch.arange(3))
        self.mean: Tensor = nn.Buffer(torch.zeros(8))

    def forward(self, inputs: Tensor) -> Tensor:
        self.mean = 0.5 * self.mean + inputs.mean(0)
        out: Tensor = self.layers(inputs)
        return out


def normalised(bad: int, name: str, how: str) -> nn.Module:
    """Train a model with BatchNorm for four steps, of which one overflows, fails in its middle, or is missing."""
    torch.manual_seed(0)
    model = Statistics()
    step = TrainStep(model, torch.optim.AdamW(model.parameters(), fused=True), name, out_of_memory_at_three)
    if how == "without" and name == "fp16":
        step.scaler.loss_scale.fill_(2.0**15)  # as after the overflow
    for index in range(4):
        if index != bad:
            step((torch.full((4, 8), 1.0 + index) * torch.arange(1.0, 5.0)[:, None],))
        elif how == "broken":
            with pytest.raises(torch.OutOfMemoryError):
                step((torch.ones(4, 8),), (torch.ones(3, 8),))
        elif how == "overflow":
            assert step((torch.full((4, 8), float("inf")),)).found_inf.item() == 1.0
    return model


def out_of_memory_at_three(model: nn.Module, batch: Batch) -> Tensor:
    loss = output(model, batch)
    if len(batch[0]) == 3:
        raise torch.OutOfMemoryError("as in a backward pass")
    return loss


@pytest.mark.parametrize("how", ["overflow", "broken"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bad", [0, 2])
def test_a_step_that_was_not_taken_leaves_the_buffers_as_they_were(bad: int, name: str, how: str) -> None:
    with_bad, without = normalised(bad, name, how), normalised(bad, name, "without")
    for (key, one), other in zip(with_bad.state_dict().items(), without.state_dict().values(), strict=True):
        torch.testing.assert_close(one, other, msg=key)


def test_half_a_step_is_neither_gone_on_from_nor_saved() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    first, second = (torch.optim.AdamW(part.parameters(), fused=True) for part in model)
    step = TrainStep(model, [first, second], "fp32", output)
    saved = copy.deepcopy(step.state_dict())

    def fail(*_: Any) -> None:
        raise torch.OutOfMemoryError("no memory for the moments")

    handle = second.register_step_pre_hook(fail)
    with pytest.raises(torch.OutOfMemoryError):
        step((torch.ones(4, 2),))
    handle.remove()
    for refused in (lambda: step((torch.ones(4, 2),)), step.state_dict):
        with pytest.raises(RuntimeError, match="OutOfMemoryError ended the last step after parameters had moved"):
            refused()
    step.load_state_dict(saved)
    assert step((torch.ones(4, 2),)).found_inf.item() == 0.0


@settable
@pytest.mark.parametrize(("name", "setting"), [("fp32", "ieee"), ("tf32", "tf32"), ("bf16", "ieee")])
def test_float32_products_are_as_asked_while_a_step_runs(name: str, setting: str) -> None:
    """Of torch's two ways to set them, the newer: reading the older one would then raise."""
    backends: Any = torch.backends
    seen = []

    def watched(model: nn.Module, batch: Batch) -> Tensor:
        seen.append(rounding())
        return output(model, batch)

    model, before = nn.Linear(2, 1), rounding()
    step = TrainStep(model, still(model), precision_for(name, "cpu"), watched)
    backends.mkldnn.matmul.fp32_precision = "tf32"
    try:
        step(BATCH)
        assert rounding() == "tf32"
    finally:
        backends.mkldnn.matmul.fp32_precision = before
    assert seen == [setting]
