"""Tests of the timed training step: every arm does the same work, and one that does not fails the benchmark."""

import pytest
import torch
from products import rounding, settable
from torch import Tensor
from workloads import SMALL

from amp_core.benchmark.arms import timed_arms
from amp_core.benchmark.setup import BenchmarkFailed
from amp_core.benchmark.steps import Timed, time_arms
from amp_core.benchmark.timing import Elapsed, clock_for
from amp_core.benchmark.workload import TrainingWorker, Workload
from amp_core.model import GPTConfig
from amp_core.precision import precision_for
from amp_core.step import Batch

CPU = torch.device("cpu")
ARMS = timed_arms(("fp32", "bf16", "fp16"))


def test_every_arm_starts_alike_and_really_trains() -> None:
    workload = Workload(GPTConfig(vocab_size=64, context=32, layers=1, heads=4, width=64), batch_size=4)
    batches = workload.batches(CPU)
    losses = {}
    for arm in ARMS:
        worker = workload.worker(arm, CPU, batches)
        worker.run(9)
        losses[arm] = [loss.item() for loss in worker.losses]
    for half in ("bf16", "fp16"):
        assert losses[half] == losses[f"{half}_by_hand"]
        assert losses["fp32"] == pytest.approx(losses[half], rel=0.02)
        assert losses["fp32"] != losses[half]
    assert losses["fp32"][8] < losses["fp32"][0]


@settable
@pytest.mark.parametrize(("arm", "setting"), [("fp32", "none"), ("tf32", "tf32"), ("bf16", "none")])
def test_an_arm_steps_with_its_own_matrix_product_setting_and_puts_it_back(arm: str, setting: str) -> None:
    seen: list[str] = []
    worker = SMALL.worker(arm, CPU, SMALL.batches(CPU))
    step = worker._step

    def watched(batch: Batch) -> Tensor:
        seen.append(rounding())
        return step(batch)

    worker._step = watched
    before = rounding()
    worker.run(2)
    assert seen == [setting, setting]
    assert rounding() == before


def test_a_training_worker_takes_its_batches_in_turn_and_keeps_its_losses() -> None:
    batches = [(torch.tensor(float(value)),) for value in range(3)]
    worker = TrainingWorker(lambda batch: batch[0] * 10, batches, precision_for("fp32", "cpu"))
    worker.run(2)
    worker.run(3)
    assert [loss.item() for loss in worker.losses] == [0.0, 10.0, 20.0, 0.0, 10.0]


@pytest.mark.parametrize(
    ("broken", "message"),
    [("takes fewer steps", r"took \d+ steps, expected \d+$"), ("diverges", "reached a loss that is not finite")],
)
def test_an_arm_that_does_other_work_fails(broken: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = TrainingWorker.run

    def worse(worker: TrainingWorker, steps: int) -> None:
        of_bf16 = worker._precision.name == "bf16"
        run(worker, max(1, steps - 1) if of_bf16 and broken == "takes fewer steps" else steps)
        if of_bf16 and broken == "diverges":
            worker.losses[-1] = torch.tensor(float("nan"))

    monkeypatch.setattr(TrainingWorker, "run", worse)
    with pytest.raises(BenchmarkFailed, match=rf"^arm 'bf16' {message}"):
        time_arms(SMALL, ("fp32", "bf16"), CPU, clock_for(CPU), rounds=1, segment_s=0.001)


def test_a_gpu_has_no_cpu_times() -> None:
    assert Timed({"fp32": (Elapsed(2.0, None),)}, {}, 1).step_cpu_time_s == {}
    assert Timed({"fp32": (Elapsed(2.0, 1.0),)}, {}, 1).step_cpu_time_s == {"fp32": (1.0,)}
