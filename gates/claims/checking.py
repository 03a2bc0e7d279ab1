"""Each claim against what was seen: confirmed, contradicted, or unsupported; pure."""

from collections.abc import Callable
from dataclasses import dataclass

from gates.check import EvidenceSet
from gates.claims import _check_numbers, _check_places, _check_tests
from gates.claims._answer import Answer, confirmed, contradicted, percent_text, unsupported
from gates.claims.claim import (
    Change,
    Claim,
    Clash,
    Coverage,
    CriterionStatus,
    Length,
    Number,
    Place,
    Presence,
    Ruling,
    Share,
    Sum,
    Tally,
    Verdict,
)
from gates.claims.sources import Looked
from gates.evidence.executed_lines import ExecutedLines
from gates.model import Decision, Location

ROUNDED = 0.006  # what a part of a sum may be off by, where parts are not whole numbers
ROUGHLY = 2.0  # percentage points
NO_GATES = "no gate was run"


@dataclass(frozen=True)
class Judged:
    """What a gate of this run came to, as far as its evidence was collected."""

    name: str
    decision: Decision
    score: int
    complete: bool


@dataclass(frozen=True)
class World:
    """What claims are checked against: the evidence of a run, and what its gates made of it."""

    evidence: EvidenceSet
    gates: tuple[Judged, ...] = ()
    decision: Decision | None = None
    criteria: dict[str, str] | None = None


def rule(looked: Looked, world: World) -> Ruling:
    """Rule on one claim."""
    claim = looked.claim
    answer = _answer(looked, world)
    return Ruling(claim=claim, standing=answer.standing, expected=answer.expected, seen=answer.seen, where=answer.where)


def _answer(looked: Looked, world: World) -> Answer:
    said = looked.claim.said
    if isinstance(said, Place):
        return _check_places.place(said, looked.sightings)
    if isinstance(said, Length):
        return _check_places.length(said, looked.sightings)
    if isinstance(said, Presence):
        return _check_places.presence(said, looked.sightings)
    if isinstance(said, Number):
        return _check_numbers.number(said, world.evidence)
    if isinstance(said, Coverage):
        return coverage(said, world.evidence)
    if isinstance(said, Verdict):
        return verdict(said, world)
    if isinstance(said, CriterionStatus):
        return criterion(said, world)
    return _of_itself(looked.claim) or _check_tests.answer(said, world.evidence)


def _of_itself(claim: Claim) -> Answer | None:
    """Answer what a report can be asked without any evidence."""
    said = claim.said
    if isinstance(said, Sum):
        return total(said)
    if isinstance(said, Share):
        return share(said)
    if isinstance(said, Change):
        return change(said)
    if isinstance(said, Tally):
        text = f"{said.said} {said.title!r}"
        check: Callable[..., Answer] = confirmed if said.said == said.listed else contradicted
        return check(text, f"{said.listed} listed under it")
    if isinstance(said, Clash):
        where = Location(path=claim.at.path, line=said.other_line)
        return contradicted("one of two statements", f"{said.reason}: {said.other}", where)
    return None


def total(said: Sum) -> Answer:
    """Answer whether the parts add up; parts that are all deductions are taken from the points possible."""
    whole = sum(said.parts)
    exact = all(part == int(part) for part in (*said.parts, said.total))
    slack = 0.0 if exact else ROUNDED * (len(said.parts) + 1)
    if said.of_total is not None and all(part <= 0 for part in said.parts):
        whole += said.of_total
    parts = " ".join(f"{part:+g}" for part in said.parts).removeprefix("+")
    expected = f"the {said.title} adds up to {said.total:g}"
    if abs(whole - said.total) > slack:
        return contradicted(expected, f"{parts} = {whole:g}")
    possible = sum(said.of_parts)
    told = said.of_total is not None and len(said.of_parts) == len(said.parts)
    if told and possible != said.of_total:
        return contradicted(f"{expected} of {said.of_total:g}", f"the parts are out of {possible:g}")
    return confirmed(expected, f"{parts} = {whole:g}")


