"""What is known of a run's steps, as plain numbers on the host, the sink that keeps them, and of a broken one."""

import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

METRICS = {
    "loss": "train/loss",
    "grad_norm": "train/grad_norm",
    "lr": "train/lr",
    "loss_scale": "amp/loss_scale",
    "found_inf": "amp/found_inf",
    "applied": "amp/applied",
    "skipped": "amp/skipped",
    "loss_scale_growth": "amp/loss_scale_growth",
    "steps_per_s": "speed/steps_per_s",
    "samples_per_s": "speed/samples_per_s",
    "tokens_per_s": "speed/tokens_per_s",
    "mfu": "speed/mfu",
    "stall_share": "speed/stall_share",
    "peak_memory_bytes": "memory/peak_bytes",
    "peak_rss_bytes": "memory/peak_rss_bytes",
}  # the names of the numbers in a service that groups by prefix


@dataclass  # there is one for each step: a frozen one takes five times as long to make
class StepRecord:
    """One optimizer step on the host, as StepResult has it on the device; `metrics` are those of the loss function."""

    step: int
    loss: float
    grad_norm: float
    lr: float
    loss_scale: float
    found_inf: float
    metrics: Mapping[str, float] = field(default_factory=dict, kw_only=True)

    def row(self) -> dict[str, float | None]:
        """Return all numbers by name, the metrics among them."""
        row: dict[str, Any] = asdict(self)
        return {"step": self.step, **row.pop("metrics"), **row}

    def as_json(self) -> dict[str, float | None]:
        """Return the numbers by name; one that is not finite becomes None, as JSON has no word for it."""
        return {name: finite(value) for name, value in self.row().items()}


@dataclass(frozen=True)
class Rates:
    """A run's pace from one flush to the next; None stands for what nobody counted or knows.

    `applied` and `skipped` are totals of the run. `loss_scale_growth` is the loss scale's doublings per step: log2 of
    this flush's last scale over the last flush's, divided by the steps between. `stall_share` is the part of the time
    in which the host waited for data. `peak_memory_bytes` is the most that the accelerator's allocator gave out, and
    `peak_rss_bytes` the most that this process held in main memory: both since the process began.
    """

    applied: int
    skipped: int
    loss_scale_growth: float | None
    steps_per_s: float
    samples_per_s: float | None
    tokens_per_s: float | None
    mfu: float | None
    stall_share: float | None
    peak_memory_bytes: int | None
    peak_rss_bytes: int | None


@dataclass(frozen=True)
class Flush:
    """The steps since the last flush, one or more, in order, and their rates."""

    steps: tuple[StepRecord, ...]
    rates: Rates

    def rows(self) -> Iterator[dict[str, float | None]]:
        """Yield each step's numbers by name, `step` among them; the last has the rates, too."""
        *others, last = (record.row() for record in self.steps)
        yield from others
        yield last | asdict(self.rates)

    def metrics(self) -> Iterator[tuple[int, dict[str, float]]]:
        """Yield each step's number, and what is known of it under the names of METRICS; others begin with train/."""
        for record, row in zip(self.steps, self.rows(), strict=True):
            del row["step"]
            yield record.step, {service_name(name): value for name, value in row.items() if value is not None}


class MemorySink:
    """Keeps the records of the steps, the rates of the flushes, and what was logged besides, in lists."""

    name = "the memory sink"

    def __init__(self) -> None:
        self.records: list[StepRecord] = []
        self.rates: list[Rates] = []
        self.logged: list[tuple[int, Mapping[str, float]]] = []

    def write(self, flush: Flush) -> None:
        """Append the records and the rates."""
        self.records.extend(flush.steps)
        self.rates.append(flush.rates)

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Append the numbers, with their step."""
        self.logged.append((step, numbers))

    def close(self) -> None:
        """Keep what there is."""


def service_name(name: str) -> str:
    """Return the name of a number in a service that groups by prefix."""
    return METRICS.get(name, name if "/" in name else f"train/{name}")


def finite(value: float | None) -> float | None:
    """Return a number, or None for one that is not finite."""
    return value if value is not None and math.isfinite(value) else None


def report(name: str, verb: str, error: Exception) -> None:
    """Warn, in one line and by its name, that a service could not do something."""
    reason = str(error).partition("\n")[0]
    warnings.warn(
        f"{name} could not {verb} ({type(error).__name__}: {reason}): training goes on without it", stacklevel=3
    )
