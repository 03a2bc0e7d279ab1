"""What it means that a test of the base fails against the change, although it passed before."""

from collections.abc import Iterator
from functools import partial

from gates.check import About, Check, EvidenceSet
from gates.checks.base_tests.collect import BaseTest, BaseTests
from gates.evidence.tests.bound_tests import is_under, tests_of
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import function_of
from gates.model import Basis, Finding, Level, Location, Outcome, Planned, RuleText, Severity
from gates.report import Section
from gates.task.task import Criterion, Task
from gates.words import counted

SHOWN = 20
_about: About = partial(Finding, rule="BL022", check="base-tests", level=Level.ADVISORY, evidence="BaseTests.json")
RULES = (
    RuleText(
        id="BL022",
        title="The base's tests pass against the change",
        meaning="Where a change touches tests, the base's tests run against its code. One that passed "
        "there and fails now is changed behaviour: a criterion must name it under `changes`.",
    ),
)


def plan(_task: Task) -> Iterator[Planned]:
    """Plan one run of the base's tests; it speaks of the bar and not of the work, so it has no share of the score."""
    yield Planned(id="base-tests", title="The base's tests pass against the change", level=Level.ADVISORY, scored=False)


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge each test of the base that does not pass any more, at the level of its criterion."""
    seen, run = evidence.get(BaseTests), evidence.get(PytestRun)
    if seen is None or seen.problem:
        why = seen.problem if seen else evidence.why_missing(BaseTests)
        message = f"Whether the base's tests pass against the change was not seen: {why}"
        yield _about(outcome=Outcome.UNKNOWN, severity=Severity.INFO, message=message, actual="not run")
        return
    meant = [path for criterion in task.criteria for path in criterion.changes]
    broken = [one for one in seen.broken if one.at_base == "passed"]
    unseen = [one for one in seen.broken if not one.seen_at_base]
    open_, unknown = ([one for one in some if not _is_named(one, meant)] for some in (broken, unseen))
    for one in open_[:SHOWN]:
        yield _broken(one, _criterion(task, one, run), seen)
    if more := open_[SHOWN:]:
        message = f"{len(more)} more tests of the base fail; all are in BaseTests.json."
        yield _about(outcome=Outcome.FAILED, severity=Severity.INFO, subject="more", message=message)
    own: dict[Criterion | None, list[BaseTest]] = {}
    for one in unknown:
        own.setdefault(_criterion(task, one, run), []).append(one)
    yield from (_undecided(criterion, some, seen) for criterion, some in own.items())
    if not open_ and not unknown:
        ran = f"{seen.ran} tests of {seen.base} ran against the change" if seen.changed else "The change alters no test"
        named = f"; {len(broken)} that fail are named under `changes`" if broken else ""
        actual = f"{seen.ran} ran" if seen.changed else "no test changed"
        yield _about(outcome=Outcome.PASSED, severity=Severity.INFO, message=f"{ran}{named}.", actual=actual)


def _is_named(one: BaseTest, meant: list[str]) -> bool:
    return any(is_under(one.id, path) for path in meant)


def _criterion(task: Task, one: BaseTest, run: PytestRun | None) -> Criterion | None:
    """Return the criterion that a test of the base stands for: by its path, or by a marker, of the base or of today."""
    for criterion in task.criteria:
        own = {test.function for test in tests_of(task, criterion, run)} if run else set()
        marked = function_of(one.id) in own or f"{task.id}/{criterion.id}" in one.criteria
        if marked or any(is_under(one.id, path) or is_under(one.now, path) for path in criterion.tests):
            return criterion
    return None


def _broken(one: BaseTest, criterion: Criterion | None, seen: BaseTests) -> Finding:
    why, name = f": {one.message}" if one.message else "", criterion.id if criterion else "a criterion"
    message = f"{one.id}, as {seen.base} has it, passed there and {one.ended} against this change{why}"
    named = f'`changes: ["{function_of(one.id)}"]`'
    advice = f"Keep what it promised; where the change of behaviour is meant, let {name} name it: {named}."
    said = {"outcome": Outcome.FAILED, "subject": one.id, "message": message, "remediation": advice}
    return _about(**_facts(criterion, one, seen, Severity.HIGH), **said)


def _undecided(criterion: Criterion | None, some: list[BaseTest], seen: BaseTests) -> Finding:
    """Say of tests that fail against the change that nothing shows whether they passed before it."""
    first, fail = some[0], "fails" if len(some) == 1 else "fail"
    failing = f"{counted(len(some), 'test')} of {seen.base} {fail} against this change"
    nowhere = f"no test of that file could run at {seen.base}"
    message = f"{failing}, and {nowhere}, first {first.id}: {first.message or first.ended}"
    advice = "Make the tests of the base run in a plain checkout of it, or fix what they found."
    facts = _facts(criterion, first, seen, Severity.MEDIUM)
    subject = criterion.id if criterion else "no criterion"
    return _about(outcome=Outcome.UNKNOWN, subject=subject, message=message, remediation=advice, **facts)


def _facts(criterion: Criterion | None, one: BaseTest, seen: BaseTests, severity: Severity) -> dict[str, object]:
    """Return what is said of a test: at the level of its criterion, where that is the base's or says what it said."""
    decides = bool(seen.policy) or (criterion is not None and criterion.id in seen.stood)
    level = (criterion.level if criterion else Level.SHOULD) if decides else Level.ADVISORY
    severity = severity if level is Level.MUST else Severity.MEDIUM
    about = {"level": level, "severity": severity, "criterion": criterion.id if criterion and decides else None}
    return {**about, "location": Location(path=one.id.split("::")[0]), "expected": "passed", "actual": one.ended}


def page(_task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """List the tests of the base that do not pass, and how they ended there."""
    seen = evidence.get(BaseTests)
    if seen and seen.changed:
        yield Section(
            title="The Base's Tests",
            facts=(
                ("Base", f"{seen.base} ({seen.commit[:12]})"),
                ("Test files changed", ", ".join(seen.changed[:10])),
                ("Tests run against the change", str(seen.ran)),
            ),
            columns=("Against the change", "At the base", "Test"),
            rows=tuple((one.ended, one.at_base, one.id) for one in seen.broken[:SHOWN]),
        )


CHECK = Check(
    name="base_tests",
    gate="business-logic",
    order=125,
    rules=RULES,
    uses=(BaseTests,),
    plan=plan,
    judge=judge,
    page=page,
    basis=Basis.DECLARED,
)
