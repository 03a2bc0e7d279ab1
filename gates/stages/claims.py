"""Stage 5, claims: does the evidence confirm what somebody said of the change?"""

from collections.abc import Iterator

from gates import registry, stages
from gates.check import Check, EvidenceSet
from gates.claims.checking import Judged, World, rule
from gates.claims.claim import Ruling, Standing
from gates.criteria import status
from gates.evidence.claims import Claims, ClaimsSource
from gates.evidence.executed_lines import ExecutedLines
from gates.evidence.measurements import Measurements
from gates.evidence.pytest_run import PytestRun
from gates.evidence.run_date import day_of
from gates.model import Finding, Level, Location, Outcome, Planned, RuleText, Severity
from gates.report import Section
from gates.stages.gate import Gate
from gates.task.task import Task
from gates.verdict import decide, decide_gate, score_gate
from gates.waiving import waive

NAME = "claims"
NONE = "no-claims"
SHOWN = 200  # rows of a table of claims
SEVERITY = {Level.MUST: Severity.HIGH, Level.SHOULD: Severity.MEDIUM, Level.ADVISORY: Severity.LOW}


def plan(task: Task) -> tuple[Planned, ...]:
    """Plan one check for each file of claims."""
    checks = tuple(Planned(id=_check(path), title=f"No claim of {path} is contradicted") for path in _paths(task))
    return checks or (Planned(id=NONE, title="Claims"),)


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Check claim by claim: a contradicted one fails, one that nothing supports is unknown."""
    if not task.claims:
        yield Finding(rule="CL001", check=NONE, outcome=Outcome.NOT_APPLICABLE, severity=Severity.INFO,
                      message="The task names no claims.")  # fmt: skip
    world = _world(task, evidence)
    for path in _paths(task):
        source = _source(path, evidence)
        if source.problem:
            yield _unread(task, path, source.problem)
        else:
            yield from _judge_source(source, world)


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell each claim, how it stands, and what says so."""
    world = _world(task, evidence)
    for path in _paths(task):
        source = _source(path, evidence)
        rulings = [rule(looked, world) for looked in source.claims]
        counts = ", ".join(f"{sum(r.standing is s for r in rulings)} {s.value}" for s in Standing)
        listed = [ruling for ruling in rulings if not _only_words(ruling)]
        words = len(rulings) - len(listed)
        left = (
            f" {words} name lines that are there and say in words what they do; these are not listed." if words else ""
        )
        if len(listed) > SHOWN:
            left += f" Of the others the first {SHOWN} are."
        yield Section(
            title=f"Claims of {path}",
            text=f"Not read: {source.problem}." if source.problem else f"{counts}.{left}",
            columns=("Place", "Text", "Claimed", "Standing", "Evidence") if listed else (),
            rows=tuple(row(ruling) for ruling in listed[:SHOWN]),
        )


def row(ruling: Ruling) -> tuple[str, ...]:
    """Return a ruling as a row of a table."""
    claim = ruling.claim
    seen = f"{ruling.seen} ({ruling.where})" if ruling.where else ruling.seen
    return str(claim.at), claim.text, ruling.expected, ruling.standing.value, seen


def _paths(task: Task) -> tuple[str, ...]:
    return tuple(dict.fromkeys(task.claims))


def _source(path: str, evidence: EvidenceSet) -> ClaimsSource:
    claims = evidence.get(Claims)
    if claims is None:
        return ClaimsSource(path=path, problem=evidence.why_missing(Claims))
    return claims.of(path) or ClaimsSource(path=path, problem="it was not read")


def _judge_source(source: ClaimsSource, world: World) -> Iterator[Finding]:
    rulings = [rule(looked, world) for looked in source.claims]
    seen: dict[tuple[str, str], int] = {}
    for ruling in rulings:
        if ruling.standing is Standing.CONFIRMED or _only_words(ruling):
            continue
        key = (ruling.standing.value, f"{ruling.claim.said.kind}: {ruling.claim.text}")
        seen[key] = seen.get(key, 0) + 1
        yield _finding(ruling, source, subject=key[1] if seen[key] == 1 else f"{key[1]} ({seen[key]})")
    yield from _as_a_whole(source, rulings)


def _only_words(ruling: Ruling) -> bool:
    """Return whether a claim only says in words what its lines do; they are counted, not listed one by one."""
    said = ruling.claim.said
    words = said.kind == "place" and not (said.quote or said.symbol)
    return words and ruling.standing is Standing.UNSUPPORTED and ruling.claim.level is not Level.MUST


