"""Tests of what the recipe says of Accelerate: when one of them fails, the recipe wants an update."""

import math
from collections.abc import Iterator

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState, PartialState
from torch import nn

from amp_core.scaler import LossScaler


@pytest.fixture(autouse=True)
def fresh_state() -> Iterator[None]:
    """Let each test make an Accelerator of its own: its state is one for the process."""
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()
    yield
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()


def says_skipped(*, fused: bool, overflow: bool) -> bool:
    """Return whether Accelerate says that a step was skipped, with torch's own scaler."""
    accelerator = Accelerator(cpu=True, mixed_precision="no")
    accelerator.scaler = torch.amp.GradScaler("cpu")
    model = nn.Linear(4, 2)
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), fused=fused))
    before = model.weight.detach().clone()
    accelerator.backward(model(torch.ones(1, 4)).sum() * (math.inf if overflow else 1.0))
    optimizer.step()
    assert torch.equal(before, model.weight) == overflow
    return bool(optimizer.step_was_skipped)


def test_accelerate_does_not_see_that_a_fused_optimizer_skipped() -> None:
    assert says_skipped(fused=False, overflow=True)
    assert not says_skipped(fused=False, overflow=False)
    assert not says_skipped(fused=True, overflow=True)


def test_accelerate_runs_float32_on_a_cpu_where_fp16_was_asked_for() -> None:
    accelerator = Accelerator(cpu=True, mixed_precision="fp16")
    model = accelerator.prepare(nn.Linear(4, 2))
    seen: list[torch.dtype] = []
    model.register_forward_hook(lambda _, __, output: seen.append(output.dtype))
    model(torch.ones(1, 4))
    assert (accelerator.mixed_precision, seen, accelerator.scaler) == ("fp16", [torch.float32], None)


def test_accelerates_clipping_does_not_unscale_for_a_scaler_that_it_did_not_make() -> None:
    accelerator = Accelerator(cpu=True, mixed_precision="no")
    accelerator.scaler = LossScaler("cpu", dynamic=True)
    model = accelerator.prepare(nn.Linear(4, 2))
    accelerator.backward(model(torch.ones(1, 4)).sum())
    norm = accelerator.clip_grad_norm_(model.parameters(), 1e9)
    assert norm.item() == pytest.approx(2.0**16 * math.sqrt(10))


def test_accelerate_divides_a_shorter_last_window_by_the_full_length() -> None:
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
    data = torch.utils.data.TensorDataset(torch.ones(5, 1))
    model = nn.Linear(1, 1, bias=False)
    model, batches = accelerator.prepare(model, torch.utils.data.DataLoader(data, batch_size=1))
    grads = []
    for (inputs,) in batches:
        with accelerator.accumulate(model):
            accelerator.backward(model(inputs).sum())
            if accelerator.sync_gradients:
                grads.append(model.weight.grad.item())
                model.zero_grad()
    assert grads == [1.0, 0.25]  # both windows have the mean gradient 1
