"""Tests of the training loop: its plan, its checkpoints, and where it stops."""

import math
import pickle
import re
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from amp_core import checkpoint, shards
from amp_core.checkpoint import CheckpointError
from amp_core.data import Stream, loader
from amp_core.loop import Checkpoints, FitResult, Plan, Validations, fit
from amp_core.precision import precision_for
from amp_core.scaler import ScaleCollapsed
from amp_core.step import TrainStep
from amp_core.tracking import MemorySink, Tracker

CPU = torch.device("cpu")
OF_3_11_3 = b"cbuiltins\ngetattr\n(ctorch.distributed.checkpoint.metadata\n_MEM_FORMAT_ENCODING\nV%b\ntR."


def a_step(name: str = "fp32") -> TrainStep:
    model = nn.Linear(1, 1)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    return TrainStep(model, optimizer, precision_for(name, "cpu"), lambda module, batch: module(batch[0]).sum())


def a_stream(value: float = 1.0) -> Stream:
    return Stream(loader(TensorDataset(torch.full((6, 1), value)), batch_size=2, device=CPU, seed=0), CPU)


def run(plan: Plan, step: TrainStep | None = None, *sinks: MemorySink, **options: Any) -> FitResult:
    with Tracker(5, sinks) as tracker:
        return fit(step or a_step(), a_stream(), tracker, plan, **options)


@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16"])
def test_data_that_are_never_finite_stop_training_at_a_flush_by_parameter(name: str) -> None:
    step = a_step(name)
    stop = pytest.raises(ScaleCollapsed, match=r"the last 50 steps .*; the first parameter without .* is weight ")
    with stop, Tracker(30, []) as tracker:
        fit(step, a_stream(math.nan), tracker, Plan(1000))
    assert tracker.step == 60
    assert all(param.isfinite().all() for param in step.model.parameters())


def test_each_step_takes_its_batches_and_tells_the_tracker_how_much_that_was() -> None:
    sink, stream = MemorySink(), a_stream()
    ticks = iter(range(100))
    with Tracker(4, [sink], clock=lambda: float(next(ticks))) as tracker:
        result = fit(a_step(), stream, tracker, Plan(4, accumulate=2, tokens=lambda batch: 10 * len(batch[0])))
    assert (result.steps, result.state.applied, result.stopped_early) == (4, 4, False)
    assert (stream.epoch, stream.batch) == (2, 2)
    (rates,) = sink.rates
    assert rates.tokens_per_s == 10 * (rates.samples_per_s or 0.0) > 0.0


def test_validation_happens_on_time_and_patience_ends_training() -> None:
    losses, sink = iter([3.0, 2.0, 2.5, math.nan, 9.9]), MemorySink()
    result = run(Plan(100, validate_every=3, patience=2), None, sink, validate=lambda: next(losses))
    assert sink.logged[:3] == [(2, {"val/loss": 3.0}), (5, {"val/loss": 2.0}), (8, {"val/loss": 2.5})]
    assert result.stopped_early
    assert result.steps == 12
    assert [step for step, _ in result.validations] == [3, 6, 9, 12]


def test_an_improvement_smaller_than_min_delta_is_none() -> None:
    validations, plan = Validations(), Plan(9, min_delta=0.1)
    noted = [validations.note(step, {"loss": loss}, plan) for step, loss in enumerate([1.0, 0.95, 0.85])]
    assert noted == [True, False, True]
    assert (validations.best, validations.stale) == (0.85, 0)
    assert not validations.note(3, {"loss": 0.76}, plan)
    assert (validations.best, validations.stale) == (0.85, 1)


def test_only_the_newest_checkpoints_stay_and_files_that_are_none_of_a_step(tmp_path: Path) -> None:
    own = tmp_path / "step-best.pt"
    own.write_bytes(b"a copy of the user's")
    checkpoints = Checkpoints(tmp_path, every=2, keep=3)
    run(Plan(11), checkpoints=checkpoints)
    kept = [f"step-{step:08}.pt" for step in (8, 10, 11)]
    assert sorted(path.name for path in tmp_path.iterdir()) == [*kept, "step-best.pt"]
    assert checkpoints.latest() == tmp_path / kept[-1]
    assert own.read_bytes() == b"a copy of the user's"