def share(said: Share) -> Answer:
    """Answer whether a percentage is that of its count, rounded either way."""
    exact = 100 * said.count / said.whole
    return _percentage(exact, said.percent, said.digits, said.roughly, f"{said.count:g}/{said.whole:g}")


def change(said: Change) -> Answer:
    """Answer whether a reduction is that of the numbers before and after, as far as these are rounded."""
    exact = 100 * (1 - said.after / said.before)
    return _percentage(exact, said.percent, said.digits, said.roughly, f"{said.before:g} to {said.after:g}", slack=1.0)


def _percentage(exact: float, stated: float, digits: int, roughly: bool, of: str, *, slack: float = 0) -> Answer:
    near = ROUGHLY if roughly else 10.0**-digits + slack
    check = confirmed if abs(exact - stated) < near + 1e-9 else contradicted
    return check(f"{of} is {percent_text(stated, digits)}", f"it is {exact:.{digits + 1}f} %")


def coverage(said: Coverage, evidence: EvidenceSet) -> Answer:
    """Answer from the lines of functions that the tests were seen to execute."""
    seen = evidence.get(ExecutedLines)
    of = "of public functions executed" if said.at_least else "covered"
    expected = f"{'at least ' if said.at_least else ''}{percent_text(said.percent, said.digits)} {of}"
    if seen is None:
        return unsupported(expected, f"coverage was not seen: {evidence.why_missing(ExecutedLines)}")
    told = [function for function in seen.functions if function.counts]
    if not told:
        return unsupported(expected, "no public function was told apart")
    ran = sum(bool(function.lines) for function in told)
    percent = 100 * ran / len(told)
    text = f"{ran} of {len(told)} public functions executed ({percent:.1f} %)"
    if not said.at_least:
        return unsupported(expected, f"{text}; the share of lines was not measured")
    if percent >= said.percent:
        return confirmed(expected, text)
    doubt = seen.doubt()
    return unsupported(expected, f"{text}, but {doubt}") if doubt else contradicted(expected, text)


def verdict(said: Verdict, world: World) -> Answer:
    """Answer what a report decided by what this run decided; a score is compared only where its gate is named."""
    expected = " ".join(filter(None, [said.gate or "verdict", said.decision and said.decision.value,
                                      f"score {said.score}" if said.score is not None else ""]))  # fmt: skip
    if said.gate:
        gate = next((gate for gate in world.gates if gate.name == said.gate), None)
        if gate is None:
            return unsupported(expected, f"there is no gate {said.gate!r} in this run" if world.gates else NO_GATES)
        decision, score, complete = gate.decision, gate.score, gate.complete
    elif world.decision is None:
        return unsupported(expected, NO_GATES)
    else:
        decision, score, complete = world.decision, None, all(gate.complete for gate in world.gates)
    seen = f"{decision.value}" + (f", score {score}" if score is not None else "")
    if not complete:
        return unsupported(expected, f"not all of its evidence was collected; so far: {seen}")
    if said.score is not None and score is not None and said.score != score:
        return contradicted(expected, seen)
    if said.decision is None or said.decision is decision:
        return confirmed(expected, seen)
    if decision is Decision.INCONCLUSIVE or said.decision is not Decision.PASS:
        return unsupported(expected, f"this run says {seen}")
    return contradicted(expected, f"this run says {seen}")


def criterion(said: CriterionStatus, world: World) -> Answer:
    """Answer whether a criterion is met by what the gates found of it."""
    expected = f"{said.criterion} {'met' if said.met else 'not met'}"
    seen = (world.criteria or {}).get(said.criterion)
    if seen is None:
        return unsupported(expected, NO_GATES if world.criteria is None else "the task has no such criterion")
    if (seen == "PASS") is said.met and seen not in {"PARTIAL", "UNVERIFIED"}:
        return confirmed(expected, seen)
    if seen in {"FAIL", "NOT IMPLEMENTED"} and said.met:
        return contradicted(expected, seen)
    return unsupported(expected, seen)
