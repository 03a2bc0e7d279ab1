"""Tests of where records go: JSON lines, TensorBoard and W&B, each read back."""

import json
import math
import resource
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from amp_core.precision import precision_for
from amp_core.step import Batch, StepResult, TrainStep
from amp_core.tracking import JsonlSink, MemorySink, TensorBoardSink, Tracker, WandbSink
from amp_core.tracking.records import METRICS
from benchmarks.conformance.cases.a30_tracker_steps import records_of


def train_with_an_overflow(sinks: Sequence[Any], *, steps: int = 7, bad: int = 3) -> None:
    """Train a float16 model; the loss of one step is infinite."""
    torch.manual_seed(0)
    model = nn.Linear(4, 1)

    def loss_fn(module: nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        loss: Tensor = module(batch[0]).float().square().mean() * batch[1] * 0.01
        return loss, {"error": loss, "gan/error": 2 * loss}

    step = TrainStep(model, torch.optim.AdamW(model.parameters(), fused=True), precision_for("fp16", "cpu"), loss_fn)
    with Tracker(3, sinks) as tracker:
        for index in range(steps):
            tracker.add(step((torch.ones(3, 4), torch.tensor(float("inf") if index == bad else 1.0))), samples=3)
        tracker.log(**{"val/loss": math.inf, "val/accuracy": 0.5})


def add(tracker: Tracker, steps: Sequence[float]) -> None:
    """Add a step for each loss."""
    one = torch.ones(())
    for loss in steps:
        tracker.add(StepResult(torch.tensor(loss), one, one, one, one * 0))


def rows_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def run_from(step: int, losses: Sequence[float], sink: Any, every: int = 2) -> None:
    """Train on from a step, as a resumed run does."""
    with Tracker(every, [sink]) as tracker:
        tracker.load_state_dict({"step": step, "skipped": 0})
        add(tracker, losses)


def test_json_lines_have_every_step_with_null_for_what_is_not_finite_and_rates_at_each_flush(tmp_path: Path) -> None:
    memory, path = MemorySink(), tmp_path / "steps.jsonl"
    train_with_an_overflow([memory, JsonlSink(path)])
    *rows, last = rows_of(path)
    assert [
        {name: row[name] for name in record.as_json()} for record, row in zip(memory.records, rows, strict=True)
    ] == [record.as_json() for record in memory.records]
    assert last == {"step": 6, "val/loss": None, "val/accuracy": 0.5}
    assert memory.logged == [(6, {"val/loss": math.inf, "val/accuracy": 0.5})]
    assert rows[3]["loss"] is rows[3]["grad_norm"] is None
    JsonlSink(path).close()  # which refuses a file of something else
    assert rows[4]["loss"] == rows[4]["error"] == pytest.approx(memory.records[4].loss)
    rated = [row for row in rows if "samples_per_s" in row]
    assert [row["samples_per_s"] for row in rated] == [rates.samples_per_s for rates in memory.rates]
    assert [(row["step"], row["applied"], row["skipped"]) for row in rated] == [(2, 3, 0), (5, 5, 1), (6, 6, 1)]


def test_a_resumed_run_goes_on_in_the_file_and_replaces_the_steps_it_takes_again(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    run_from(0, [float(value) for value in range(6)], JsonlSink(whole))
    run_from(0, [0.0, 1.0, 2.0, 99.0, 99.0], JsonlSink(cut))
    run_from(3, [3.0, 4.0, 5.0], JsonlSink(cut))
    first, second = ([(row["step"], row["loss"]) for row in rows_of(log)] for log in (cut, whole))
    assert first == second


def test_a_new_run_begins_the_file_anew(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    run_from(0, [1.0] * 5, JsonlSink(path))
    run_from(0, [2.0] * 3, JsonlSink(path))
    assert [row["loss"] for row in rows_of(path)] == [2.0] * 3


@pytest.mark.parametrize("tail", ['{"step": 2, "lo', "no json\n", "[2]\n", '{"loss": 1.0}\n', "\n", '{"step": 2}'])
def test_a_line_that_is_torn_or_foreign_ends_what_is_kept(tmp_path: Path, tail: str) -> None:
    path = tmp_path / "steps.jsonl"
    run_from(0, [0.0, 1.0], JsonlSink(path))
    with path.open("a", encoding="utf-8") as file:
        file.write(tail)
    run_from(3, [3.0], JsonlSink(path))
    assert [row["step"] for row in rows_of(path)] == [0, 1, 3]


def test_a_sink_that_gets_nothing_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    run_from(0, [0.0, 1.0], JsonlSink(path))
    before = path.read_bytes()
    JsonlSink(path).close()
    assert path.read_bytes() == before


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no file of this process grow beyond 1000 bytes, as on a full disk; a fixture would hit pytest's own files."""
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_is_reported_once_leaves_whole_lines_and_training_goes_on(tmp_path: Path) -> None:
    path, memory = tmp_path / "steps.jsonl", MemorySink()
    with pytest.warns(UserWarning) as caught, full_disk(), Tracker(1, [JsonlSink(path), memory]) as tracker:
        add(tracker, [0.5] * 20)
    (message,) = [str(warning.message) for warning in caught]
    assert message.startswith(f"the JSON lines file {str(path)!r} could not log (OSError: ")
    assert len(memory.records) == 20
    assert path.read_text(encoding="utf-8").endswith("}\n")
    assert 0 < len(rows_of(path)) < 20


@pytest.mark.parametrize("where", ["nowhere/steps.jsonl", "."])
def test_a_path_where_no_file_can_be_is_refused_at_once(tmp_path: Path, where: str) -> None:
    with pytest.raises(ValueError, match=r"^cannot write '.*': .*; pass a file in a folder that is there$"):
        JsonlSink(tmp_path / where)


def scalars_in(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Return what TensorBoard itself reads from a folder."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder))
    found.Reload()
    return {tag: [(event.step, event.value) for event in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def test_tensorboard_has_every_step_and_the_rates_of_every_flush(tmp_path: Path) -> None:
    memory = MemorySink()
    train_with_an_overflow([memory, TensorBoardSink(tmp_path)])
    scalars = scalars_in(tmp_path)
    for name in ("loss", "grad_norm", "lr", "loss_scale", "found_inf"):
        expected = [(record.step, getattr(record, name)) for record in memory.records]
        found = scalars[METRICS[name]]
        assert [step for step, _ in found] == list(range(7))
        for (_, value), (_, wanted) in zip(found, expected, strict=True):
            assert value == pytest.approx(wanted, nan_ok=True)
    assert [step for step, _ in scalars["speed/samples_per_s"]] == [2, 5, 6]
    assert scalars["amp/skipped"] == [(2, 0.0), (5, 1.0), (6, 1.0)]
    assert "speed/mfu" not in scalars  # nobody knows it
    last = memory.records[6].loss
    assert [scalars[name][6][1] for name in ("train/error", "gan/error")] == pytest.approx([last, 2 * last])
    assert scalars["val/accuracy"] == [(6, 0.5)]


def test_tensorboard_shows_a_resumed_run_without_the_steps_it_took_again(tmp_path: Path) -> None:
    run_from(0, [0.0, 1.0, 2.0, 99.0, 99.0], TensorBoardSink(tmp_path))
    run_from(3, [3.0, 4.0], TensorBoardSink(tmp_path))
    assert scalars_in(tmp_path)["train/loss"] == [(step, float(step)) for step in range(5)]


def test_a_tensorboard_folder_that_cannot_be_is_reported_once_and_training_goes_on(tmp_path: Path) -> None:
    memory, path = MemorySink(), tmp_path / "a file"
    path.touch()
    with pytest.warns(UserWarning, match="tensorboard could not log") as caught:
        train_with_an_overflow([TensorBoardSink(path), memory])
    assert (len(caught), len(memory.records)) == (1, 7)


def logged_by_wandb(root: Path) -> dict[int, dict[str, float]]:
    """Return what a finished offline run has logged, by step."""
    import wandb
    from wandb.proto import wandb_internal_pb2

    wandb.teardown()  # waits for wandb's own process, which may still be writing the file after a run has finished
    (path,) = root.glob("wandb/offline-run-*/run-*.wandb")
    history: dict[int, dict[str, float]] = {}
    for blob in records_of(path.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(blob)
        if record.WhichOneof("record_type") == "history":
            items = {"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in record.history.item}
            names = [name for name in (*METRICS.values(), "val/accuracy") if name in items]
            history[record.history.step.num] = {name: items[name] for name in names}
    return history


@pytest.mark.criterion("T035/AC4")
def test_wandb_has_the_loss_scale_of_every_step_and_the_rates_of_every_flush(tmp_path: Path) -> None:
    memory = MemorySink()
    train_with_an_overflow([memory, WandbSink("amp", "offline", tmp_path, name="a name", config={"lr": 0.1})])
    logged = logged_by_wandb(tmp_path)
    assert list(logged) == list(range(7))
    scales = [(values["amp/loss_scale"], values["amp/found_inf"]) for values in logged.values()]
    assert scales == [(65536.0, 0.0)] * 3 + [(65536.0, 1.0)] + [(32768.0, 0.0)] * 3
    for record in memory.records:
        if record.found_inf == 0.0:
            for name in ("loss", "grad_norm", "lr"):
                assert logged[record.step][f"train/{name}"] == pytest.approx(getattr(record, name))
    assert [step for step, values in logged.items() if "speed/samples_per_s" in values] == [2, 5, 6]
    assert [logged[step]["amp/skipped"] for step in (2, 5, 6)] == [0, 1, 1]
    assert logged[6]["val/accuracy"] == 0.5


class BrokenRun:
    """A wandb run that fails at every call."""

    calls = 0

    def log(self, *_: Any, **__: Any) -> None:
        self.calls += 1
        raise LookupError("the service went away\nand said why at length")

    def finish(self) -> None:
        raise LookupError("gone")


@pytest.mark.criterion("T035/AC4")
def test_wandb_that_breaks_is_reported_once_and_training_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    run, memory = BrokenRun(), MemorySink()
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=lambda **_: run))
    with pytest.warns(UserWarning) as caught:
        train_with_an_overflow([WandbSink("amp"), memory])
    expected = "wandb could not log (LookupError: the service went away): training goes on without it"
    assert [str(warning.message) for warning in caught] == [expected]
    assert run.calls == 1
    assert len(memory.records) == 7


@pytest.mark.criterion("T035/AC4")
@pytest.mark.parametrize(
    ("name", "module", "make"),
    [("wandb", "wandb", lambda _: WandbSink("amp")), ("tensorboard", "torch.utils.tensorboard", TensorBoardSink)],
)
def test_an_absent_service_is_reported_once_and_training_goes_on(
    name: str, module: str, make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = MemorySink()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.warns(UserWarning, match=rf"^{name} could not start \(ModuleNotFoundError: ") as caught:
        train_with_an_overflow([make(tmp_path), memory])
    assert (len(caught), len(memory.records)) == (1, 7)


@pytest.mark.criterion("T035/AC4")
def test_a_backoff_shows_in_the_step_after_the_overflow_and_every_number_has_a_name() -> None:
    memory = MemorySink()
    train_with_an_overflow([memory])
    assert [record.step for record in memory.records] == list(range(7))
    assert [record.loss_scale for record in memory.records] == [65536.0] * 4 + [32768.0] * 3
    assert [record.found_inf for record in memory.records] == [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    assert [(rates.applied, rates.skipped) for rates in memory.rates] == [(3, 0), (5, 1), (6, 1)]
    assert [rates.loss_scale_growth for rates in memory.rates] == [0.0, -1 / 3, 0.0]
    assert [dict(record.metrics) for record in memory.records] == [
        {"error": record.loss, "gan/error": 2 * record.loss} for record in memory.records
    ]
    assert {*vars(memory.records[0]), *vars(memory.rates[0])} - {"step", "metrics"} == set(METRICS)
    assert len(set(METRICS.values())) == len(METRICS)