def test_resuming_an_empty_folder_begins_at_the_beginning(tmp_path: Path) -> None:
    assert run(Plan(2), checkpoints=Checkpoints(tmp_path / "new", every=1), resume=True).steps == 2


@pytest.mark.parametrize("kept", [0, 200])
def test_a_truncated_checkpoint_is_not_resumed_from_and_the_one_before_is_named(kept: int, tmp_path: Path) -> None:
    checkpoints, step = Checkpoints(tmp_path, every=1), a_step()
    run(Plan(2), checkpoints=checkpoints)
    latest = tmp_path / "step-00000002.pt"
    latest.write_bytes(latest.read_bytes()[:kept])
    before = step.model.state_dict()["weight"].clone()
    with pytest.raises(
        CheckpointError, match=r"step-00000002\.pt' is damaged.*; delete it, and step-00000001\.pt is resu"
    ):
        run(Plan(4), step, checkpoints=checkpoints, resume=True)
    assert torch.equal(step.model.state_dict()["weight"], before)


def test_a_sharded_checkpoint_is_resumed_from_unless_it_names_code(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, every=1, keep=1, sharded=True)
    run(Plan(2, validate_every=1), checkpoints=checkpoints, validate=lambda: 0.5)
    run(Plan(3), checkpoints=checkpoints, resume=True)
    latest = tmp_path / "step-00000003.shards"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best.shards", latest.name]
    rest = checkpoints.load(latest, a_step())
    rest["step"]["model"]["weight"] = rest["step"]["model"]["weight"].to("meta")  # as if it were in a shard
    checkpoint.save(latest / "rest.pt", rest)
    wrong = {"it names builtins.eval": pickle.dumps(eval), "Ran out of input": b"", "'eval'": OF_3_11_3 % b"eval"}
    for why, metadata in wrong.items():
        (latest / ".metadata").write_bytes(metadata)
        with pytest.raises(CheckpointError, match=rf"damaged or holds code \({re.escape(why)}\): take an older one$"):
            checkpoints.load(latest, a_step())
    assert shards._Metadata(BytesIO(OF_3_11_3 % b"TORCH_CHANNELS_LAST")).load().name == "TORCH_CHANNELS_LAST"
    (latest / "rest.pt").unlink()
    with pytest.raises(CheckpointError, match=r"^no checkpoint at '.*rest\.pt'"):
        run(Plan(4), checkpoints=checkpoints, resume=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps must be at least 1, found 0"),
        ({"steps": 1, "accumulate": 0}, "accumulate must be at least 1, found 0"),
        ({"steps": 1, "patience": 2}, "patience=2 needs validate_every: nothing would be waited for"),
        ({"steps": 1, "validate_every": 0}, "validate_every must be at least 1, found 0"),
        ({"every": 0}, "every must be at least 1, found 0"),
        ({"every": 1, "keep": 0}, "keep must be at least 1, found 0"),
    ],
)
def test_plans_and_checkpoints_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        Checkpoints(Path(), **options) if "every" in options else Plan(**options)
    assert str(caught.value) == message


@pytest.mark.parametrize("value", [np.float64(0.25), torch.tensor(0.25), 0.25])
def test_any_number_may_be_a_validation_loss_and_is_saved_as_a_plain_one(value: Any, tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, every=2, run={"lr": np.float64(0.5)})
    result = run(Plan(2, validate_every=1), validate=lambda: value, checkpoints=checkpoints)
    latest = checkpoints.latest()
    assert latest and checkpoints.load(latest, a_step())["validations"]["seen"] == [(1, 0.25), (2, 0.25)]
    assert [type(loss) for _, loss in result.validations] == [float, float]


def test_what_no_checkpoint_can_hold_is_refused_by_its_place_before_training() -> None:
    with pytest.raises(ValueError, match=r"^run\['data'\] is a PosixPath, expected tensors, numbers, "):
        Checkpoints(Path("nowhere"), every=1, run={"data": Path("x")})


def test_validation_runs_in_eval_mode_and_the_steps_precision_and_leaves_modes_as_they_were() -> None:
    step, seen = a_step("bf16"), []
    frozen = nn.BatchNorm1d(1).eval()
    step.model.add_module("frozen", frozen)

    def validate() -> float:
        output = step.model(torch.ones(1, 1))
        seen.append((output.dtype, step.model.training, output.requires_grad, torch.is_grad_enabled()))
        step.model.eval()
        return 0.0

    run(Plan(4, validate_every=2), step, validate=validate)
    assert seen == [(torch.bfloat16, False, False, False)] * 2
    assert step.model.training
    assert not frozen.training


