"""Tests of the benchmark's command: a real run of it, and what it refuses."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from refusing import refused
from workloads import SMALL

from amp_core.benchmark import __main__ as command
from amp_core.benchmark import quality, setup
from amp_core.benchmark.quality import Learned
from amp_core.benchmark.setup import Plan
from amp_core.samples import SCHEMA
from gates.measuring.samples import read

TIMED = ("fp32", "bf16", "bf16_by_hand")
TRAINED = ("fp32", "bf16", "fp16")
METRICS = {"step_time_s": "s", "step_cpu_time_s": "s", "samples_per_s": "1/s", "tokens_per_s": "1/s"}


def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command time a tiny model in short segments."""
    monkeypatch.setattr(setup, "workload_for", lambda _: SMALL)
    monkeypatch.setattr(setup.Setup, "segment_s", 0.003)


@pytest.mark.criterion("T035/AC5")
def test_a_smoke_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Of every part, but of the quality only what becomes of it: another test trains for it."""
    learned = Learned(0.5, 1.5, 0.06, 0.6, applied_steps=30, skipped_steps=0, loss_scale=1.0)
    quick(monkeypatch)
    monkeypatch.setattr(quality, "train_arms", lambda _, arms, seeds: {arm: [learned] * seeds for arm in arms})
    assert command.main(["--smoke", "--device", "cpu", "--out", str(tmp_path / "s.json")]) == 0
    out, err = capsys.readouterr()
    assert ("fp32 / bf16 " in out, err) == (True, "")
    (path,) = tmp_path.iterdir()
    text = path.read_text(encoding="utf-8")
    assert read(text).metrics.keys() >= METRICS.keys()  # the gates believe it
    samples = json.loads(text)
    assert list(samples) == ["schema", "device", "environment", "settings", "timing", "metrics"]
    assert samples["schema"] == SCHEMA
    assert (samples["device"]["type"], sorted(samples["device"])) == ("cpu", ["capabilities", "name", "type"])
    assert (samples["environment"]["torch"], samples["environment"]["threads"]) == (torch.__version__, "1")
    for strings in (samples["environment"], samples["settings"]):
        assert all(isinstance(text, str) and text for pair in strings.items() for text in pair)
    assert samples["settings"]["baseline"] == "fp32 with float32_matmul_precision=highest on cpu"
    assert samples["settings"]["float32_matmul_precision"] == "fp32 highest, bf16 highest, fp16 highest"
    metrics = samples["metrics"]
    assert all(list(metric) == ["unit", "direction", "paired", "arms"] for metric in metrics.values())
    check_times(metrics)
    check_memory(metrics, samples["settings"])
    assert metrics["val_accuracy"]["arms"] == {arm: [0.5] * 6 for arm in TRAINED}


def check_times(metrics: Any) -> None:
    for name, unit in METRICS.items():
        metric = metrics[name]
        direction = "lower" if unit == "s" else "higher"
        assert (metric["unit"], metric["direction"], metric["paired"]) == (unit, direction, True)
        assert {arm: len(values) for arm, values in metric["arms"].items()} == dict.fromkeys(TIMED, 8)
        values = [value for arm in metric["arms"].values() for value in arm]
        assert all(math.isfinite(value) and value > 0 for value in values)
        assert len(set(values)) == len(values)
    times, *rates = (metrics[name]["arms"]["bf16"] for name in ("step_time_s", "samples_per_s", "tokens_per_s"))
    assert rates == [[2 / time for time in times], [2 * 4 / time for time in times]]


def check_memory(metrics: Any, settings: Any) -> None:
    assert "peak_memory_bytes" not in metrics  # a prediction is no measurement
    assert settings["predicted_peak_memory_bytes"] == "an estimate from tensor sizes alone, no measurement"
    predicted, saved = (metrics[name]["arms"] for name in ("predicted_peak_memory_bytes", "saved_for_backward_bytes"))
    assert {arm: len(values) for arm, values in predicted.items()} == {"fp32": 1, "bf16": 1}
    assert list(predicted) == list(saved) == ["fp32", "bf16"]
    assert all(saved[arm][0] < predicted[arm][0] for arm in saved)


@pytest.mark.criterion("T035/AC6")
def test_the_quality_of_a_smoke_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two seeds: the measurement that the criterion names trains six."""
    monkeypatch.setattr(Plan, "smoke", lambda: Plan(seeds=2, train_steps=20))
    assert command.main(["--smoke", "--device", "cpu", "--parts", "quality", "--out", str(tmp_path / "s.json")]) == 0
    samples = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    metrics, settings = samples["metrics"], samples["settings"]
    arms = metrics["val_accuracy"]["arms"]
    assert {arm: len(values) for arm, values in arms.items()} == dict.fromkeys(TRAINED, 2)
    for arm in ("bf16", "fp16"):
        assert all(abs(one - other) < 0.01 for one, other in zip(arms["fp32"], arms[arm], strict=True))
    assert min(arms["fp32"]) > 0.4
    assert int(settings["quality_val_tokens"]) > 2000
    applied, skipped = (metrics[name]["arms"] for name in ("applied_steps", "skipped_steps"))
    for arm in TRAINED:
        assert [sum(pair) for pair in zip(applied[arm], skipped[arm], strict=True)] == [20.0] * 2
    scales = metrics["final_loss_scale"]["arms"]
    assert (set(scales["fp32"]), set(scales["bf16"])) == ({1.0}, {1.0})
    assert all(scale > 1.0 for scale in scales["fp16"])


