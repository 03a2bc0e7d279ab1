"""Scaling: steps of the project at several sizes, and where one grows too fast, the line that does."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from pydantic import ValidationError

from gates.check import Evidence
from gates.child.probing import Entry, Probe, Probed, location, number, probing
from gates.child.process import ProcessRun
from gates.config import Context
from gates.measuring.deciding import quantile
from gates.model import Location, Model
from gates.task.probes import Scale
from gates.task.task import Task

LEVEL = 0.95
STEP = 0.005
MOST = 5.0
HARDLY = math.log(1.1)  # what grows by less, from the least size to the largest, is all but constant


@dataclass(frozen=True)
class Power:
    """An exponent and its interval, of so many rounds in so many starts."""

    value: float
    low: float
    high: float
    n: int
    starts: int

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def power(sizes: Sequence[int], starts: Sequence[Sequence[Sequence[float]]]) -> Power:
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
    lower = _student([slope(sizes, row) for row in medians])
    upper = _student([affine(sizes, row) for row in medians])
    grown = _student([math.log(row[-1] / row[0]) for row in medians])
    high = lower[1] if grown[1] <= HARDLY else max(lower[1], upper[1])
    value = min(max(affine(sizes, whole), lower[0]), high)
    return Power(value, lower[0], high, sum(map(len, starts)), len(starts))


def slope(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Return the slope in logarithms over the upper half of the sizes, two at least."""
    first = min(len(sizes) // 2, len(sizes) - 2)
    x, y = [math.log(size) for size in sizes[first:]], [math.log(value) for value in values[first:]]
    middle_x, middle_y = statistics.fmean(x), statistics.fmean(y)
    above = sum((a - middle_x) * (b - middle_y) for a, b in zip(x, y, strict=True))
    return above / sum((a - middle_x) ** 2 for a in x)


def affine(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Return the k with which a + b * n ** k, a >= 0 and b >= 0, comes nearest to the values, relative to each."""
    steps = round(MOST / STEP)
    return min((_misfit(sizes, values, i * STEP), i * STEP) for i in range(1, steps + 1))[1]


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


def _student(values: Sequence[float]) -> tuple[float, float]:
    middle, n = statistics.fmean(values), len(values)
    half = quantile(LEVEL, n - 1) * statistics.stdev(values) / math.sqrt(n)
    return middle - half, middle + half


PROGRAM = "scaling"
LEAST_SHARE = 0.1
MOST_LINES = 5
OF_PAGES = 4096.0


class Grown(Model):
    """A line of the project, what it takes of a step at the least and at the largest size, and the power of that."""

    place: Location
    function: str
    least: float
    most: float
    exponent: float
    share: float


class Scaled(Model):
    """One step at its sizes: the values of each size, by round and start; and the lines that grow fastest."""

    index: int
    name: str
    process: ProcessRun | None = None
    problem: str = ""
    place: Location | None = None
    device: str = "cpu"
    sizes: tuple[int, ...]
    starts: tuple[tuple[tuple[float, ...], ...], ...] = ()
    grown: tuple[Grown, ...] = ()

    def power(self) -> Power:
        """Return the exponent; raise `ValueError` where it cannot be told."""
        return power(self.sizes, self.starts)


class Scaling(Evidence):
    """All steps of a task whose growth is limited."""

    seen: tuple[Scaled, ...]

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Measure each step."""
        probe = probing(task, context, "scaling")
        seen = tuple(scaled(probe, i, scale, context) for i, scale in enumerate(task.scaling))
        return cls(
            how="each step at each size, sizes in turn, in fresh processes; where it grows too fast, line by line",
            commands=tuple(probe.commands),
            seen=seen,
        )

    def of(self, index: int) -> Scaled | None:
        """Return what was seen of one step."""
        return next((each for each in self.seen if each.index == index), None)


def scaled(probe: Probe, index: int, scale: Scale, context: Context) -> Scaled:
    """Measure a step; the same call with the folders of another revision measures it there."""
    probed = _asked(probe, scale, f"{index}", context, where=False)
    base = Scaled(index=index, name=scale.name, process=probed.process, problem=probed.trouble, place=probed.place,
                  sizes=scale.sizes)  # fmt: skip
    try:
        seen = base.model_copy(update=_facts(scale, probed))
        if seen.problem or not _exceeds(scale, seen):
            return seen
        return seen.model_copy(
            update={"grown": _grown(scale, _asked(probe, scale, f"{index}-where", context, where=True))}
        )
    except (ValidationError, KeyError, TypeError, ValueError) as error:
        return base.model_copy(
            update={"problem": base.problem or f"the journal cannot be read: {type(error).__name__}"}
        )


def _asked(probe: Probe, scale: Scale, name: str, context: Context, *, where: bool) -> Probed:
    told = {"call": scale.call, "args": scale.args, "kwargs": scale.kwargs, "argument": scale.argument,
            "sizes": scale.sizes, "of": scale.of, "restarts": scale.restarts, "budget_s": scale.budget_s,
            "where": where}  # fmt: skip
    limit = scale.timeout_s or context.timeout_s
    return probe.ask(PROGRAM, name, told, limit, threads=scale.threads)


def _facts(scale: Scale, probed: Probed) -> dict[str, object]:
    device = next((str(entry["type"]) for entry in probed.of("device")), "cpu")
    if scale.of in {"step_time_s", "step_cpu_time_s"}:
        rows = [
            (entry["restart"], entry["wall" if scale.of == "step_time_s" else "cpu"]) for entry in probed.of("round")
        ]
    else:
        rows = list(_rows(scale, probed.of("value")))
    starts: dict[object, list[tuple[float, ...]]] = {}
    for restart, row in rows:
        assert isinstance(row, list)
        starts.setdefault(restart, []).append(tuple(map(float, row)))
    return {"device": device, "starts": tuple(map(tuple, starts.values()))}


def _rows(scale: Scale, entries: list[Entry]) -> list[tuple[object, object]]:
    """Return the values of whole starts, each as one round; memory is never less than a page."""
    values = {(entry["restart"], entry["size"]): entry["value"] for entry in entries}
    least = OF_PAGES if scale.of == "peak_memory_bytes" else 1.0
    whole = [n for n in range(scale.restarts) if all((n, size) in values for size in scale.sizes)]
    return [(n, [max(least, number(values[n, size])) for size in scale.sizes]) for n in whole]


def _exceeds(scale: Scale, seen: Scaled) -> bool:
    """Return whether the step grows faster than it may."""
    try:
        found = seen.power()
    except ValueError:
        return False
    return scale.exponent.at_most is not None and found.low > scale.exponent.at_most


def _grown(scale: Scale, probed: Probed) -> tuple[Grown, ...]:
    """Return the lines that take more at the largest size than the limit lets them, the worst first, or the fastest."""
    told = {entry["size"]: _by_line(entry) for entry in probed.of("lines")}
    least, most = told.get(scale.sizes[0]), told.get(scale.sizes[-1])
    if least is None or not most:
        return ()
    ratio, limit = scale.sizes[-1] / scale.sizes[0], scale.exponent.at_most or 0.0
    whole = sum(value for value, _ in most.values()) or 1.0
    floor = 1e-3 * sum(value for value, _ in least.values()) or 1e-9  # what a line that did not run then may have taken
    found: list[tuple[float, Grown]] = []
    for (path, line), (value, function) in most.items():
        before = max(least.get((path, line), (0.0, ""))[0], floor)
        exponent = math.log(max(value, floor) / before) / math.log(ratio)
        place = location([path, line])
        if place is not None and value / whole >= LEAST_SHARE:
            grown = Grown(
                place=place, function=function, least=before, most=value, exponent=exponent, share=value / whole
            )
            found.append((value - before * ratio**limit, grown))
    # to look at a line takes its time, too: where that hides the growth, the line that grows fastest comes first
    beyond = any(excess > 0 for excess, _ in found)
    worst = sorted(found, key=lambda each: -each[0] if beyond else -each[1].exponent)
    return tuple(grown for excess, grown in worst[:MOST_LINES] if excess > 0 or not beyond)


def _by_line(entry: Entry) -> dict[tuple[str, int], tuple[float, str]]:
    lines = entry["lines"]
    assert isinstance(lines, list)
    return {(str(path), int(line)): (number(value), str(function)) for path, line, function, value, _ in lines}
