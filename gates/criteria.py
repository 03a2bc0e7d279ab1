"""From findings to a verdict, to a score that no verdict reads, and to where the criteria of a task stand."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import partial

from gates.check import About
from gates.evidence.tests.pytest_run import PytestRun, tests_of
from gates.evidence.tests.test_records import BAD
from gates.model import Basis, Decision, Finding, Level, Outcome, Planned, Row, Severity, Status, Verdict, Waived
from gates.report import LACKING, CriterionReport, GateReport, Score, ScoreLine, Trace, ranked, speaking
from gates.task.measurement import NEVER_WAIVED, Waiver
from gates.task.task import Criterion, Task
from gates.words import first_of

NAMED = 5
EXIT_CODES = {Decision.PASS: 0, Decision.BLOCK: 1, Decision.INCONCLUSIVE: 3}
OPEN = (Status.PARTIAL, Status.UNVERIFIED)  # could still go either way
LEVEL_WEIGHTS = {Level.MUST: 4, Level.SHOULD: 2, Level.ADVISORY: 1}
NO_EVIDENCE = "no check passed: nothing that was looked at speaks for the change"


def decide(findings: Iterable[Finding]) -> Verdict:
    """Block on a failure that matters, say so when required evidence is missing, else pass."""
    everything = ranked(findings)
    blocking, missing = [f for f in everything if f.blocks], [f for f in everything if f.leaves_open]
    decision = Decision.BLOCK if blocking else Decision.INCONCLUSIVE if missing else Decision.PASS
    reasons = tuple(map(str, [*blocking, *missing]))
    if not reasons and not any(f.outcome is Outcome.PASSED and f.basis is not Basis.DECLARED for f in everything):
        decision, reasons = Decision.INCONCLUSIVE, (NO_EVIDENCE,)
    return Verdict(decision=decision, exit_code=EXIT_CODES[decision], reasons=reasons)


def decide_gate(findings: Sequence[Finding]) -> tuple[Decision, tuple[str, ...]]:
    """Decide one gate; one to which nothing of the task applies says so."""
    applying = [f for f in findings if f.outcome is not Outcome.NOT_APPLICABLE]
    if findings and not applying:
        return Decision.NOT_APPLICABLE, ()
    if applying and all(f.waived for f in applying):
        return Decision.WAIVED, tuple(str(f.waived) for f in applying)
    verdict = decide(findings)
    return verdict.decision, verdict.reasons


def score_gate(checks: Sequence[Planned], findings: Sequence[Finding]) -> Score:
    """Share 100 points by level among the checks that count; only a check that passed gets its points."""
    spoken = speaking(findings)
    applying = [check for check in checks if check.scored and _counts(check, spoken.get(check.id))]
    points, lines = share(100, [LEVEL_WEIGHTS[check.level] for check in applying]), list[ScoreLine]()
    for check, possible in zip(applying, points, strict=True):
        said = spoken.get(check.id)
        got = possible if said and said.outcome is Outcome.PASSED else 0
        note = "waived" if said and said.waived else (said.outcome if said else Outcome.UNKNOWN).value
        lines.append(ScoreLine(title=check.title, check=check.id, got=got, of=possible, note=note))
    return Score(total=sum(line.got for line in lines), of=sum(points), lines=tuple(lines))


def _counts(check: Planned, said: Finding | None) -> bool:
    idle = said and said.outcome is Outcome.UNKNOWN and said.level is Level.ADVISORY
    return not (said and said.outcome is Outcome.NOT_APPLICABLE) and not (idle and check.level is not Level.ADVISORY)


def score_task(gates: Sequence[tuple[str, int, Score]]) -> Score:
    """Fold the gates' scores into 100 points by the gates' weights; gates without points do not count."""
    counting = [(name, weight, score) for name, weight, score in gates if score.of]
    points = share(100, [weight for _, weight, _ in counting])
    pairs = [(name, score, of) for (name, _, score), of in zip(counting, points, strict=True)]
    lines = tuple(ScoreLine(title=n, got=of * s.total // s.of, of=of, note=f"{s.total}/{s.of}") for n, s, of in pairs)
    return Score(total=sum(line.got for line in lines), of=sum(points), lines=lines)


def share(total: int, weights: Sequence[int]) -> list[int]:
    """Split a whole number by weights, largest remainder first, so that the parts add up to it exactly."""
    if not (whole := sum(weights)):
        return []
    parts = [total * weight // whole for weight in weights]
    for index in sorted(range(len(weights)), key=lambda i: (-(total * weights[i] % whole), i))[: total - sum(parts)]:
        parts[index] += 1
    return parts


def stand(
    task: Task, criterion: Criterion, gates: Sequence[GateReport], run: PytestRun | None, more: Sequence[Finding] = ()
) -> CriterionReport:
    """Fold the findings of a criterion into its status and its line of the traceability matrix."""
    everything = [*(finding for gate in gates for finding in gate.findings), *more]
    about = [finding for finding in everything if finding.criterion == criterion.id]
    planned = {one.id: one for gate in gates for one in gate.checks if one.row}
    places = [task.place(waiver) for waiver in task.waivers if waiver.criterion == criterion.id]
    waivers = [f for f in everything if f.rule == "BL012" and f.location in places]
    telling = [f.message for f in waivers if f.outcome in LACKING or any(one.waived for one in about)]
    open_or_bad = [f for f in ranked(about) if f.outcome in LACKING]
    return CriterionReport(
        **criterion.model_dump(include={"id", "text", "level"}),
        status=status(about),
        reasons=(*telling, *(f"{f} ({f.waived})" if f.waived else str(f) for f in open_or_bad)),
        code=_traces(about, planned, Row.CODE),
        tests=(*_tests(task, criterion, run), *_traces(about, planned, Row.TEST)),
        measures=_traces(about, planned, Row.MEASURE),
    )


def status(findings: Iterable[Finding]) -> Status:
    """Return a criterion's status; code that was only read never makes it a pass."""
    everything = [f for f in findings if f.outcome is not Outcome.NOT_APPLICABLE]
    binding = [f for f in everything if f.level is Level.MUST] or everything
    failed = [f for f in binding if f.outcome is Outcome.FAILED and not f.waived]
    observed = [f for f in binding if f.outcome is Outcome.PASSED and f.basis is Basis.OBSERVED]
    if any(f.absent for f in failed):
        return Status.NOT_IMPLEMENTED
    if failed:
        return Status.FAIL
    if any(f.outcome is Outcome.UNKNOWN and not f.waived for f in binding):
        return Status.PARTIAL if observed else Status.UNVERIFIED
    return Status.WAIVED if any(f.waived for f in binding) else Status.PASS if observed else Status.UNVERIFIED