def test_dictionaries_of_tensors_are_batches_too() -> None:
    model = nn.Linear(1, 1)
    batches: Any = [{"inputs": torch.ones(2, 1), "names": ["a", "b"]}]
    step = TrainStep(
        model, torch.optim.SGD(model.parameters(), fused=True), "fp32", lambda m, b: m(b["inputs"]).sum()  # type: ignore[call-overload]
    )  # fmt: skip
    sink = MemorySink()
    with Tracker(2, [sink]) as tracker:
        assert fit(step, Stream(batches, "cpu"), tracker, Plan(2)).state.applied == 2
    assert (sink.rates[0].samples_per_s or 0.0) > 0.0


def test_bare_tensors_are_no_batches() -> None:
    rows: Any = [torch.ones(4, 1)]
    with pytest.raises(ValueError, match=r"^the loader's batches are tensors of shape \(4, 1\), expected tuples"):
        next(Stream(rows, CPU))


def test_an_early_stop_ends_with_the_best_by_name(tmp_path: Path) -> None:
    step, weights, sink = a_step(), list[list[Any]](), MemorySink()
    accuracies = iter([0.1, 0.9, 0.4, 0.5])

    def validate() -> dict[str, float]:
        weights.append([param.detach().clone() for param in step.model.parameters()])
        return {"loss": -float(len(weights)), "accuracy": next(accuracies)}

    plan = Plan(100, validate_every=2, patience=2, monitor="accuracy", largest=True)
    result = run(plan, step, sink, validate=validate, checkpoints=Checkpoints(tmp_path, every=9, keep=1))
    assert sink.logged[1] == (3, {"val/loss": -2.0, "val/accuracy": 0.9})
    assert result.validations == ((2, 0.1), (4, 0.9), (6, 0.4), (8, 0.5))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best.pt", "step-00000008.pt"]
    assert all(torch.equal(one, other) for one, other in zip(weights[1], step.model.parameters(), strict=True))


def test_a_run_without_a_best_does_not_end_with_that_of_another(tmp_path: Path) -> None:
    step, plan, checkpoints = a_step(), Plan(9, validate_every=1, patience=1), Checkpoints(tmp_path, every=9, keep=1)
    run(plan, validate=iter([1.0, 2.0]).__next__, checkpoints=checkpoints)
    (tmp_path / "step-00000002.pt").rename(tmp_path / "another-run.pt")
    run(plan, step, validate=lambda: math.nan, checkpoints=checkpoints)
    best = checkpoint.load(checkpoints.best)["step"]["model"]["weight"]
    assert not torch.equal(best, step.model.state_dict()["weight"])


@pytest.mark.parametrize(("every", "validate"), [(2, None), (None, lambda: 0.5)])
def test_validations_that_would_never_happen_are_refused(every: int | None, validate: Any) -> None:
    with pytest.raises(ValueError, match=r"^validate= and Plan\(validate_every=\.\.\.\) need each other"):
        run(Plan(4, validate_every=every), validate=validate)


def test_a_metric_that_a_validation_does_not_give_is_named() -> None:
    with pytest.raises(ValueError, match=r"^expected 'f1' among a validation's metrics, found \['loss'\]$"):
        Validations().note(1, {"loss": 0.5}, Plan(1, monitor="f1"))


def test_hooks_see_each_step_validation_and_checkpoint(tmp_path: Path) -> None:
    step, seen = a_step(), list[Any]()
    run(
        Plan(3, validate_every=2),
        step,
        validate=lambda: 0.5,
        checkpoints=Checkpoints(tmp_path, every=2),
        on_step=lambda number, result: seen.append((number, result.found_inf.item())),
        on_validation=lambda number, metrics: seen.append((number, metrics, step.model.training)),
        on_checkpoint=lambda path: seen.append((path.name, path.is_file())),
    )
    assert seen == [
        (1, 0.0), (2, 0.0), (2, {"loss": 0.5}, True), ("best.pt", True), ("step-00000002.pt", True),
        (3, 0.0), ("step-00000003.pt", True)
    ]  # fmt: skip
