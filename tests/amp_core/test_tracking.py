"""Tests of per-step numbers: when they are copied, what they hold, and where they go."""

import json
import struct
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from amp_core.precision import precision_for
from amp_core.step import Batch, TrainStep
from amp_core.tracking import METRICS, JsonlSink, MemorySink, StepRecord, Tracker, WandbSink
from amp_core.trainer import run_steps

BLOCK = 32768  # bytes of a block in wandb's record log
FRAME = struct.Struct("<IHB")  # checksum, length, and kind: 1 whole, 2 first, 3 middle, 4 last part of a record


class Counting(MemorySink):
    """A memory sink that notes the size of each flush, and whether it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.flushes: list[int] = []
        self.closed = 0

    def write(self, records: Sequence[StepRecord]) -> None:
        super().write(records)
        self.flushes.append(len(records))

    def close(self) -> None:
        self.closed += 1


def add(tracker: Tracker, value: float, loss_scale: Tensor | None = None) -> bool:
    scalar = torch.tensor(value)
    scale = scalar if loss_scale is None else loss_scale
    return tracker.add(loss=scalar, grad_norm=scalar + 1, lr=scalar + 2, loss_scale=scale, found_inf=scalar * 0)


def logged_by_wandb(root: Path) -> dict[int, dict[str, float]]:
    """Return what a finished offline run has logged, by step."""
    import wandb
    from wandb.proto import wandb_internal_pb2

    wandb.teardown()  # waits for wandb's own process, which may still be writing the file after a run has finished
    (path,) = root.glob("wandb/offline-run-*/run-*.wandb")
    history: dict[int, dict[str, float]] = {}
    for blob in records_of(path.read_bytes()):
        record = wandb_internal_pb2.Record()  # type: ignore[attr-defined]  # made at run time
        record.ParseFromString(blob)
        if record.WhichOneof("record_type") == "history":
            items = {"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in record.history.item}
            history[record.history.step.num] = {name: items[name] for name in METRICS.values() if name in items}
    return history


def records_of(log: bytes) -> Iterator[bytes]:
    """Yield the records of wandb's log: frames in blocks of 32 KiB, after a header of 7 bytes."""
    assert log[:4] == b":W&B"
    position, parts = 7, b""
    while position < len(log):
        left = BLOCK - position % BLOCK
        if left < FRAME.size:
            position += left
            continue
        _, length, kind = FRAME.unpack_from(log, position)
        position += FRAME.size
        parts += log[position : position + length]
        position += length
        if kind in (1, 4):
            yield parts
            parts = b""


def train_with_an_overflow(sinks: Sequence[Any], *, steps: int = 7, bad: int = 3) -> None:
    """Train a float16 model; the loss of one step is infinite."""
    torch.manual_seed(0)
    model = nn.Linear(4, 1)

    def loss_fn(module: nn.Module, batch: Batch) -> Tensor:
        loss: Tensor = module(batch[0]).float().square().mean() * batch[1] * 0.01
        return loss

    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    step = TrainStep(model, optimizer, precision_for("fp16", "cpu"), loss_fn)
    factors = [torch.tensor(float("inf") if index == bad else 1.0) for index in range(steps)]
    batches = ((torch.ones(3, 4), factor) for factor in factors)
    with Tracker(3, sinks) as tracker:
        run_steps(step, batches, tracker, steps, torch.device("cpu"))


def test_scalars_are_flushed_together_every_few_steps_and_at_the_end() -> None:
    sink = Counting()
    with Tracker(3, [sink]) as tracker:
        flushed = [add(tracker, float(value)) for value in range(7)]
        assert flushed == [False, False, True, False, False, True, False]
        assert sink.flushes == [3, 3]
    assert sink.flushes == [3, 3, 1]
    assert sink.closed == 1
    assert sink.records == [StepRecord(step, step, step + 1, step + 2, step, 0.0) for step in range(7)]


def test_what_was_added_is_flushed_when_training_raises() -> None:
    sink = Counting()
    with pytest.raises(KeyError), Tracker(100, [sink]) as tracker:
        add(tracker, 1.0)
        raise KeyError
    assert (len(sink.records), sink.closed) == (1, 1)