def _tests(task: Task, criterion: Criterion, run: PytestRun | None) -> Iterator[Trace]:
    """Yield the tests that stand for a criterion; only one that passed in a believed run has passed."""
    for test in tests_of(task, criterion, run):
        passed = test.passed and run is not None and run.complete
        outcome = Outcome.PASSED if passed else Outcome.FAILED if test.outcome in BAD else Outcome.UNKNOWN
        yield Trace(name=test.id, location=test.location, outcome=outcome, detail=test.outcome.value)


def _traces(findings: Sequence[Finding], planned: Mapping[str, Planned], row: Row) -> tuple[Trace, ...]:
    """Return what stands for a criterion in a row, once each: a run that answers several checks alike is one trace."""
    found = dict[object, Trace]()
    for f in findings:
        name, check = f.subject or f.message, planned.get(f.check)
        if check and check.row is row and f.outcome is not Outcome.NOT_APPLICABLE:
            trace = Trace(name=name, kind=check.label, location=f.location, outcome=f.outcome, detail=f.actual)
            found.setdefault((name, f.location, f.outcome), trace)
    return tuple(found.values())


OPTIONAL = "what verifies it is optional"


def unseen(task: Task, findings: Sequence[Finding], stands: Mapping[str, Status]) -> Iterator[Finding]:
    """Say so where nothing was seen to hold of a required criterion, or, where none is required, of all of them."""
    say = partial(About(rule="GT004", check="seen", location=task.place(task)).unknown, actual="nothing seen")
    required = [criterion for criterion in task.criteria if criterion.level is Level.MUST]
    for criterion in required:
        told = [f for f in findings if f.criterion == criterion.id]
        said = any(f.blocks or f.leaves_open for f in told)
        if not said and stands[criterion.id] not in {Status.PASS, Status.WAIVED}:
            name, place = criterion.id, task.place(criterion)
            unmeasured = (f.message for f in told if f.outcome is Outcome.NOT_APPLICABLE and f.expected)
            message = f"Nothing was seen to hold of {name}: {next(unmeasured, OPTIONAL)}."
            fix = f"Bind {name} to a test or measure of level must that applies here."
            yield say(message, fix, check=f"seen:{name}", criterion=name, level=criterion.level, location=place)
    if required and all(stands[criterion.id] is Status.WAIVED for criterion in required):
        message = "Every required criterion is waived, so nothing that must hold was seen."
        yield say(message, "Meet at least one required criterion; a waiver shows nothing.")
    lacking = [f"{name} {status.value}" for name, status in stands.items() if status is not Status.PASS]
    if lacking and not required and not task.coverage_at_least:
        nothing = "No criterion is of level must and no share of them is asked for"
        message = f"{nothing}, so nothing that must hold was seen: {first_of(lacking, NAMED)}."
        fix = "Say what must hold: give a criterion the level must, or set coverage_at_least."
        yield say(message, fix, actual="nothing required")


