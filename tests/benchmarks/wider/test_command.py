"""A real run of the wider benchmark: what it measures and draws."""

import dataclasses
import json
from pathlib import Path

import pytest
from workloads import SMALL

from amp_core.benchmark import setup
from amp_core.benchmark.setup import Measured, Plan, Setup
from amp_core.samples import Direction, Metric
from benchmarks.wider import __main__ as command
from benchmarks.wider import inference, scaling
from benchmarks.wider.__main__ import main


def learned(_: Setup) -> Measured:
    """What a benchmark that trained a model returns of it."""
    metric = Metric("nat", Direction.LOWER, paired=True, arms={"fp32": (1.0, 1.1), "bf16": (1.1, 1.0)})
    return Measured({"val_loss": metric}, {})


def test_a_run_measures_every_shape_and_draws_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "workload_for", lambda _: SMALL)
    monkeypatch.setitem(scaling.BATCH_SIZES, "cpu", (1,))
    monkeypatch.setitem(scaling.CONTEXTS, "cpu", (8,))
    monkeypatch.setattr(inference, "BATCH_SIZES", (1, 2))
    smoke = dataclasses.replace(Plan.smoke(), rounds=2, scaling_rounds=1)
    monkeypatch.setattr(Plan, "smoke", lambda: smoke)
    monkeypatch.setitem(command.WIDER, "quality", learned)  # what training takes is shown where it is measured alone
    out = tmp_path / "s.json"
    assert main(["--smoke", "--device", "cpu", "--out", str(out), "--plots", str(tmp_path)]) == 0
    assert "p50" in capsys.readouterr().out
    metrics = json.loads(out.read_text(encoding="utf-8"))["metrics"]
    shapes = {f"scaling_step_time_s_{shape}" for shape in ("batch_1", "context_8")}
    assert {name for name in metrics if name.startswith("scaling_")} == shapes
    for size in (1, 2):
        every, medians = (metrics[f"inference_{what}_s_batch_{size}"] for what in ("latency", "p50"))
        assert (every["paired"], medians["paired"]) == (False, True)
        for arm, values in medians["arms"].items():
            assert values == [sorted(every["arms"][arm][5 * index : 5 * index + 5])[2] for index in range(6)]
    names = [f"{name}.svg" for name in ("step_time", "memory", "quality", "inference", "scaling")]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names, "s.json"])


def test_a_folder_that_cannot_be_drawn_into_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--device", "cpu", "--out", str(tmp_path / "x.json"), "--plots", "/nowhere/at/all"]) == 2
    assert capsys.readouterr().err.startswith("error: cannot draw into '/nowhere/at/all': there is no")