@pytest.mark.criterion("T035/AC4")
def test_each_step_keeps_its_own_loss_scale_though_the_tensor_changes_in_place() -> None:
    sink, live = MemorySink(), torch.tensor(8.0)
    with Tracker(10, [sink]) as tracker:
        for _ in range(3):
            add(tracker, 0.0, live)
            live.mul_(0.5)
    assert [record.loss_scale for record in sink.records] == [8.0, 4.0, 2.0]


@pytest.mark.criterion("T035/AC4")
def test_a_backoff_shows_in_the_step_after_the_overflow() -> None:
    sink = MemorySink()
    train_with_an_overflow([sink])
    assert [record.loss_scale for record in sink.records] == [65536.0] * 4 + [32768.0] * 3
    assert [record.found_inf for record in sink.records] == [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    assert [record.step for record in sink.records] == list(range(7))


@pytest.mark.criterion("T035/AC4")
def test_wandb_has_the_loss_scale_of_every_step(tmp_path: Path) -> None:
    memory = MemorySink()
    train_with_an_overflow([memory, WandbSink("amp", "offline", tmp_path)])
    logged = logged_by_wandb(tmp_path)
    assert list(logged) == list(range(7))
    assert {step: values["amp/loss_scale"] for step, values in logged.items()} == {
        record.step: record.loss_scale for record in memory.records
    }
    assert [logged[step]["amp/loss_scale"] for step in (3, 4)] == [65536.0, 32768.0]
    assert [logged[step]["amp/found_inf"] for step in (2, 3, 4)] == [0.0, 1.0, 0.0]
    for record in memory.records:
        if record.found_inf == 0.0:
            assert logged[record.step]["train/loss"] == pytest.approx(record.loss)
            assert logged[record.step]["train/grad_norm"] == pytest.approx(record.grad_norm)
            assert logged[record.step]["train/lr"] == pytest.approx(record.lr)


class BrokenRun:
    """A wandb run that fails at every call."""

    calls = 0

    def log(self, *_: Any, **__: Any) -> None:
        self.calls += 1
        raise LookupError("the service went away\nand said why at length")

    def finish(self) -> None:
        raise LookupError("gone")


def fake_wandb(monkeypatch: pytest.MonkeyPatch, run: Any) -> None:
    module = ModuleType("wandb")
    module.init = lambda **_: run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", module)


@pytest.mark.criterion("T035/AC4")
def test_wandb_that_breaks_is_reported_once_and_training_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    run, memory = BrokenRun(), MemorySink()
    fake_wandb(monkeypatch, run)
    with pytest.warns(UserWarning) as caught:
        train_with_an_overflow([WandbSink("amp"), memory])
    expected = "wandb could not log (LookupError: the service went away): training goes on without it"
    assert [str(warning.message) for warning in caught] == [expected]
    assert run.calls == 1
    assert len(memory.records) == 7


@pytest.mark.criterion("T035/AC4")
def test_absent_wandb_is_reported_once_and_training_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = MemorySink()
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.warns(UserWarning) as caught:
        train_with_an_overflow([WandbSink("amp"), memory])
    assert len(caught) == 1
    assert str(caught[0].message).startswith("wandb could not start (ModuleNotFoundError: ")
    assert len(memory.records) == 7


def test_wandb_that_cannot_finish_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    run = BrokenRun()
    run.log = lambda *_, **__: None  # type: ignore[method-assign]
    fake_wandb(monkeypatch, run)
    with pytest.warns(UserWarning, match=r"wandb could not finish \(LookupError: gone\)"):
        train_with_an_overflow([WandbSink("amp")])


def test_json_lines_have_every_step_with_null_for_what_is_not_finite(tmp_path: Path) -> None:
    memory, path = MemorySink(), tmp_path / "steps.jsonl"
    train_with_an_overflow([memory, JsonlSink(path)])
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert rows == [record.as_json() for record in memory.records]
    assert rows[3]["loss"] is rows[3]["grad_norm"] is None
    assert rows[4]["loss"] == pytest.approx(memory.records[4].loss)


def test_an_interval_below_one_step_is_refused() -> None:
    with pytest.raises(ValueError, match="every must be at least 1 step, found 0"):
        Tracker(0, [])