def _finding(ruling: Ruling, source: ClaimsSource, *, subject: str) -> Finding:
    wrong = ruling.standing is Standing.CONTRADICTED
    claim = ruling.claim
    where = f" ({ruling.where})" if ruling.where else ""
    return Finding(
        rule="CL001" if wrong else "CL002",
        check=_check(source.path),
        outcome=Outcome.FAILED if wrong else Outcome.UNKNOWN,
        severity=Severity.HIGH if wrong else SEVERITY[claim.level],
        level=Level.MUST if wrong else claim.level,
        message=f"{' '.join(claim.text.split())!r} is {ruling.standing.value}: {ruling.seen}{where}",
        location=claim.at,
        subject=subject,
        expected=ruling.expected,
        actual=ruling.seen,
        impact="Who relies on this statement is misled." if wrong else "Whether it is true is not known.",
        remediation="Correct the statement, or mend what it speaks of." if wrong
        else "Collect the evidence that settles it, or take the statement back.",
    )  # fmt: skip


def _as_a_whole(source: ClaimsSource, rulings: list[Ruling]) -> Iterator[Finding]:
    """Say what came of the file as a whole; without one confirmed claim nothing speaks for it."""
    counts = {s: sum(ruling.standing is s for ruling in rulings) for s in Standing}
    text = ", ".join(f"{count} {s.value}" for s, count in counts.items())
    words = sum(map(_only_words, rulings))
    also = f"; {words} of the unsupported name lines that are there and say in words what they do" if words else ""
    facts = {"check": _check(source.path), "location": Location(path=source.path), "subject": "as a whole",
             "actual": text}  # fmt: skip
    message = f"{len(rulings)} claims of {source.path}: {text}{also}"
    if counts[Standing.CONTRADICTED]:
        return
    if counts[Standing.CONFIRMED]:
        passed = {"rule": "CL001", "outcome": Outcome.PASSED, "severity": Severity.INFO, "message": message}
        yield Finding.model_validate({**facts, **passed})
        return
    yield Finding.model_validate({
        **facts, "rule": "CL002", "outcome": Outcome.UNKNOWN, "severity": Severity.LOW, "level": Level.ADVISORY,
        "message": message if rulings else f"No claim that can be checked was found in {source.path}",
        "remediation": "State what can be checked: counts, measured numbers, quoted lines.",
    })  # fmt: skip


def _unread(task: Task, path: str, problem: str) -> Finding:
    return Finding(
        rule="CL003", check=_check(path), outcome=Outcome.UNKNOWN, severity=Severity.HIGH, location=task.place(task),
        message=f"The claims of {path} were not read: {problem}", subject=path, actual="not read",
        remediation=f"Make {path} a file of claims or a report that can be read.",
    )  # fmt: skip


def other_gates(task: Task) -> list[Gate]:
    """Return the gates of a task but this one, whose verdicts claims may speak of."""
    return [gate for gate in registry.values(stages, Gate) if gate.name != NAME and gate.applies(task)]


def world_of(task: Task | None, evidence: EvidenceSet, *sources: ClaimsSource) -> World:
    """Return what claims are checked against; the other gates are judged only where a claim speaks of them."""
    kinds = {looked.claim.said.kind for source in sources for looked in source.claims}
    if task is None or not kinds & {"verdict", "criterion"}:
        return World(evidence)
    judged, everything = [], list[Finding]()
    for gate in other_gates(task):
        findings = waive(task, gate.judge(task, evidence), day_of(evidence))
        everything += findings
        judged.append(
            Judged(
                name=gate.name,
                decision=decide_gate(findings)[0],
                score=score_gate(gate.plan(task), findings).total,
                complete=all(kind in evidence for kind in gate.uses),
            )
        )
    criteria = {c.id: status(f for f in everything if f.criterion == c.id).value for c in task.criteria}
    complete = all(gate.complete for gate in judged)
    return World(evidence, tuple(judged), decide(everything).decision, criteria if complete else None)


def _world(task: Task, evidence: EvidenceSet) -> World:
    claims = evidence.get(Claims)
    return world_of(task, evidence, *(claims.sources if claims else ()))


def _check(path: str) -> str:
    return f"claims:{path}"


RULES = (
    RuleText(
        id="CL001",
        title="No claim is contradicted",
        meaning="A statement fails where the evidence, the files or arithmetic contradict it. Examples "
        "are another count, a number outside of its interval, or a total that does not add up.",
    ),
    RuleText(
        id="CL002",
        title="Every claim is supported",
        meaning="A statement that nothing in this run settles is unknown, however plausible. It leaves "
        "the verdict open only where the claims file marks it 'level: must'.",
    ),
    RuleText(
        id="CL003",
        title="Every file of claims can be read",
        meaning="A file of claims is unknown where it is missing, too large, not UTF-8 or not of the "
        "published form. Its claims were not checked.",
    ),
)

GATE = Gate(
    name="claims", title="Claims Verification", stage=5, weight=10, code="CL",
    checks=(
        Check(
            name="claims", gate="claims", order=10, rules=RULES, uses=(Claims, PytestRun, Measurements, ExecutedLines),
            plan=plan, judge=judge, page=describe,
        ),
    ),
    applies=lambda task: bool(task.claims),
)  # fmt: skip
