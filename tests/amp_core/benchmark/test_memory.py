"""Tests of the memory part: predictions are told apart from measurements, and come to what the step needs."""

import dataclasses
from collections.abc import Callable
from unittest.mock import Mock

import pytest
import torch

from amp_audit import Peak, predict_peak
from amp_core.benchmark import memory
from amp_core.benchmark.memory import measure_memory, predicted_memory, saved_memory
from amp_core.benchmark.setup import Plan, Setup
from amp_core.benchmark.workload import Workload
from amp_core.model import GPTConfig
from benchmarks.wider.scaling import peak_or_none

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
SMALL = Workload(GPTConfig(vocab_size=64, context=32, layers=1, heads=2, width=32), batch_size=4)


@pytest.mark.criterion("T035/AC5")
def test_on_a_gpu_the_peak_is_measured_and_predicted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The branch for a GPU, with what touches one replaced."""
    monkeypatch.setattr(memory, "_peak", lambda *_: 123.0)
    monkeypatch.setattr(memory, "saved_memory", lambda *_: 1.0)
    monkeypatch.setattr(Workload, "batches", lambda *_, **__: ())
    monkeypatch.setattr(memory, "predicted_memory", lambda *_: 100.0)
    cpu = Setup.on(CPU, Plan(), ("fp32", "bf16", "fp16"))
    found = measure_memory(dataclasses.replace(cpu, workload=SMALL, device=CUDA)).metrics
    arms = ("fp32", "bf16", "fp16", "bf16_lean", "fp16_lean")
    assert found["peak_memory_bytes"].arms == dict.fromkeys(arms, (123.0,) * 6)
    assert found["predicted_peak_memory_bytes"].arms == dict.fromkeys(arms, (100.0,))


@pytest.mark.parametrize(("arm", "device"), [("fp32", CPU), ("bf16", CPU), ("fp16", CUDA), ("fp16_lean", CUDA)])
def test_a_predicted_peak_holds_a_step(arm: str, device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def note(make_step: Callable[[], Callable[[], object]], *, like_cuda: bool) -> Peak:
        seen.append(like_cuda)
        return predict_peak(make_step, like_cuda=like_cuda)

    monkeypatch.setattr(memory, "predict_peak", note)
    least = 4 * 4 * sum(param.numel() for param in SMALL.build(CPU).parameters())  # values, gradients, two moments
    assert least < predicted_memory(SMALL, arm, device) < 1.3 * least + 3 * saved_memory(SMALL, arm, CPU)
    assert seen == [device == CUDA]


def test_half_precision_saves_less_for_backward() -> None:
    saved = {arm: saved_memory(SMALL, arm, CPU) for arm in ("fp32", "bf16", "fp16")}
    assert saved["bf16"] == pytest.approx(saved["fp16"], abs=8)  # fp16 also keeps its loss, to scale it
    assert saved["bf16"] < 0.9 * saved["fp32"]
    assert saved_memory(SMALL, "bf16_lean", CPU) < 0.9 * saved["bf16"]


def test_predicting_is_done_without_the_memory() -> None:
    large = Workload(GPTConfig(vocab_size=50304, context=1024, layers=2, heads=12, width=768), batch_size=64)
    assert predicted_memory(large, "fp32", CPU) > 20e9


def test_an_arm_that_does_not_fit_has_no_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_peak", Mock(side_effect=[torch.OutOfMemoryError("no more"), 5.0, 5.0]))
    assert peak_or_none(SMALL, "fp32", CPU, repeats=2) is None
    assert peak_or_none(SMALL, "bf16", CPU, repeats=2) == (5.0, 5.0)
