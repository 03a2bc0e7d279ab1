"""Scaling: steps of the project at several sizes, and where one grows too fast, the line that does."""

import math
from typing import Self

from pydantic import ValidationError

from gates.check import Evidence
from gates.child.probing import Entry, Probe, Probed, location, number, probing
from gates.child.process import ProcessRun
from gates.context import Context
from gates.measuring.deciding.exponent import Power, power
from gates.model import Location, Model
from gates.task.scale import Scale
from gates.task.task import Task

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
        with probing(task, context, "scaling") as probe:
            seen = tuple(scaled(probe, i, scale, context) for i, scale in enumerate(task.scaling))
        return cls(
            how="each step at each size, sizes in turn, in fresh processes; where it grows too fast, line by line",
            commands=tuple(probe.commands), seen=seen,
        )  # fmt: skip

    def of(self, index: int) -> Scaled | None:
        """Return what was seen of one step."""
        return next((each for each in self.seen if each.index == index), None)


def scaled(probe: Probe, index: int, scale: Scale, context: Context) -> Scaled:
    """Measure a step; the same call with the folders of another revision measures it there."""
    probed = _asked(probe, scale, f"{index}", context, where=False)
    base = Scaled(index=index, name=scale.name, process=probed.process, problem=probed.problem, place=probed.place,
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
    return probe.ask(PROGRAM, name, told, limit, scale.call, threads=scale.threads)


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
            grown = Grown(place=place, function=function, least=before, most=value, exponent=exponent,
                          share=value / whole)  # fmt: skip
            found.append((value - before * ratio**limit, grown))
    # to look at a line takes its time, too: where that hides the growth, the line that grows fastest comes first
    beyond = any(excess > 0 for excess, _ in found)
    worst = sorted(found, key=lambda each: -each[0] if beyond else -each[1].exponent)
    return tuple(grown for excess, grown in worst[:MOST_LINES] if excess > 0 or not beyond)


def _by_line(entry: Entry) -> dict[tuple[str, int], tuple[float, str]]:
    lines = entry["lines"]
    assert isinstance(lines, list)
    return {(str(path), int(line)): (number(value), str(function)) for path, line, function, value, _ in lines}
