"""The hot path: what trains is run in a process of its own, and each step is taken apart."""

from collections import Counter
from collections.abc import Sequence
from typing import Self

from pydantic import ValidationError

from gates.check import Evidence
from gates.checks.hot_path.steps import HotRead, HotRun, HotSeen, HotStep, Loader, Seen
from gates.child.probing import Entry, Probe, Probed, location, probing
from gates.config import Context
from gates.model import Location
from gates.task.probes import HotPath
from gates.task.task import Task

RUNS = 3
SHARE = 0.8  # of the time limit, after which a run stops by itself


class HotPaths(Evidence):
    """The hot paths of a task, taken apart."""

    seen: tuple[HotSeen, ...]

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Run each callable in a process of its own."""
        probe = probing(task, context, "hot_paths")
        seen = tuple(
            _seen(probe, i, path, path.timeout_s or context.timeout_s) for i, path in enumerate(task.hot_paths)
        )
        return cls(
            how="what trains, in processes of its own, with the time and the reads of each step",
            commands=tuple(probe.commands),
            seen=seen,
        )

    def of(self, index: int) -> HotSeen | None:
        """Return what was seen of a task's hot path."""
        return next((each for each in self.seen if each.index == index), None)


def _seen(probe: Probe, index: int, path: HotPath, limit_s: float) -> HotSeen:
    """Run a callable, and again while one more run may settle whether it waits too long for batches."""
    asked = {"call": path.call, "args": path.args, "steps": path.steps, "seconds": SHARE * limit_s}
    runs: list[HotRun] = []
    while len(runs) < RUNS:
        told = probe.ask("recorder.hot_path", f"{index}-{len(runs) + 1}", asked, limit_s, threads=None)
        runs.append(_read(told))
        seen = HotSeen(index=index, name=path.name, runs=tuple(runs))
        if not seen.enough or not _unclear(seen, path):
            break
    return seen


def _read(told: Probed) -> HotRun:
    try:
        run = read_steps(told.entries)
    except (ValidationError, KeyError, TypeError, ValueError) as error:
        return HotRun(process=told.process, problem=f"the journal cannot be read: {type(error).__name__}")
    ended = run.complete and not told.foreign and told.process is not None and told.process.exit_code == 0
    facts: dict[str, object] = {"process": told.process, "complete": ended, "problem": told.problem}
    if told.foreign:
        facts["problem"] = "the journal holds lines that are not its own"
    elif not told.problem:
        facts |= {"crash": told.place, "error": told.error}
    return run.model_copy(update=facts)


def _unclear(seen: HotSeen, path: HotPath) -> bool:
    """Return whether the share of the waiting lies neither below nor above its limit with its whole interval."""
    limit, share = path.limits.stall_share, seen.stall()
    return limit is not None and share.low <= limit < share.high


def read_steps(entries: Sequence[Entry]) -> HotRun:
    """Return what a journal tells."""
    steps = _together([entry for entry in entries if entry["word"] == "step"])
    end = next((entry for entry in entries if entry["word"] == "end"), None)
    stopped = bool(end and end["stopped"])
    loaders = {Loader(workers=int(str(entry["workers"])), made=location(entry["made"])): None
               for entry in entries if entry["word"] == "loader"}  # fmt: skip
    return HotRun(
        problem=next((str(entry["what"]) for entry in entries if entry["word"] == "problem"), ""),
        troubles=tuple(str(entry["what"]) for entry in entries if entry["word"] == "trouble"),
        complete=end is not None,
        stopped=stopped,
        steps=tuple(map(_step, steps[:-1] if stopped else steps)),  # stopped when the last one began
        loaders=tuple(loaders),
    )


def _together(told: Sequence[Entry]) -> list[list[Entry]]:
    """Put the steps of several optimizers together: one that steps again begins a new round."""
    steps: list[list[Entry]] = []
    numbers: set[object] = set()
    for entry in told:
        if not steps or entry["optimizer"] in numbers:
            steps.append([])
            numbers.clear()
        numbers.add(entry["optimizer"])
        steps[-1].append(entry)
    return steps


def _step(together: list[Entry]) -> HotStep:
    phases: Counter[str] = Counter()
    lines: Counter[tuple[str, Location | None]] = Counter()
    reads: Counter[HotRead] = Counter()
    late: list[tuple[float, float]] = []
    for entry in together:
        shared = _phases(entry)
        phases.update(shared)
        late.append(_late(entry, shared["data"]))
        for _, phase, place, count in _rows(entry["samples"]):
            lines[str(phase), location(place)] += int(str(count))
        for call, place, by, device, count in _rows(entry["reads"]):
            read = HotRead(call=str(call), location=location(place), by=str(by), device=str(device))
            reads[read] += int(str(count))
    return HotStep(
        seconds=sum(phases.values()),
        phases=dict(phases),
        late=(sum(each[0] for each in late), sum(each[1] for each in late)),
        device=str(together[-1]["device"]),
        reads=tuple(read.model_copy(update={"count": count}) for read, count in reads.items()),
        lines=tuple(Seen(phase=phase, location=place, count=count) for (phase, place), count in lines.items()),
    )


def _phases(entry: Entry) -> dict[str, float]:
    """Return the seconds in each phase, with what was spent on batches outside of loaders taken from where it was."""
    told = entry["phases"]
    phases = {str(name): float(str(seconds)) for name, seconds in told.items()} if isinstance(told, dict) else {}
    samples: Counter[str] = Counter()
    waits: Counter[str] = Counter()
    for clock, phase, _, count in _rows(entry["samples"]):
        samples[str(clock)] += int(str(count))
        waits[str(clock)] += int(str(count)) * (phase != clock)
    for clock, count in waits.items():
        moved = phases.get(clock, 0.0) * count / samples[clock]
        phases[clock] = phases.get(clock, 0.0) - moved
        phases["data"] = phases.get("data", 0.0) + moved
    return {"data": 0.0, **phases}


def _late(entry: Entry, data: float) -> tuple[float, float]:
    """Return how long a processor was waited for: in batches, of which those outside of loaders had their share."""
    told, phases = entry["late"], entry["phases"]
    in_data, late = (float(str(each)) for each in told) if isinstance(told, list) else (0.0, 0.0)
    seconds = {str(name): float(str(each)) for name, each in phases.items()} if isinstance(phases, dict) else {}
    rest = sum(seconds.values()) - seconds.get("data", 0.0)
    share = (data - seconds.get("data", 0.0)) / rest if rest > 0 else 0.0
    return min(late, in_data + share * (late - in_data)), late


def _rows(told: object) -> list[list[object]]:
    return [list(row) for row in told if isinstance(row, list)] if isinstance(told, list) else []
