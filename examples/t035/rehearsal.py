"""A few training steps on the CPU, to be watched from outside while they run."""

from collections.abc import Callable
from dataclasses import replace

import torch

from amp_core.benchmark.timing import threads
from amp_core.model import GPT
from amp_core.precision import precision_for
from amp_core.step import StepResult
from amp_core.tracking import MemorySink, StepRecord, Tracker, WandbSink
from examples.t035.trainer import TrainConfig, build_model, build_step, train


def rehearse(precision: str = "fp16", steps: int = 5, accumulate: int = 2) -> tuple[StepRecord, ...]:
    """Train the smoke model for a few steps; return what is known of each step.

    With a loss scale to log, as in fp16, they are logged to Weights & Biases offline. That is a run as any other, with
    its service and its file: of a disabled one nothing would show that it logs.

    Raises:
        ValueError: as `TrainConfig` and `resolve` do, for what does not exist.
    """
    small = TrainConfig(device="cpu", batch_size=4, train_sequences=64, val_sequences=8, log_every=1)
    config = replace(small, precision=precision, steps=steps, accumulate=accumulate)
    with threads(1):  # the model is tiny: more would wait for each other, on a busy machine for most of the time
        return tuple(train(config, [WandbSink("amp_core rehearsal")] if precision == "fp16" else []).history)


def rehearse_seed(seed: int) -> str:
    """Train the smoke model for two steps; return the digest of what it came to, which is the same every time."""
    config = TrainConfig(
        precision="fp16", device="cpu", steps=2, batch_size=4, seed=seed, train_sequences=8, val_sequences=8
    )
    return train(config).digest


def make_step(batch: int) -> Callable[[], StepResult]:
    """Return a training step of the smoke model on the CPU, over a batch of so many sequences."""
    config = TrainConfig(precision="bf16", device="cpu", batch_size=batch)
    device = torch.device("cpu")
    model: GPT = build_model(config, device)
    step = build_step(config, model, precision_for("bf16", "cpu"))
    tokens = torch.zeros(batch, config.model.context + 1, dtype=torch.int64)
    return lambda: step((tokens,))


def shared_tracker() -> Tracker:
    """Return a tracker that keeps what it gets, four steps at a time."""
    return Tracker(4, [MemorySink()])


def log_step(tracker: Tracker, number: int) -> None:
    """Log a step, as a trainer does."""
    one = torch.ones(())
    tracker.add(StepResult(one * number, one, one, one, one * 0))


def logged_steps(tracker: Tracker) -> list[float]:
    """Return the numbers that stand in the records, and those that the records were logged under, in order."""
    tracker.flush()
    (sink,) = tracker.sinks
    assert isinstance(sink, MemorySink)
    return [*sorted(record.loss for record in sink.records), *(float(record.step) for record in sink.records)]
