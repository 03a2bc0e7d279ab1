"""What is another than in the run before, from two reports of one task; pure."""

import re
from collections.abc import Iterator

from gates.model import Outcome
from gates.report import Report, Since

NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
INTERVAL = re.compile(rf"^({NUMBER}) \[({NUMBER}), ({NUMBER})\]")
NOTED = 1.2  # a gate that took less than this many times as long took as long as before
LEAST_S = 5.0


def since(old: Report, new: Report) -> Since:
    """Return what turned, which numbers changed by more than their intervals, and which gates took longer or less."""
    apart = (f"{name}: {text}" for name, text, way in numbers(old, new) if way)
    return Since(
        at=old.started_at,
        decision=old.verdict.decision,
        criteria=tuple(_turned(old, new)),
        numbers=tuple(apart),
        times=tuple(_times(old, new)),
    )


def numbers(old: Report, new: Report) -> Iterator[tuple[str, str, str]]:
    """Yield each number with an interval that is in both: name, values, `less` or `more` where the intervals differ."""
    was, now = _intervals(old), _intervals(new)
    for name in was:
        if name in now:
            (before, low, high), (after, least, most) = was[name], now[name]
            text = f"{before:g} [{low:g}, {high:g}] -> {after:g} [{least:g}, {most:g}]"
            apart = low > most or high < least
            yield name, text, ("less" if after < before else "more") if apart else ""


def _turned(old: Report, new: Report) -> Iterator[str]:
    was = {one.id: one.status for one in old.criteria}
    for one in new.criteria:
        if one.id not in was:
            yield f"{one.id} is new"
        elif was[one.id] is not one.status:
            yield f"{one.id} {was[one.id].value} -> {one.status.value}"


def _times(old: Report, new: Report) -> Iterator[str]:
    was = {gate.name: gate.duration_s for gate in old.gates if gate.ran}
    for gate in new.gates:
        before = was.get(gate.name)
        if gate.ran and before is not None and max(before, gate.duration_s) >= LEAST_S:
            slower = gate.duration_s > NOTED * before
            if slower or before > NOTED * gate.duration_s:
                yield f"{gate.name} {before:.0f} s -> {gate.duration_s:.0f} s"


def _intervals(report: Report) -> dict[str, tuple[float, float, float]]:
    """Return value and interval of each number by what it is of."""
    found = {}
    for one in report.every_finding:
        match = INTERVAL.match(one.actual)
        if match and one.outcome is not Outcome.NOT_APPLICABLE:
            value, low, high = map(float, match.groups())
            found[f"{one.subject or one.check}{f' ({one.criterion})' if one.criterion else ''}"] = (value, low, high)
    return found
