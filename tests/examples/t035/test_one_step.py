"""A step by itself: it trains as the benchmark's worker does, and says so where its loss is worth nothing."""

from dataclasses import replace

import pytest
import torch

from amp_core.benchmark.setup import BenchmarkFailed
from amp_core.benchmark.workload import TrainingWorker, workload_for
from amp_core.precision import precision_for
from examples.t035.one_step import CHECKED_EVERY, Step, make_step

CPU = torch.device("cpu")


@pytest.mark.parametrize("arm", ["fp32", "bf16", "bf16_by_hand"])
def test_step_trains_as_the_benchmark_does(arm: str) -> None:
    whole = workload_for(CPU)
    workload = replace(whole, model=replace(whole.model, width=64))
    worker = workload.worker(arm, CPU, workload.batches(CPU))
    worker.run(3)
    step = make_step(arm, "cpu", width=64)
    losses = [step() for _ in range(3)]
    assert torch.equal(torch.stack(losses), torch.stack(worker.losses))
    assert losses[2] < losses[0]
    assert not any(loss.requires_grad for loss in losses)
    assert step.items_per_step == workload.tokens  # type: ignore[attr-defined]  # the gate asks for it by name


def test_loss_that_is_not_finite_is_no_step() -> None:
    worker = TrainingWorker(lambda _: torch.tensor(float("nan")), ((torch.zeros(1),),), precision_for("fp32", "cpu"))
    step = Step(worker, "bf16", 1)
    for _ in range(CHECKED_EVERY - 1):
        step()
    with pytest.raises(BenchmarkFailed, match="arm 'bf16' reached a loss that is not finite"):
        step()


def test_smaller_batch_is_a_smaller_step() -> None:
    step = make_step("fp32", "cpu", 1)
    assert step.items_per_step * 4 == workload_for(CPU).tokens  # type: ignore[attr-defined]
    assert step().isfinite()
