"""Tests of the benchmark: a real run of it, and what it refuses."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from amp_core import benchmark
from amp_core.benchmark import BenchmarkFailed, main, time_arms
from amp_core.model import GPTConfig
from amp_core.samples import SCHEMA
from amp_core.timing import TrainingWorker
from amp_core.workload import CPU_ARMS, Workload, workload_for

CPU = torch.device("cpu")
SMALL = Workload(GPTConfig(vocab_size=8, context=4, layers=1, heads=1, width=8), batch_size=2)


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "amp_core.benchmark", *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=300, check=False)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("benchmark") / "samples.json"
    done = run_command("--smoke", "--device", "cpu", "--out", str(out))
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(out.read_text(encoding="utf-8"))


@pytest.mark.criterion("T035/AC5")
def test_a_smoke_run_writes_a_valid_samples_file(samples: Any) -> None:
    assert list(samples) == ["schema", "device", "environment", "settings", "timing", "metrics"]
    assert samples["schema"] == SCHEMA
    assert (samples["device"]["type"], sorted(samples["device"])) == ("cpu", ["capabilities", "name", "type"])
    assert samples["environment"]["torch"] == torch.__version__
    assert samples["environment"]["threads"] == "1"
    assert samples["settings"]["float32_matmul_precision"] == "highest"
    for strings in (samples["environment"], samples["settings"]):
        assert all(isinstance(text, str) and text for pair in strings.items() for text in pair)
    for metric in samples["metrics"].values():
        assert list(metric) == ["unit", "direction", "paired", "arms"]


@pytest.mark.criterion("T035/AC5")
def test_a_smoke_run_times_every_arm_in_every_round(samples: Any) -> None:
    metric = samples["metrics"]["step_time_s"]
    assert (metric["unit"], metric["direction"], metric["paired"]) == ("s", "lower", True)
    assert {arm: len(values) for arm, values in metric["arms"].items()} == dict.fromkeys(CPU_ARMS, 8)
    times = [time for values in metric["arms"].values() for time in values]
    assert all(math.isfinite(time) and 1e-5 < time < 10.0 for time in times)
    assert len(set(times)) == len(times)


@pytest.mark.criterion("T035/AC6")
def test_a_smoke_run_trains_every_precision_to_the_same_accuracy(samples: Any) -> None:
    arms = samples["metrics"]["val_accuracy"]["arms"]
    assert {arm: len(values) for arm, values in arms.items()} == {"fp32": 6, "bf16": 6, "fp16": 6}
    for arm in ("bf16", "fp16"):
        assert all(abs(one - other) < 0.01 for one, other in zip(arms["fp32"], arms[arm], strict=True))
    assert min(arms["fp32"]) > 0.4
    assert int(samples["settings"]["quality_val_tokens"]) > 2000
    steps = [samples["metrics"][name]["arms"] for name in ("applied_steps", "skipped_steps")]
    for arm in ("bf16", "fp16"):
        assert [sum(pair) for pair in zip(steps[0][arm], steps[1][arm], strict=True)] == [30.0] * 6
    assert all(scale >= 1.0 for scale in samples["metrics"]["final_loss_scale"]["arms"]["fp16"])


def test_peak_memory_is_not_reported_for_a_cpu(samples: Any) -> None:
    assert "peak_memory_bytes" not in samples["metrics"]


@pytest.mark.criterion("T035/AC5")
def test_without_a_gpu_a_cuda_benchmark_is_refused_and_writes_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "amp_core.benchmark", "--device", "cuda", "--out", str(tmp_path / "samples.json")]
    hidden = {"CUDA_VISIBLE_DEVICES": "", "PATH": ""}  # so that it is the same on a machine that has one
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False, env=hidden
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: device 'cuda' was requested, but no CUDA device is visible")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "/nowhere/at/all.json"], "error: cannot write '/nowhere/at/all.json': there is no folder"),
        (["--out", "x.json", "--rounds", "5"], "error: argument --rounds: expected a number of at least 6, found '5'"),
        (["--out", "x.json", "--seeds", "-1"], "error: argument --seeds: expected a number of at least 6, found '-1'"),
        (
            ["--out", "x.json", "--threads", "0"],
            "error: argument --threads: expected a number of at least 1, found '0'",
        ),
        ([], "error: the following arguments are required: --out"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["--device", "cpu", *arguments])
    except SystemExit as caught:
        assert isinstance(caught.code, int)
        code = caught.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith(message)
    assert err.count("\n") == 1


@pytest.mark.criterion("T035/AC6")
def test_a_benchmark_whose_models_learned_nothing_fails_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmark, "workload_for", lambda _: SMALL)
    monkeypatch.setattr(benchmark, "_plan", lambda _: benchmark.Plan(rounds=1, seeds=1, train_steps=1, threads=1))
    assert main(["--device", "cpu", "--out", str(tmp_path / "samples.json")]) == 1
    assert capsys.readouterr().err.startswith("error: arm 'fp32' learned nothing: accuracy 0.")
    assert list(tmp_path.iterdir()) == []


def test_every_arm_starts_alike_and_really_trains() -> None:
    workload = workload_for(CPU)
    batches = workload.batches(CPU)
    losses = []
    for arm in CPU_ARMS:
        worker = workload.worker(arm, CPU, batches)
        worker.run(9)
        losses.append([loss.item() for loss in worker.losses])
    assert losses[1] == losses[2]
    assert losses[0] == pytest.approx(losses[1], rel=0.02)
    assert losses[0] != losses[1]
    assert losses[0][8] < losses[0][0]


class Lazy(TrainingWorker):
    """A worker that takes fewer steps than it is asked for."""

    def run(self, steps: int) -> None:
        super().run(max(1, steps - 1))


def test_an_arm_that_takes_fewer_steps_fails_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Workload.worker

    def worker(self: Workload, arm: str, device: torch.device, batches: Any) -> TrainingWorker:
        made = original(self, arm, device, batches)
        return Lazy(made._step, batches) if arm == "bf16" else made

    monkeypatch.setattr(Workload, "worker", worker)
    with pytest.raises(BenchmarkFailed, match=r"^arm 'bf16' took \d+ steps, expected \d+$"):
        time_arms(SMALL, CPU, 1)


def test_an_arm_that_diverges_fails_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    def worker(_: Workload, arm: str, __: torch.device, batches: Any) -> TrainingWorker:
        return TrainingWorker(lambda _: torch.tensor(float("nan") if arm == "bf16" else 1.0), batches)

    monkeypatch.setattr(Workload, "worker", worker)
    with pytest.raises(BenchmarkFailed, match="arm 'bf16' reached a loss that is not finite"):
        time_arms(SMALL, CPU, 1)
