"""By which power of a size time, memory or calls of a step grow, measured at several sizes."""

import json
import math
import statistics
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from gates.check import Said
from gates.child.probing import Probe, Probed
from gates.child.warm import THREADS
from gates.evidence._probes import ProbeCheck, Probes, Seen, only, readable, unknown
from gates.measuring.interval import LEVEL, Estimate, student
from gates.model import Outcome
from gates.task.types import Json, Located, Name, OneCall, Seconds
from gates.words import grouped, shown

FEWEST = 3


class Exponent(Located):
    """What the exponent must be: of what grows as `size ** exponent`."""

    at_most: float


class Scale(OneCall):
    """How a step grows with a size.

    `call` is called with `args`, `kwargs` and, by the name that `over` gives, one size after the other; what it returns
    is the step. `of` is what is measured of each step: wall time, CPU time, the most memory above what was held before
    the step was made, or how many calls of functions it makes.
    """

    key: ClassVar[str] = "scaling"

    kwargs: dict[str, Json] = Field(default_factory=dict)
    over: dict[Name, tuple[Annotated[int, Field(ge=1)], ...]]
    of: Literal["step_time_s", "step_cpu_time_s", "peak_memory_bytes", "python_calls"] = "step_time_s"
    exponent: Exponent
    on: Literal["any", "cpu", "cuda", "xpu", "mps"] = "any"
    threads: Annotated[int, Field(ge=1, le=1024)] = 1
    restarts: Annotated[int, Field(ge=3, le=20)] = 5
    budget_s: Seconds = 20.0

    @model_validator(mode="after")
    def _can_be_fitted(self) -> Self:
        if len(self.over) != 1:
            raise ValueError("'over' needs one name with its sizes, such as {batch: [8, 16, 32, 64]}")
        if self.argument in self.kwargs:
            raise ValueError(f"{self.argument!r} stands in 'over' and in 'kwargs'")
        if len(self.sizes) < FEWEST or list(self.sizes) != sorted(set(self.sizes)):
            raise ValueError(f"'over' needs {FEWEST} sizes or more, from the least to the largest, each once")
        if self.sizes[-1] < 4 * self.sizes[0]:
            raise ValueError("the largest size of 'over' must be 4 times the least, or more: less tells no exponent")
        return self

    @property
    def argument(self) -> str:
        """Return the name by which the size is given."""
        return next(iter(self.over))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the sizes."""
        return next(iter(self.over.values()))

    @property
    def name(self) -> str:
        """Return what it is called in reports."""
        given = [*map(json.dumps, self.args), *(f"{name}={json.dumps(value)}" for name, value in self.kwargs.items())]
        return f"{self.of} of {self.call}({', '.join([*given, f'{self.argument}=n'])})"


STEP, MOST = 0.005, 5.0
HARDLY = math.log(1.1)  # what grows by less, from the least size to the largest, is all but constant


def power(sizes: Sequence[int], starts: Sequence[Sequence[Sequence[float]]]) -> Estimate:
    """Return the exponent from the values of each size in each round of each start.

    A constant part, such as the start of a step, makes the slope in logarithms too small, a fit with a constant part
    follows the noise of the smallest sizes. So the exponent lies between the two: `slope` over the upper half of the
    sizes, below which it is not, and `affine`, the k of a + b * n ** k with a >= 0.

    Each start gives its medians. The interval begins where Student's interval of the slopes of the starts begins, and
    ends where the higher of the two intervals ends; where nothing grows, no k can be told, and the slope alone counts.
    Raises `ValueError` where there are fewer than two starts, or values that are not above 0.
    """
    if len(starts) < 2:
        raise ValueError(f"{len(starts)} start, expected two or more")
    if any(not (math.isfinite(value) and value > 0) for rounds in starts for row in rounds for value in row):
        raise ValueError("a value that is not above 0")
    medians = [[statistics.median(column) for column in zip(*rounds, strict=True)] for rounds in starts]
    whole = [statistics.median(column) for column in zip(*medians, strict=True)]
    lower = student([slope(sizes, row) for row in medians], LEVEL)
    grown = student([math.log(row[-1] / row[0]) for row in medians], LEVEL)
    upper = student([affine(sizes, row) for row in medians], LEVEL)
    high = lower[1] if grown[1] <= HARDLY else max(lower[1], upper[1])
    value = min(max(affine(sizes, whole), lower[0]), high)
    return Estimate(value, lower[0], high, sum(map(len, starts)), LEVEL)


def slope(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Return the slope in logarithms over the upper half of the sizes, two at least."""
    first = min(len(sizes) // 2, len(sizes) - 2)
    logs = ([math.log(each) for each in column[first:]] for column in (sizes, values))
    return statistics.linear_regression(*logs).slope


def affine(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Return the k with which a + b * n ** k, a >= 0 and b >= 0, comes nearest to the values, relative to each."""
    return min((_misfit(sizes, values, i * STEP), i * STEP) for i in range(1, round(MOST / STEP) + 1))[1]


def _misfit(sizes: Sequence[int], values: Sequence[float], k: float) -> float:
    """Return the sum of the squares that the best a and b leave, each value being 1."""
    rows = [(1 / value, (size / sizes[-1]) ** k / value) for size, value in zip(sizes, values, strict=True)]
    aa, bb = sum(x * x for x, _ in rows), sum(y * y for _, y in rows)
    ab, a1, b1 = sum(x * y for x, y in rows), sum(x for x, _ in rows), sum(y for _, y in rows)
    a, b, determinant = 0.0, b1 / bb, aa * bb - ab * ab
    if determinant > 1e-12 * aa * bb and a1 * bb > b1 * ab:
        a, b = (a1 * bb - b1 * ab) / determinant, (b1 * aa - a1 * ab) / determinant
    if b < 0:
        a, b = a1 / aa, 0.0
    return float(sum((a * x + b * y - 1) ** 2 for x, y in rows))


class Scaled(Seen):
    """One step at its sizes: the values of each size, by round and start."""

    device: str = "cpu"
    sizes: tuple[int, ...]
    starts: tuple[tuple[tuple[float, ...], ...], ...] = ()

    def found(self, scale: Scale) -> Estimate | str:
        """Return the exponent, or why there is none."""
        if self.problem:
            return self.problem
        if scale.on not in {"any", self.device}:
            return f"it was measured on {self.device}, asked is {scale.on}"
        if len(self.starts) < scale.restarts:
            return f"{len(self.starts)} of {scale.restarts} starts in the time there is"
        try:
            return power(self.sizes, self.starts)
        except ValueError as error:
            return str(error)


class Scaling(Probes[Scale, Scaled]):
    """All steps of a task whose growth is limited."""

    key = "scaling"
    method = "each step at each size, sizes in turn, in fresh processes"

    @classmethod
    def look(cls, probe: Probe, name: str, part: Scale, limit_s: float) -> Scaled:
        """Measure a step; the same call with the folders of another revision measures it there."""
        told = part.model_dump(include={"call", "args", "kwargs", "of", "threads", "restarts", "budget_s"})
        asked = {**told, "argument": part.argument, "sizes": part.sizes}
        probed = probe.ask("scaling", name, asked, limit_s, {THREADS: str(part.threads)})
        return readable(Scaled(problem=probed.trouble, place=probed.place, sizes=part.sizes), lambda: _facts(probed))


def _facts(probed: Probed) -> dict[str, object]:
    device = next((str(entry["type"]) for entry in probed.of("device")), "cpu")
    starts = grouped(probed.of("round"), lambda entry: str(entry["restart"])).values()
    return {"device": device, "starts": tuple([entry["values"] for entry in start] for start in starts)}


UNITS = {"step_time_s": "s", "step_cpu_time_s": "s", "peak_memory_bytes": "bytes", "python_calls": "calls"}
WIDER = "Choose larger sizes, so that the constant part is small beside them, or a larger 'budget_s' or 'restarts'."


def _said(scale: Scale, seen: Scaled) -> Said:
    found, most = seen.found(scale), scale.exponent.at_most
    if isinstance(found, str):
        return unknown(found, location=seen.place)
    exponent = found.said("{:.2f}".format)
    told = f"exponent {exponent}, of {found.n} rounds in {len(seen.starts)} starts on {seen.device}"
    if found.high <= most:
        return Said(Outcome.PASSED, told, exponent, expected=f"<= {most:g}")
    if found.low <= most:
        return unknown(f"{told}, asked is <= {most:g}", exponent, remedy=WIDER)
    by, middle = scale.sizes[-1] // scale.sizes[0], _middle(seen)
    impact = f"{scale.argument} times {by} makes it {middle[-1] / middle[0]:.3g} times as much."
    fix = "Profile it at two sizes (cProfile, memray). Look for a loop within a loop, or a matrix of all by all."
    return Said(Outcome.FAILED, told, exponent, None, f"<= {most:g}", impact, fix)


def _middle(seen: Scaled) -> list[float]:
    rows = [row for rounds in seen.starts for row in rounds]
    return [statistics.median(column) for column in zip(*rows, strict=True)]


def _rows(scale: Scale, seen: Scaled, said: Said) -> Iterator[tuple[str, ...]]:
    values = [shown(value, UNITS[scale.of]) for value in _middle(seen)] if seen.starts else ["-"]
    sizes = f"{scale.argument} {', '.join(map(str, scale.sizes))}"
    rounds = f"{sum(map(len, seen.starts))} in {len(seen.starts)} starts"
    found = (said.outcome.value, said.actual, f"<= {scale.exponent.at_most:g}")
    yield *found, sizes, ", ".join(values), rounds, seen.device, scale.name


CHECK = ProbeCheck[Scale, Scaled](
    name="scaling",
    order=50,
    rule="PF007",
    evidence=Scaling,
    aspects=only(lambda scale: f"{scale.name} grows with an exponent <= {scale.exponent.at_most:g}", _said),
    promise="it grows no faster than it may",
    title="Complexity",
    text="The exponent says by which power of a size a step grows. It lies between the slope in logarithms over the "
    "upper half of the sizes and the k of a + b n^k. Its interval is Student's, of 95 % over the starts.",
    columns=("Outcome", "Exponent", "Asked", "Sizes", "At each", "Rounds", "Device", "Step"),
    rows=_rows,
    doubt="not known how it grows",
    remedy="Make `call` return the step, and let it run to its end.",
).check()
