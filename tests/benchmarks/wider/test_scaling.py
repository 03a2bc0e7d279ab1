"""Tests of the scaling runs."""

import dataclasses
from typing import Any

import pytest
import torch
from workloads import SMALL

from amp_core.benchmark.setup import Plan, Setup
from amp_core.benchmark.workload import Workload
from benchmarks.wider import scaling
from benchmarks.wider.scaling import measure_scaling

CPU = torch.device("cpu")


def a_setup(**changes: Any) -> Setup:
    plan = Plan(scaling_rounds=1)
    return dataclasses.replace(Setup.on(CPU, plan, ("fp32", "bf16")), **{"workload": SMALL, **changes})


def test_an_arm_that_does_not_fit_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The branch for a GPU, with what it calls there replaced: 32 sequences fit in bf16 only, and not with timing."""

    def peak(workload: Workload, arm: str, *_: Any, **__: Any) -> tuple[float, ...] | None:
        return None if workload.batch_size == 32 and arm == "fp32" else (10.0 * workload.batch_size,)

    def times(workload: Workload, arms: tuple[str, ...], *_: Any, **__: Any) -> Any:
        if workload.batch_size == 32:
            raise torch.OutOfMemoryError("no more")
        return type("Timed", (), {"step_time_s": dict.fromkeys(arms, (1.0,))})

    monkeypatch.setattr(scaling, "peak_or_none", peak)
    monkeypatch.setattr(scaling, "time_arms", times)
    monkeypatch.setattr(scaling, "release", lambda _: None)
    monkeypatch.setitem(scaling.BATCH_SIZES, "cuda", (4, 32))
    monkeypatch.setitem(scaling.CONTEXTS, "cuda", ())
    found = measure_scaling(a_setup(device=torch.device("cuda")))
    assert {name: dict(metric.arms) for name, metric in found.metrics.items()} == {
        "scaling_peak_memory_bytes_batch_4": {"fp32": (40.0,), "bf16": (40.0,)},
        "scaling_step_time_s_batch_4": {"fp32": (1.0,), "bf16": (1.0,)},
        "scaling_peak_memory_bytes_batch_32": {"bf16": (320.0,)},
    }
    assert found.settings == {"scaling_out_of_memory": "fp32 at batch_32, the times of all arms together at batch_32"}
