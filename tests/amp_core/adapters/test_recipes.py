"""The recipes' code blocks run as they stand; what Accelerate does not allow is in the conformance suite's table."""

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
    assert any(re.search(r"ProfilerStep\* .* 3 *$", line) for line in run("recipes/profiler.md"))
    assert Path("trace.json").stat().st_size > 1000


def test_accelerates_clipping_does_not_unscale_for_a_scaler_that_it_did_not_make() -> None:
    accelerator = Accelerator(cpu=True, mixed_precision="no")
    accelerator.scaler = LossScaler("cpu", dynamic=True)
    model = accelerator.prepare(nn.Linear(4, 2))
    accelerator.backward(model(torch.ones(1, 4)).sum())
    assert accelerator.clip_grad_norm_(model.parameters(), 1e9).item() == pytest.approx(2.0**16 * math.sqrt(10))
