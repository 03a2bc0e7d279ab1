"""Was anything made lower that the change is judged by? What was is listed, with both sides."""

from collections import Counter
from collections.abc import Iterator

from gates.check import About, Check, EvidenceSet
from gates.checks.policy.collect import Goalposts, Mode
from gates.checks.policy.tests import Move, Part
from gates.model import Basis, Finding, Level, Planned, RuleText, Severity
from gates.report import Section
from gates.task.task import Task

NAMED = 50
OF_THE_CODE = {Part.TESTS, Part.SETTINGS}

RULES = (
    RuleText(
        id="BL011",
        title="The change does not weaken the gate",
        meaning="A limit, level or binding lower than at the merge base stops the change, unless --policy-from judges "
        "it. Tests and settings are listed; --goalposts all stops weaker ones.",
    ),
)
ABOUT = About(rule="BL011", check="goalposts", level=Level.ADVISORY, expected="nothing lower than before")


def plan(_task: Task) -> Iterator[Planned]:
    """Plan one comparison of everything; it speaks of the bar and not of the work, so it has no share of the score."""
    yield Planned(id="goalposts", title="The change does not weaken the gate", level=Level.ADVISORY, scored=False)


def judge(_task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Name each goalpost that was moved, and what could not be compared."""
    seen = evidence.get(Goalposts)
    if seen is None:
        message = f"Whether the change lowers what judges it was not seen: {evidence.why_missing(Goalposts)}"
        yield ABOUT.unknown(message, "Run where the history is, or name what to compare with by --base.")
        return
    times: Counter[str] = Counter()
    moves = sorted(seen.moves, key=lambda move: (not stops(move, seen), list(Part).index(move.part)))
    for move in moves[:NAMED]:
        subject = f"{move.part.value} {move.what}"
        times[subject] += 1
        yield _move(move, seen, f"{subject} #{times[subject]}" if times[subject] > 1 else subject)
    if rest := moves[NAMED:]:
        message = f"{len(rest)} more policy changes; all are in evidence/Goalposts.json."
        yield _weighed(rest[0], seen).failed(message, "Put back those that are named first.", subject="more")
    for what in seen.unread[:NAMED]:
        fix = "Mend the file, or look at its changes yourself."
        yield ABOUT.unknown(f"Not compared with {seen.base}: {what}", fix, subject=what)
    if not moves and not seen.unread:
        compared = "None of the limits, bindings, tests and settings that are compared"
        yield ABOUT.passed(f"{compared} asks for less than at {_base(seen)}.", actual="nothing lower")


def describe(_task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell what was compared with what, and list what was moved."""
    seen = evidence.get(Goalposts)
    if seen is None:
        return
    yield Section(
        title="Policy Changes",
        text="The task is new since the base." if seen.is_new else "",
        facts=(("Compared with", _base(seen)), ("A lower limit", _effect(seen)), ("Changes", str(len(seen.moves)))),
        columns=("Part", "What", "Before", "Now", "Place"),
        rows=tuple(
            (move.part.value, move.what, move.before, move.after, str(move.location or "-"))
            for move in seen.moves[:NAMED]
        ),
    )


def stops(move: Move, seen: Goalposts) -> bool:
    """Return whether a move stops the change: not where the base judges in its place."""
    if seen.mode is Mode.LIST:
        return False
    if seen.policy:  # tests and their settings are those of the work tree all the same
        return seen.mode is Mode.ALL and move.part in OF_THE_CODE
    return move.part is Part.BAR or (seen.mode is Mode.ALL and move.part is not Part.CHANGED)


def _weighed(move: Move, seen: Goalposts) -> About:
    if stops(move, seen):
        return ABOUT.but(severity=Severity.HIGH, level=Level.MUST)
    return ABOUT.but(severity=Severity.LOW if move.part is Part.CHANGED else Severity.MEDIUM)


def _move(move: Move, seen: Goalposts, subject: str) -> Finding:
    fix = "Put it back, or have a reviewer agree to it."
    if stops(move, seen):
        allow = "have the base judge (--policy-from) or a person allow it (--goalposts list)"
        fix = f"Put it back; where it is meant, {allow}."
    about = _weighed(move, seen).but(subject=subject, location=move.location)
    return about.failed(str(move), fix, expected=move.before, actual=move.after)


def _base(seen: Goalposts) -> str:
    return f"{seen.base} ({seen.commit[:12]})"


def _effect(seen: Goalposts) -> str:
    if seen.policy:
        rest = "; weaker tests, settings and pragmas stop the change" if seen.mode is Mode.ALL else ""
        return f"is listed: the task file of {seen.policy} judges{rest}"
    return {
        Mode.BAR: "stops the change; weaker tests, settings, waivers and pragmas are listed",
        Mode.ALL: "stops the change, and so do weaker tests, settings, waivers and pragmas",
        Mode.LIST: "is listed",
    }[seen.mode]


CHECK = Check("policy", "business-logic", 120, RULES, (Goalposts,), plan, judge, describe, basis=Basis.DECLARED)