def judge_coverage(task: Task, stands: Mapping[str, Status]) -> Finding:
    """Compare the share of verified criteria, without waived ones, with what is asked; what was not seen is open."""
    counts, asked = Counter(stands.values()), task.coverage_at_least
    counting, passed = len(stands) - counts[Status.WAIVED], counts[Status.PASS]
    got, reachable = (n / counting if counting else 0.0 for n in (passed, passed + sum(counts[s] for s in OPEN)))
    outcome = Outcome.FAILED if counting and reachable < asked else Outcome.UNKNOWN
    if not asked or (passed and got >= asked):  # shares, not counts: 0.55 * 20 is more than 11
        outcome = Outcome.PASSED if asked else Outcome.NOT_APPLICABLE
    waived = f", {counts[Status.WAIVED]} waived and left out" if counts[Status.WAIVED] else ""
    ends = ", ".join(f"{counts[status]} {status.value}" for status in Status if counts[status])
    verified = f"{passed} of {counting} criteria ({got:.1%}) are verified{waived}"
    about = About(rule="BL003", check="coverage", location=task.place(task), follows=True, expected=f">= {asked:.0%}")
    message = f"{verified} ({ends}); {asked:.0%} are asked for."
    fix = "Bring more criteria to PASS; the findings of each say what it lacks." if outcome in LACKING else ""
    severity = Severity.MEDIUM if outcome in LACKING else Severity.INFO
    return about(outcome, message, fix, severity=severity, actual=f"{passed}/{counting} ({got:.1%})")


def waive(task: Task, findings: Iterable[Finding], today: date | None) -> tuple[Finding, ...]:
    """Return the findings with those marked that a waiver covers; without a day none is."""
    working = [waiver for waiver in task.waivers if today and waiver.works(today)]
    return tuple(_marked(task, finding, working) for finding in findings)


def _marked(task: Task, finding: Finding, working: Sequence[Waiver]) -> Finding:
    covering = (one for one in working if one.criterion == finding.criterion and one.rule in {None, finding.rule})
    waiver = next(covering, None) if finding.outcome in LACKING and finding.rule not in NEVER_WAIVED else None
    if waiver is None:
        return finding
    told = {"owner": waiver.owner, "expires": waiver.expires.isoformat(), "location": task.place(waiver)}
    return finding.model_copy(update={"waived": Waived(reason=waiver.reason, **told)})


def unneeded(task: Task, gates: Sequence[GateReport], today: date | None) -> Iterator[Finding]:
    """Name the waivers that work and cover nothing; only a whole run can tell."""
    if today is None or not all(gate.ran for gate in gates):
        return
    used = {f.waived.location for gate in gates for f in gate.findings if f.waived}
    about = About(rule="BL012", check="waivers", level=Level.ADVISORY, actual="waives nothing")
    for waiver in task.waivers:
        if waiver.works(today) and task.place(waiver) not in used:
            own = about.but(subject=f"{waiver.name} unneeded", location=task.place(waiver))
            message, impact = f"{waiver.title} waives nothing.", "It would hide the next failure there."
            yield own.failed(message, "Remove the waiver.", impact=impact)
