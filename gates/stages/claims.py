"""Stage 5, claims: does the evidence confirm what somebody said of the change?"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gates.check import Check, EvidenceSet
from gates.claims import tests
from gates.claims.claim import Answer, Claim, Standing, answer
from gates.claims.reports import Claims, ClaimsSource
from gates.evidence.tests.pytest_run import PytestRun
from gates.model import Finding, Level, Location, Outcome, Planned, RuleText, Severity
from gates.report import Section
from gates.stages.gate import Gate
from gates.task.task import Task

NONE = "no-claims"
SHOWN = 200  # rows of a table of claims
LISTED = 60  # lines with numbers that were not understood
COLUMNS = ("Place", "Text", "Claimed", "Standing", "Evidence")

NOTHING = answer(None, "a statement", "nothing in it can be checked")


class Ruling(NamedTuple):
    """A claim, and what came of it."""

    claim: Claim
    answer: Answer


def plan(task: Task) -> tuple[Planned, ...]:
    """Plan one check for each report."""
    checks = tuple(Planned(id=_check(path), title=f"No claim of {path} is contradicted") for path in _paths(task))
    return checks or (Planned(id=NONE, title="Claims"),)


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Check claim by claim: a contradicted one fails, one that nothing supports is unknown."""
    if not task.claims:
        message = "The task names no claims."
        yield Finding(rule="CL001", check=NONE, outcome=Outcome.NOT_APPLICABLE, message=message)
    for path in _paths(task):
        source = _source(path, evidence)
        yield from [_unread(task, path, source.problem)] if source.problem else _judge_source(source, evidence)


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Show each claim, how it stands, and what says so."""
    for path in _paths(task):
        source = _source(path, evidence)
        found = rulings(source, evidence)
        left = f" The first {SHOWN} are listed." if len(found) > SHOWN else ""
        text = f"{summary(source, found)}. {numbers_left(source, found)}{left}"
        yield Section(
            title=f"Claims of {path}",
            text=f"Not read: {source.problem}." if source.problem else text,
            columns=COLUMNS if found else (),
            rows=tuple(row(each) for each in found[:SHOWN]),
        )


def rulings(source: ClaimsSource, evidence: EvidenceSet) -> list[Ruling]:
    """Rule on each claim of a report: by the test run where that settles it, else by files and arithmetic."""
    return [Ruling(claim, _ruled(claim, evidence)) for claim in source.claims]


def _ruled(claim: Claim, evidence: EvidenceSet) -> Answer:
    ran = tests.rule(claim.said, evidence) if claim.said else None
    return ran if ran and (ran.standing is not Standing.UNSUPPORTED or claim.known is None) else claim.known or NOTHING


def row(ruling: Ruling) -> tuple[str, ...]:
    """Return a ruling as a row of a table."""
    claim, found = ruling
    seen = f"{found.seen} ({found.where})" if found.where else found.seen
    return str(claim.at), claim.text, found.expected, found.standing.value, seen


def summary(source: ClaimsSource, found: Sequence[Ruling]) -> str:
    """Return the counts in one line."""
    counts = {standing: sum(each.answer.standing is standing for each in found) for standing in Standing}
    return f"{len(found)} claims of {source.path}: " + ", ".join(f"{n} {name.value}" for name, n in counts.items())


def numbers_left(source: ClaimsSource, found: Sequence[Ruling]) -> str:
    """Return how many numbers of a report were not understood, and in which lines they stand."""
    left = source.not_understood([each.answer for each in found])
    lines = [*dict.fromkeys(left)]
    more = f" and {len(lines) - LISTED} more" if len(lines) > LISTED else ""
    where = f"; not understood: lines {', '.join(map(str, lines[:LISTED]))}{more}" if lines else ""
    return f"{len(source.numbers) - len(left)} of {len(source.numbers)} numbers were computed again or found{where}"


def _paths(task: Task) -> tuple[str, ...]:
    return tuple(dict.fromkeys(task.claims))


def _source(path: str, evidence: EvidenceSet) -> ClaimsSource:
    claims = evidence.get(Claims)
    if claims is None:
        return ClaimsSource(path=path, problem=evidence.why_missing(Claims))
    return claims.of(path) or ClaimsSource(path=path, problem="it was not read")


def _judge_source(source: ClaimsSource, evidence: EvidenceSet) -> Iterator[Finding]:
    found = rulings(source, evidence)
    seen: dict[str, int] = {}
    for claim, result in found:
        if result.standing is not Standing.CONTRADICTED:
            continue
        key = f"{result.expected}: {claim.text}"
        seen[key] = seen.get(key, 0) + 1
        where = f" ({result.where})" if result.where else ""
        yield Finding(
            rule="CL001",
            check=_check(source.path),
            outcome=Outcome.FAILED,
            severity=Severity.HIGH,
            message=f"{' '.join(claim.text.split())!r} is contradicted: {result.seen}{where}",
            location=claim.at,
            subject=key if seen[key] == 1 else f"{key} ({seen[key]})",
            expected=result.expected,
            actual=result.seen,
            impact="Who relies on this statement is misled.",
            remediation="Correct the statement, or fix what it speaks of.",
        )
    if not seen:
        yield _as_a_whole(source, found)


def _as_a_whole(source: ClaimsSource, found: Sequence[Ruling]) -> Finding:
    """Say what came of a report in which nothing is contradicted; without one confirmed claim nothing speaks for it."""
    good = any(each.answer.standing is Standing.CONFIRMED for each in found)
    return Finding(
        rule="CL001" if good else "CL002",
        check=_check(source.path),
        outcome=Outcome.PASSED if good else Outcome.UNKNOWN,
        level=Level.MUST if good else Level.ADVISORY,
        message=f"{summary(source, found)}. {numbers_left(source, found)}",
        location=Location(path=source.path),
        subject="as a whole",
        remediation="" if good else "State what can be checked: counts, sums, percentages, quoted lines.",
    )


def _unread(task: Task, path: str, problem: str) -> Finding:
    return Finding(
        rule="CL003",
        check=_check(path),
        outcome=Outcome.UNKNOWN,
        location=task.place(task),
        message=f"The claims of {path} were not read: {problem}",
        subject=path,
        actual="not read",
        remediation=f"Make {path} a report that can be read.",
    )


def _check(path: str) -> str:
    return f"claims:{path}"


RULES = (
    RuleText(
        id="CL001",
        title="No claim is contradicted",
        meaning="A statement of a report fails where the run, the files or arithmetic contradict it. Examples are "
        "another count, another line, or a total that does not add up.",
    ),
    RuleText(
        id="CL002",
        title="Some claim is confirmed",
        meaning="A report of which no statement could be computed again or found is unknown.",
    ),
    RuleText(
        id="CL003",
        title="Every report can be read",
        meaning="A report that is missing, too large or not UTF-8 is unknown: its claims were not checked.",
    ),
)

GATE = Gate(
    name="claims",
    title="Claims Verification",
    stage=5,
    weight=10,
    code="CL",
    checks=(
        Check(
            name="claims",
            gate="claims",
            order=10,
            rules=RULES,
            uses=(Claims, PytestRun),
            plan=plan,
            judge=judge,
            page=describe,
        ),
    ),
    applies=lambda task: bool(task.claims),
)
