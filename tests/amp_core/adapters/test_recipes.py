"""The recipes' code blocks run as they stand, and Accelerate is as its recipe says, or the recipe wants an update."""

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState, PartialState
from torch import nn

from amp_core.scaler import LossScaler


@pytest.fixture(autouse=True)
def fresh_state() -> Iterator[None]:
    """Let each test make an Accelerator of its own: its state is one for the process."""
    yield
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()


def steps(state: str) -> int:
    """Return the steps of a printed ScaleState; fp16 may have found its scale by a few skips."""
    found = re.fullmatch(r"ScaleState\(scale=(\S+), applied=(\d+), skipped=(\d+)\)", state)
    assert found, state
    scale, applied, skipped = map(float, found.groups())
    assert scale == 2.0 ** (16 - skipped)
    assert skipped < 4
    return int(applied + skipped)


def test_accelerate_launches_and_the_train_step_steps(run: Callable[..., list[str]]) -> None:
    printed = run("recipes/accelerate.md")
    assert printed[0].startswith("bf16 because bf16 was requested by name")
    assert printed[1:] == [
        "loss scale 1.0 steps ScaleState(scale=1.0, applied=4, skipped=0)",
        "host reads 0",
        "problems ()",
    ]


def test_accelerates_own_loop_runs_with_this_scaler(run: Callable[..., list[str]]) -> None:
    printed = run("recipes/accelerate.md", 1)
    assert printed[0].startswith("fp16 because fp16 was requested by name")
    assert steps(printed[1]) == 4
    assert printed[2:] == ["host reads 0", "problems ()", "skipped True"]


@pytest.mark.filterwarnings("ignore")  # Lightning's own
def test_lightning_trains_with_the_plugin_and_logs_with_the_callback(run: Callable[..., list[str]]) -> None:
    printed = run("recipes/lightning.md")
    assert printed[-2].startswith("fp16 because fp16 was requested by name")
    assert steps(printed[-1]) == 5 * 3
    header, *rows = Path("logs/metrics.csv").read_text(encoding="utf-8").splitlines()
    assert "amp/loss_scale" in header
    assert len(rows) == 3


def test_the_script_for_several_ranks_trains_alone(run: Callable[..., list[str]]) -> None:
    (alone,) = run("recipes/distributed.md")
    assert re.fullmatch(r"rank 0 of 1: loss \d\.\d{4}, 10 steps applied", alone)


def test_a_profiler_sees_the_steps_that_it_asks_for(run: Callable[..., list[str]]) -> None:
    printed = run("recipes/profiler.md")
    assert any(re.search(r"ProfilerStep\* .* 3 *$", line) for line in printed)
    assert Path("trace.json").stat().st_size > 1000


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
