"""Was anything made lower that the change is judged by? What was is listed, with both sides."""

from collections import Counter
from collections.abc import Iterator
from functools import partial

from gates.check import Check, EvidenceSet
from gates.checks.policy.collect import Goalposts, Mode
from gates.checks.policy.tests import Move, Part
from gates.model import Basis, Finding, Level, Outcome, Planned, RuleText, Severity
from gates.report import Section
from gates.task.task import Task

NAMED = 50
SLIGHT = {Part.CHANGED}
OF_THE_CODE = {Part.TESTS, Part.SETTINGS}

RULES = (
    RuleText(
        id="BL011",
        title="The change does not weaken the gate",
        meaning="A limit, level or binding lower than at the merge base stops the change, unless "
        "--policy-from judges it. Tests and settings are listed; --goalposts all stops weaker "
        "ones.",
    ),
)
_about = partial(Finding, rule="BL011", check="goalposts", level=Level.ADVISORY, expected="nothing lower than before")
_lower = partial(_about, outcome=Outcome.FAILED)


def plan(_task: Task) -> Iterator[Planned]:
    """Plan one comparison of everything; it speaks of the bar and not of the work, so it has no share of the score."""
    yield Planned(id="goalposts", title="The change does not weaken the gate", level=Level.ADVISORY, scored=False)


def judge(_task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Name each goalpost that was moved, and what could not be compared."""
    seen = evidence.get(Goalposts)
    if seen is None:
        message = f"Whether the change lowers what judges it was not seen: {evidence.why_missing(Goalposts)}"
        advice = "Run where the history is, or name what to compare with by --base."
        yield _about(outcome=Outcome.UNKNOWN, message=message, remediation=advice)
        return
    times: Counter[str] = Counter()
    moves = sorted(seen.moves, key=lambda move: (not stops(move, seen), list(Part).index(move.part)))
    for move in moves[:NAMED]:
        subject = f"{move.part.value} {move.what}"
        times[subject] += 1
        yield _move(move, seen, f"{subject} #{times[subject]}" if times[subject] > 1 else subject)
    if rest := moves[NAMED:]:
        message = f"{len(rest)} more policy changes; all are in evidence/Goalposts.json."
        advice = "Put back those that are named first."
        yield _lower(subject="more", message=message, remediation=advice, **_weight(rest[0], seen))
    for what in seen.unread[:NAMED]:
        message, advice = f"Not compared with {seen.base}: {what}", "Fix the file, or look at its changes yourself."
        yield _about(outcome=Outcome.UNKNOWN, subject=what, message=message, remediation=advice)
    if not moves and not seen.unread:
        compared = "None of the limits, bindings, tests and settings that are compared"
        message = f"{compared} asks for less than at {_base(seen)}."
        yield _about(outcome=Outcome.PASSED, severity=Severity.INFO, message=message, actual="nothing lower")


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


def _weight(move: Move, seen: Goalposts) -> dict[str, Severity | Level]:
    if stops(move, seen):
        return {"severity": Severity.HIGH, "level": Level.MUST}
    return {"severity": Severity.LOW if move.part in SLIGHT else Severity.MEDIUM}


def _move(move: Move, seen: Goalposts, subject: str) -> Finding:
    advice = "Put it back, or have a reviewer agree to it."
    if stops(move, seen):
        allow = "have the base judge (--policy-from) or a person allow it (--goalposts list)"
        advice = f"Put it back; where it is meant, {allow}."
    facts = {"subject": subject, "location": move.location, "expected": move.before, "actual": move.after}
    return _lower(message=str(move), remediation=advice, **facts, **_weight(move, seen))


def _base(seen: Goalposts) -> str:
    return f"{seen.base} ({seen.commit[:12]})"


def _effect(seen: Goalposts) -> str:
    if seen.policy:
        rest = "; weaker tests and settings stop the change" if seen.mode is Mode.ALL else ""
        return f"is listed: the task file of {seen.policy} judges{rest}"
    return {
        Mode.BAR: "stops the change; weaker tests and settings, and waivers, are listed",
        Mode.ALL: "stops the change, and so do weaker tests and settings, and waivers",
        Mode.LIST: "is listed",
    }[seen.mode]


CHECK = Check(
    name="policy",
    gate="business-logic",
    order=120,
    rules=RULES,
    uses=(Goalposts,),
    plan=plan,
    judge=judge,
    page=describe,
    basis=Basis.DECLARED,
)
