"""What the report tells of a hot path: phases, the bottleneck and what it costs, and reads by line."""

import statistics
from collections.abc import Iterator

from gates.checks.hot_path.steps import PHASES, HotSeen, Line, Share, lines_of
from gates.judging.figures import sparkline
from gates.report import Section
from gates.task.hot_path import HotPath

COUNTED = ("host-reads", "synchronisations", "empty-cache")
LONGEST = 20


def sections(path: HotPath, seen: HotSeen) -> Iterator[Section]:
    """Yield the phases of one hot path, and its reads, where there are any."""
    if not seen.enough:
        yield Section(title=f"Hot path: {path.name}", text="Too little was seen of it; see the findings.")
        return
    yield Section(
        title=f"Hot path: {path.name}",
        text=_bottleneck(seen) + _idle(seen),
        columns=("Phase", "Time a step", "Share of the time", "Without it at most", "Course", "Line seen most"),
        rows=tuple(_row(seen, name, share) for name, share in _shares(seen) if share.value > 0),
    )
    lines = [(aspect, line) for aspect in COUNTED for line in lines_of(seen.steps, aspect)]
    if lines:
        yield Section(
            title=f"Reads and waits: {path.name}",
            text="By line; what is once in a while costs little, and what torch reads by itself is not counted.",
            columns=("Line", "Call", "At each step", "On so many steps", "Whose"),
            rows=tuple(_read(line) for _, line in lines[:LONGEST]),
        )


def _shares(seen: HotSeen) -> list[tuple[str, Share]]:
    return [(name, seen.phase(name)) for name in PHASES]


def _bottleneck(seen: HotSeen) -> str:
    """Name the phase that takes longest, and what a step without it would gain at most (Amdahl)."""
    name, share = max(_shares(seen), key=lambda each: each[1].value)
    step = statistics.median(each.seconds for each in seen.steps)
    runs = f" in {len(seen.runs)} processes" if len(seen.runs) > 1 else ""
    line = seen.line_of(name)
    at = f", most of it at {line}" if line else ""
    gain = f": without it a step would be at most {share.gain:.2f} times as fast" if share.gain else ""
    return (
        f"{len(seen.steps)} steps{runs} of {_time(step)} (median) on {seen.runs[0].device}; the first ones are left "
        f"out. Most of the time is spent in {name}, {share}{at}{gain}."
    )


def _idle(seen: HotSeen) -> str:
    """Tell how often the device had nothing to do, where there is one that can be asked."""
    idle, all_of_them = (sum(step.idle[i] for step in seen.steps) for i in (0, 1))
    if not all_of_them:
        return ""
    return f" The device had nothing to do in {idle / all_of_them:.0%} of {all_of_them} samples (launch gaps)."


def _row(seen: HotSeen, name: str, share: Share) -> tuple[str, ...]:
    times = [step.phases.get(name, 0.0) for step in seen.steps]
    line = seen.line_of(name)
    return (
        name, _time(statistics.median(times)), str(share), f"{share.gain:.2f} x" if share.gain else "-",
        sparkline(times), str(line or "-"),
    )  # fmt: skip


def _read(line: Line) -> tuple[str, ...]:
    whose = "torch's own" if line.read.of_torch else "the project's"
    return line.where, line.read.call, str(line.each), f"{line.often:.0%}", whose


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"
