"""Numbers of the steps: kept on the device, copied to the host every few steps, handed to sinks."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Protocol, Self

import torch
from torch import Tensor

from amp_core.data import Stream
from amp_core.step import StepResult
from amp_core.throughput import Throughput
from amp_core.tracking.pace import Pace
from amp_core.tracking.records import METRICS, Flush, StepRecord, report

RESERVED = {"step", *METRICS}
SCALARS = 5  # that each step has, besides its metrics


class Sink(Protocol):
    """Somewhere that records go. If it raises, it is reported once, by its `name` if it has one, and left out.

    One with a method `log(step, numbers)` gets other numbers of a step that was written, such as a validation's.
    """

    def write(self, flush: Flush) -> None:
        """Take the steps since the last call, in order."""

    def close(self) -> None:
        """Finish; nothing is written afterwards."""


class Tracker:
    """Numbers the optimizer steps and keeps their scalars on the device; one copy flushes `every` steps at once.

    Steps count from 0, or on from a loaded state; nobody else numbers them. A flush's copy waits until the device
    has done its steps, so that the time from one flush to the next is theirs: the rates need no other
    synchronisation. The first interval has the warm-up in it. `stream` tells the time spent waiting for data.
    Several threads may use one tracker: each step is counted, and written, once.

    Raises:
        ValueError: `every` is below 1.
    """

    def __init__(
        self,
        every: int,
        sinks: Sequence[Sink],
        *,
        throughput: Throughput | None = None,
        stream: Stream | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if every < 1:
            raise ValueError(f"every must be at least 1 step, found {every!r}")
        self.every = every
        self.sinks = list(sinks)
        self.step = 0
        self.skipped = 0
        self._pending: list[tuple[Tensor, tuple[str, ...]]] = []  # scalars, and the names of those that are metrics
        self._lock = threading.RLock()  # a flush may be part of an addition
        self._pace = Pace(throughput, stream, clock)

    def add(self, result: StepResult, *, samples: int = 0, tokens: int = 0) -> bool:
        """Keep the scalars of the next step, as they are now; return whether that flushed.

        They are copied on their device, so that tensors changed in place later do no harm. `samples` and `tokens`
        are those that this process trained on in the step; 0 means not counted.

        Raises:
            ValueError: a metric has the name of a number that each step has.
        """
        names = tuple(result.metrics)
        if names and (taken := RESERVED.intersection(names)):
            raise ValueError(f"a metric needs another name than {min(taken)!r}, which the tracker gives by itself")
        fixed = (result.loss.detach(), result.grad_norm, result.lr, result.loss_scale, result.found_inf)
        scalars = torch.stack((*fixed, *result.metrics.values()))
        with self._lock:
            self._pending.append((scalars, names))
            self._pace.count(samples, tokens)
            self.step += 1
            if len(self._pending) < self.every:
                return False
            self.flush()
            return True

    def flush(self) -> None:
        """Copy what is pending to the host, and hand it to every sink."""
        with self._lock:
            pending, self._pending = self._pending, []
            if pending:
                self._hand_over(pending)

    def _hand_over(self, pending: list[tuple[Tensor, tuple[str, ...]]]) -> None:
        scalars = torch.cat([each for each, _ in pending])
        numbers = iter(scalars.tolist())  # the one copy; it waits for the device
        steps = tuple(
            StepRecord(step, *islice(numbers, SCALARS), metrics=dict(zip(names, numbers, strict=False)))
            for step, (_, names) in enumerate(pending, self.step - len(pending))
        )
        self.skipped += sum(record.found_inf > 0.0 for record in steps)
        flush = Flush(steps, self._pace.rates(steps, skipped=self.skipped, device=scalars.device))
        for sink in tuple(self.sinks):
            self._attempt(sink, "log", partial(sink.write, flush))

    def log(self, **numbers: float) -> None:
        """Hand numbers of the last step, such as a validation's, to every sink, after the step's own."""
        with self._lock:
            self.flush()
            for sink in tuple(self.sinks):
                if log := getattr(sink, "log", None):
                    self._attempt(sink, "log", partial(log, max(self.step - 1, 0), numbers))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Flush, then leave the time that the block takes out of the rates: an evaluation is no training."""
        self.flush()
        yield
        self._pace.restart()

    def state_dict(self) -> dict[str, int]:
        """Flush, so that no sink knows less than a checkpoint, and return the number of steps, and of those skipped."""
        with self._lock:
            self.flush()
            return {"step": self.step, "skipped": self.skipped}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Count on from a state; steps that are pending are forgotten."""
        self._pending.clear()
        self.step, self.skipped = state["step"], state["skipped"]
        self._pace.restart()

    def close(self) -> None:
        """Flush, and close every sink."""
        try:
            self.flush()
        finally:
            for sink in tuple(self.sinks):
                self._attempt(sink, "finish", sink.close)

    def __enter__(self) -> Self:
        self._pace.restart()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _attempt(self, sink: Sink, verb: str, action: Callable[[], None]) -> None:
        """Let a sink act; one that fails is reported and left out, and the others get their records."""
        try:
            action()
        except Exception as error:  # noqa: BLE001  a service of others may raise anything, and must not stop training
            self.sinks.remove(sink)
            report(getattr(sink, "name", type(sink).__name__), verb, error)
