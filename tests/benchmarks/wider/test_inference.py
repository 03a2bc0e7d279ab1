"""Tests of the inference benchmark."""

import dataclasses

import pytest
import torch
from torch import Tensor
from workloads import SMALL

from amp_core.benchmark.setup import BenchmarkFailed, Plan, Setup
from amp_core.model import GPT
from amp_core.precision import precision_for
from benchmarks.wider.inference import InferenceWorker, measure_inference, percentile

CPU = torch.device("cpu")


def a_setup(*precisions: str) -> Setup:
    plan = Plan(inference_rounds=2, inference_forwards=3)
    return dataclasses.replace(Setup.on(CPU, plan, precisions), workload=SMALL)


@pytest.mark.parametrize(
    ("name", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)]
)
def test_a_forward_pass_evaluates_in_its_dtype_without_a_graph(name: str, dtype: torch.dtype) -> None:
    model = SMALL.build(CPU)
    worker = InferenceWorker(model, SMALL.batches(CPU)[0][0][:, :-1], precision_for(name, "cpu"))
    worker.latencies(1)
    assert worker.output is not None and (worker.output.dtype, worker.output.shape) == (dtype, (2, 4, 8))
    assert worker.output.is_inference()
    assert not model.training


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (torch.zeros(1, dtype=torch.float32), "bf16 inference gave torch.float32, expected torch.bfloat16"),
        (torch.full((1,), float("nan"), dtype=torch.bfloat16), "bf16 inference gave numbers that are not finite"),
    ],
)
def test_inference_that_did_other_work_fails(output: Tensor, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forward = GPT.forward

    def wrong(self: GPT, tokens: Tensor) -> Tensor:
        return output if torch.is_autocast_enabled("cpu") else forward(self, tokens)

    monkeypatch.setattr(GPT, "forward", wrong)
    with pytest.raises(BenchmarkFailed, match=message):
        measure_inference(a_setup("fp32", "bf16"))


def test_a_percentile_is_a_value_that_occurred() -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert [percentile(values, percent) for percent in (50, 90, 99, 100)] == [50.0, 90.0, 99.0, 100.0]
    assert [percentile([3.0], percent) for percent in (1, 50, 99)] == [3.0, 3.0, 3.0]
