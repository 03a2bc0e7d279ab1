"""How a benchmark hands over what it measured: the samples file, what a worker tells, and files of other tools."""

import json
import statistics
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, StrictBool, TypeAdapter, ValidationError, model_validator

from gates.errors import EvidenceUnavailable
from gates.model import Model
from gates.words import printable

Sample = Annotated[float, Field(strict=True, allow_inf_nan=False)]
POSITIVE_UNITS = {"s", "ms", "us", "ns", "B", "bytes"}


class Metric(Model):
    """Raw samples of one metric, per arm; paired samples were taken in turn and belong together by index."""

    unit: Annotated[str, Field(min_length=1)]
    direction: Literal["lower", "higher", "none"]
    paired: StrictBool
    arms: dict[str, Annotated[tuple[Sample, ...], Field(min_length=1)]] = Field(min_length=1)

    @model_validator(mode="after")
    def _plausible(self) -> Self:
        for arm, values in self.arms.items() if self.unit in POSITIVE_UNITS else ():
            if (wrong := next((i for i, value in enumerate(values) if value <= 0), None)) is not None:
                raise ValueError(f"arm {arm!r} sample {wrong} is {values[wrong]:g} {self.unit}, expected above 0")
        lengths = {arm: len(values) for arm, values in self.arms.items()}
        if self.paired and len(set(lengths.values())) > 1:
            raise ValueError(f"paired, but the arms have different numbers of samples: {lengths}")
        return self


class Device(Model):
    """The device that the samples were taken on."""

    type: Annotated[str, Field(min_length=1)]
    name: str
    capabilities: tuple[str, ...] = ()


class Samples(Model, title="gates samples"):
    """Everything that one measurement handed over; ratios and verdicts are computed from it, never read from it."""

    schema_: Literal["gates.samples/1"] = Field(alias="schema")
    device: Device
    environment: dict[str, str] = Field(default_factory=dict)
    settings: dict[str, str] = Field(default_factory=dict)
    timing: str = ""
    metrics: Annotated[dict[str, Metric], Field(min_length=1)]


class Hello(Model):
    """What a worker tells of itself before it is asked for anything."""

    hello: str
    device: Device
    environment: dict[str, str] = Field(default_factory=dict)
    threads: int | None = None


class Ran(Model):
    """One segment as the worker timed it, after `first_s`; `passed_s` is the same by the gate's own clock."""

    ran: int = Field(ge=1)
    wall_s: float = Field(gt=0)
    cpu_s: float | None = Field(default=None, gt=0)
    device_s: float | None = Field(default=None, gt=0)
    first_s: float | None = Field(default=None, ge=0)
    items: float | None = Field(default=None, gt=0)
    digest: str = ""
    switches: int | None = None
    passed_s: float | None = None
    peak_memory_bytes: float | None = None

    @property
    def step_s(self) -> float:
        """Return the seconds of a step, by the device's own clock where it has one."""
        return (self.device_s or self.wall_s) / self.ran

    @property
    def cpu_step_s(self) -> float | None:
        """Return the CPU seconds of a step; that of the host is none of a device's."""
        return None if self.cpu_s is None or self.device_s is not None else self.cpu_s / self.ran


class Collected(Model):
    """What a worker tells of its memory since its steps began."""

    collected: bool
    peak_memory_bytes: float | None = Field(default=None, gt=0)


class Ended(Model):
    """How a process of an arm ended, and what it and all that it waited for used, as the system counted it."""

    arm: str
    ended: int
    wall_s: float
    cpu_s: float
    peak_memory_bytes: int

    @property
    def words(self) -> str:
        """Return the end in words."""
        return f"exit code {self.ended}" if self.ended >= 0 else f"signal {-self.ended}"

    @property
    def as_step(self) -> Ran:
        """Return a command as one step, from its start to its end."""
        used = {"cpu_s": max(self.cpu_s, 1e-6), "peak_memory_bytes": float(self.peak_memory_bytes)}
        return Ran(ran=1, wall_s=self.wall_s, **used)


class BadSamples(EvidenceUnavailable):
    """A samples file that cannot be believed, and why, in one line."""


def _parsed(text: str) -> Any:  # noqa: ANN401  # JSON

    def refuse(token: str) -> float:
        raise BadSamples(f"holds {token}, expected finite numbers")

    try:
        return json.loads(printable(text), parse_constant=refuse)
    except RecursionError as error:
        raise BadSamples("nested beyond all sense") from error
    except ValueError as error:
        raise BadSamples(f"not valid JSON ({error}); was it cut short?") from error


def read(text: str) -> Samples:
    """Read a samples file; raise `BadSamples` with one line that says where and what."""
    try:
        return Samples.model_validate(_parsed(text))
    except ValidationError as error:
        where, why = first_wrong(error)
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise BadSamples(f"{where or 'the file'}: {why}{more}") from error


def first_wrong(error: ValidationError) -> tuple[str, str]:
    """Return where something is wrong first, if not as a whole, and what is."""
    first = error.errors()[0]
    why = str(first.get("ctx", {}).get("error", first["msg"]))
    return ".".join(str(part) for part in first["loc"] if part != "[key]"), f"{why[0].lower()}{why[1:]}"


SECONDS = Annotated[float, Field(strict=True, gt=0, le=1e9)]
TIMES = TypeAdapter(Annotated[list[SECONDS], Field(min_length=1)], config=ConfigDict(defer_build=True))


def read_times(text: str, form: str) -> dict[str, float]:
    """Return the median seconds of each benchmark: a run, of one machine state, is one sample; raise `BadSamples`."""
    told = _parsed(text)
    try:
        named = [*(_pytest_benchmark(told) if form == "pytest-benchmark" else _pyperf(told))]
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise BadSamples(f"not a file of {form} ({error!r:.200})") from error
    except (ValidationError, OverflowError) as error:
        raise BadSamples(f"holds a time that is none: {' '.join(str(error).split())[:200]}") from error
    if not named:
        raise BadSamples("holds no benchmark; did the tool run any?")
    (name, count), *_ = Counter(name for name, _ in named).most_common(1)
    if count > 1:
        raise BadSamples(f"holds two benchmarks called {name!r:.80}; rename one of them")
    return dict(named)


def _pytest_benchmark(told: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield each benchmark by its name, or with its file where several have that name."""
    named = Counter(str(benchmark["name"]) for benchmark in told["benchmarks"])
    for benchmark in told["benchmarks"]:
        stats, name = benchmark["stats"], str(benchmark["name"])
        own = name if named[name] == 1 else str(benchmark.get("fullname", name))
        yield own, statistics.median(TIMES.validate_python(stats.get("data") or [stats["median"]]))


def _pyperf(told: dict[str, Any]) -> Iterator[tuple[str, float]]:
    for benchmark in told["benchmarks"]:
        facts = {**told.get("metadata", {}), **benchmark.get("metadata", {})}
        if facts.get("unit", "second") != "second":
            continue
        if columns := [TIMES.validate_python(run["values"]) for run in benchmark["runs"] if run.get("values")]:
            yield str(facts["name"]), statistics.median(map(statistics.median, columns))