def test_parts_and_precisions_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    chosen = ["--parts", "steps", "--precisions", "fp16,fp32", "--smoke"]
    assert command.main(["--device", "cpu", "--out", str(tmp_path / "s.json"), *chosen]) == 0
    metrics = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))["metrics"]
    assert list(metrics) == ["step_time_s", "step_cpu_time_s", "samples_per_s", "tokens_per_s"]
    assert list(metrics["step_time_s"]["arms"]) == ["fp32", "fp16", "fp16_by_hand"]


@pytest.mark.criterion("T035/AC5")
def test_without_a_gpu_a_cuda_benchmark_is_refused_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)  # the same on a machine that has one
    assert command.main(["--device", "cuda", "--out", str(tmp_path / "samples.json")]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("error: device 'cuda' was requested, but no CUDA device is visible")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "/nowhere/at/all.json"], "error: cannot write '/nowhere/at/all.json': there is no folder"),
        (["--out", "x.json", "--rounds", "5"], "error: argument --rounds: expected a number of at least 6, found '5'"),
        (["--out", "x.json", "--seeds", "-1"], "error: argument --seeds: expected a number of at least 6, found '-1'"),
        (["--out", "x.json", "--threads", "0"], "error: argument --threads: expected a number of at least 1, found"),
        ([], "error: the following arguments are required: --out"),
        (
            ["--out", "x.json", "--parts", "steps,taste"],
            "error: argument --parts: expected some of steps, memory, qual",
        ),
        (["--out", "x.json", "--precisions", "bf16"], "error: expected the baseline 'fp32' among the precisions"),
        (["--out", "x.json", "--precisions", "fp32,fp9"], "error: unknown precision 'fp9'"),
    ],
)
def test_wrong_usage_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(command.main, ["--device", "cpu", *arguments], capsys).startswith(message)


@pytest.mark.criterion("T035/AC6")
def test_a_benchmark_whose_models_learned_nothing_fails_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Plan, "smoke", lambda: Plan(seeds=1, train_steps=1))
    line = ["--device", "cpu", "--smoke", "--parts", "quality", "--out", str(tmp_path / "samples.json")]
    assert command.main(line) == 1
    assert capsys.readouterr().err.startswith("error: arm 'fp32' learned nothing: accuracy 0.")
    assert list(tmp_path.iterdir()) == []
