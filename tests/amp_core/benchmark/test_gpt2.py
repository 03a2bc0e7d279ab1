"""Tests of what the GPT-2 script makes of its figures, and of its way on a GPU, with what touches one replaced."""

import dataclasses
from typing import Any

import pytest
import torch

from amp_core.benchmark.steps import Timed
from amp_core.benchmark.timing import Elapsed, Warmup
from amp_core.benchmark.workload import Workload
from amp_core.device import DeviceFacts
from benchmarks import gpt2_cuda as gpt2
from benchmarks.overflows import Overflows

H200 = DeviceFacts("cuda", "NVIDIA H200", ("bf16", "fp16", "sm_90", "tf32"))
OVERFLOWS = Overflows(1000, 19, 960, 40, 2.0**20, 10.9, 8.0, "a watch")
STEP_S = {"fp32": 0.6, "tf32": 0.12, "bf16": 0.075, "bf16_lean": 0.06, "fp16": 0.07, "fp16_lean": 0.062}
PEAKS = {"fp32": 50e9, "tf32": 50e9, "bf16": 40e9, "bf16_lean": 19e9, "fp16": 40e9, "fp16_lean": 21e9}


def timed(arms: dict[str, float]) -> Timed:
    elapsed = {arm: (Elapsed(step_s),) * 6 for arm, step_s in arms.items()}
    return Timed(elapsed, {arm: Warmup(10, True, step_s) for arm, step_s in arms.items()}, 3)


def found(**changes: Any) -> Any:
    peaks = {arm: (peak, peak) for arm, peak in PEAKS.items()}
    seen = gpt2.Found(H200, gpt2.FULL, PEAKS, peaks, OVERFLOWS, timed(STEP_S), 28 * 10**12)
    return dataclasses.replace(seen, **changes)


def words(seen: Any) -> dict[str, str]:
    return {text: word for text, _, word in gpt2.bars(seen)}


def test_each_bar_is_judged_by_its_own_figure() -> None:
    seen = words(found())
    assert {text for text, word in seen.items() if word != "met"} == {
        "bf16 at least 1.7x over tf32",  # 1.6
        "bf16 MFU at least 40%",  # 28 TFLOP in 75 ms are 37.7 % of 989.5 TFLOP/s
        "fp16_lean peak memory at least 60% below fp32",  # 58 %
    }
    assert len(seen) == 15
    assert found().mfu("bf16").value == pytest.approx(28 / 0.075 / 989.5)
    assert found().mfu("fp32").value == pytest.approx(28 / 0.6 / 67.0)


def test_what_was_not_measured_meets_no_bar() -> None:
    nothing = found(peaks={}, timed=timed({"fp32": 0.6}), facts=dataclasses.replace(H200, name="a new GPU"))
    seen = words(nothing)
    assert seen.pop("1000 fp16 steps with overflows") == "met"
    assert set(seen.values()) == {"not measured"}
    assert "| fp32 | 600.00 | 54,613 | 1.00 [1.00, 1.00] | unknown | unknown |" in gpt2.report(nothing, tiny=False)


def test_the_report_and_the_samples_tell_predictions_from_measurements() -> None:
    seen = found(peaks={"fp32": (50e9, 50e9), "bf16": None})
    text = gpt2.report(seen, tiny=False)
    assert "| fp32 | 46.57 | 0.0% | 46.57 | 0.0% | +0.0% |" in text
    assert "| bf16 | does not fit |  | 37.25 | 20.0% |  |" in text
    metrics = gpt2.as_samples(seen).metrics
    assert dict(metrics["peak_memory_bytes"].arms) == {"fp32": (50e9, 50e9)}
    assert list(metrics["predicted_peak_memory_bytes"].arms) == list(PEAKS)


def test_on_a_gpu_arms_that_do_not_fit_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []

    def peak(_workload: Workload, arm: str, *_: Any, **__: Any) -> tuple[float, ...] | None:
        steps.append(f"peak {arm}")
        return None if arm == "fp32" else (1e9, 1e9)

    def overflow(workload: Workload, *_: Any, **__: Any) -> Overflows:
        steps.append(f"overflows at batch {workload.batch_size}")
        return OVERFLOWS

    def time(workers: dict[str, str], *_: Any, **__: Any) -> Timed:
        steps.append(f"times of {' '.join(workers)}")
        return timed(dict.fromkeys(workers, 0.1))

    monkeypatch.setattr(gpt2, "inspect", lambda _: dataclasses.replace(H200, capabilities=("fp16", "tf32")))
    monkeypatch.setattr(gpt2, "peak_or_none", peak)
    monkeypatch.setattr(gpt2, "take_overflowing_steps", overflow)
    monkeypatch.setattr(gpt2, "time_workers", time)
    monkeypatch.setattr(gpt2, "release", lambda _: steps.append("release"))
    monkeypatch.setattr(gpt2, "predicted_memory", lambda *_: 1e9)
    monkeypatch.setattr(gpt2, "count_training_flops", lambda *_: 10**12)
    batches = Workload.batches
    monkeypatch.setattr(Workload, "batches", lambda self, _, count=4: batches(self, torch.device("cpu"), count))
    monkeypatch.setattr(Workload, "worker", lambda _, precision, *__: precision)
    seen = gpt2.measure(torch.device("cuda"), gpt2.SMALL)
    assert steps == [
        "peak fp32", "peak tf32", "peak fp16", "peak fp16_lean",
        "overflows at batch 4", "release", "times of tf32 fp16 fp16_lean",
    ]  # fmt: skip
    assert seen.peaks["fp32"] is None
