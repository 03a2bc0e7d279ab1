"""The markers of tests: each must name a criterion that exists; and what the report tells of criteria."""

import re
from collections.abc import Iterable, Iterator
from functools import partial

from gates.check import Check, EvidenceSet
from gates.checks.criteria.tested import judge_tests
from gates.checks.criteria.traced import judge_code
from gates.code.symbols import SymbolTrace
from gates.criteria import cover, judge_coverage, waive
from gates.evidence.called_code import CalledCode
from gates.evidence.run_date import day_of
from gates.evidence.source_tree import CodeRules, PatternTrace, RuleTrace, SourceTree
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import Deselected, TestRecord
from gates.model import Basis, Finding, Level, Outcome, Planned, Row, RuleText, Severity, Status, worst
from gates.proving.emptied_code import EmptiedCode
from gates.report import Section
from gates.task.task import TASK_ID, Criterion, Task
from gates.task.yaml_source import did_you_mean
from gates.words import first_of

NAMED = 50
FORM = re.compile(rf"{TASK_ID.pattern}/{TASK_ID.pattern}")


_marker = partial(Finding, rule="BL004", check="markers")


def judge_markers(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Refuse markers that name no criterion of the task, or are none: a test would verify nothing, unseen."""
    run = evidence.get(PytestRun)
    if run is None:
        message = f"The markers were not seen: {evidence.why_missing(PytestRun)}"
        yield _marker(outcome=Outcome.UNKNOWN, level=Level.ADVISORY, message=message)
        return
    known, own = {f"{task.id}/{criterion.id}" for criterion in task.criteria}, f"{task.id}/"
    tests: list[TestRecord | Deselected] = [*run.tests, *run.deselected]
    loose = {(test.id, name): test.location for test in tests for name in test.criteria if name not in known}
    if task.only:  # the others are not looked at
        loose = {key: place for key, place in loose.items() if not key[1].startswith(own)}
    found = []
    for (test, name), place in loose.items():
        hint = did_you_mean(name, known)
        says = "does not exist" if FORM.fullmatch(name) else "has not the form TASK/CRITERION"
        message = f"{test} is marked for {name!r}, which {says}{hint if hint.startswith('; did') else ''}"
        if name.startswith(own) or not FORM.fullmatch(name):  # of other tasks `gates trace` speaks
            found.append((f"{test} {name}", place, message, "Mend the marker's id."))
    near = {
        (test.function, mark, name): test.location for test in run.tests for mark, name in test.near if name in known
    }
    for (test, mark, name), place in near.items():
        message = f"pytest.mark.{mark} of {test} names {name!r} and binds no test to anything."
        found.append((f"{test} {name}", place, message, 'Write pytest.mark.criterion("TASK/CRITERION").'))
    impact = "The test verifies nothing, and the criterion it means has one less."
    about = partial(_marker, outcome=Outcome.FAILED, severity=Severity.HIGH, impact=impact)
    for subject, place, message, advice in found[:NAMED]:
        yield about(subject=subject, location=place, message=message, remediation=advice)
    if not found:
        marked = sum(any(m.startswith(own) for m in test.criteria) for test in run.tests)
        outcome = Outcome.PASSED if run.tests else Outcome.UNKNOWN
        message = f"{marked} tests are marked for criteria of {task.id}, each of which exists."
        yield _marker(outcome=outcome, severity=Severity.INFO, level=Level.ADVISORY, message=message)


RULES = (
    RuleText(
        id="BL001",
        title="A criterion is traced to live code",
        meaning="Each symbol must be defined, do something, and use what the task names. Each pattern "
        "must fit, and each rule must be kept. A file that cannot be parsed leaves it unknown.",
    ),
    RuleText(
        id="BL002",
        title="Tests verify a criterion",
        meaning="Every test bound to the criterion must have passed in a run that can be believed. Tests "
        "that were skipped, expected to fail, replaced or never collected leave it unknown.",
    ),
    RuleText(
        id="BL003",
        title="Coverage of criteria",
        meaning="The share of criteria with status PASS, by the findings of all gates. Waived criteria "
        "are left out. Criteria that were not seen make it unknown.",
    ),
    RuleText(
        id="BL004",
        title="Markers name criteria that exist",
        meaning="A marker must have the form TASK/CRITERION, such as T035/AC3, and name a criterion of the "
        "task. A test marked for one that does not exist would verify nothing.",
    ),
)


def plan(task: Task) -> Iterator[Planned]:
    """Plan for each criterion its code and its tests, then the coverage of all, and the markers."""
    for criterion in task.criteria:
        about = partial(Planned, level=criterion.level, criterion=criterion.id)
        title = f"{criterion.id} is traced to live code"
        yield about(id=f"code:{criterion.id}", title=title, basis=Basis.READ, row=Row.CODE)
        yield about(id=f"tests:{criterion.id}", title=f"{criterion.id} is verified by tests")
    yield Planned(id="coverage", title="Coverage of criteria")
    yield Planned(id="markers", title="Markers name criteria that exist")


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge each criterion by its code and its tests, from that the coverage, and the markers."""
    found: list[Finding] = []
    for criterion in task.criteria:
        found += judge_code(task, criterion, evidence)
        found += judge_tests(task, criterion, evidence, asked=_asks_for_tests(task, criterion))
    yield from found
    marked = waive(task, found, day_of(evidence))
    statuses = [_traced(f for f in marked if f.criterion == criterion.id) for criterion in task.criteria]
    yield judge_coverage(task, cover(task, statuses))  # the whole run counts again, with all that was seen
    yield from judge_markers(task, evidence)


def _asks_for_tests(task: Task, criterion: Criterion) -> bool:
    """Return whether tests must speak for a criterion: it names some, or nothing else shows it."""
    return bool(criterion.tests) or not (criterion.measures or task.shown_by(criterion))


def _traced(findings: Iterable[Finding]) -> Status:
    """Return where a criterion stands as far as its code and tests tell."""
    about = [*findings]
    outcome = worst({f.outcome for f in about if not f.waived} - {Outcome.NOT_APPLICABLE})
    if outcome is Outcome.FAILED:
        return Status.FAIL
    if any(f.waived for f in about):
        return Status.WAIVED
    return Status.PASS if outcome is Outcome.PASSED else Status.UNVERIFIED


SHOWN = 5
NOT_CHECKED = "not checked"


def page(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell what was traced: symbols with their lines, and what is bound to no criterion."""
    tree = evidence.get(SourceTree)
    if tree is None:
        yield Section(title="Files Read", text=f"None: {evidence.why_missing(SourceTree)}.")
    else:
        yield Section(
            title="Expected and Actual Architecture",
            text="What the code that criteria are bound to must be and use, and what it does.",
            columns=("Kept", "Code", "Expected", "Actual"),
            rows=(
                *map(_symbol_row, dict.fromkeys(tree.symbols)),
                *map(_pattern_row, tree.patterns),
                *map(_rule_row, tree.rules),
            ),
        )
        yield Section(title="Metrics of this Verification", facts=tuple(_metrics(task, tree)))


def _metrics(task: Task, tree: SourceTree) -> Iterator[tuple[str, str]]:
    yield "Files analysed", str(tree.files)
    yield "Files not parsed", "; ".join(tree.unparsed) or "none"
    yield "Requirements traced", str(len(task.criteria))
    yield "Symbols resolved", f"{sum(t.location is not None for t in tree.symbols)} of {len(tree.symbols)}"
    yield "Code rules applied", str(len(tree.rules))
    if tree.patterns:
        yield "Patterns applied", str(len(tree.patterns))


def _symbol_row(trace: SymbolTrace) -> tuple[str, ...]:
    """Return a symbol with what it must use and the lines that do."""
    expected = f"uses {', '.join(trace.wanted)}" if trace.wanted else "exists"
    if trace.location is None:
        return "no" if trace.checked else NOT_CHECKED, trace.symbol, expected, trace.problem
    used = [f"{use.name} in {', '.join(map(str, use.lines)) or 'no line'}" for use in trace.uses]
    kept = all(use.lines for use in trace.uses)
    return "yes" if kept else "no", trace.symbol, expected, "; ".join([str(trace.location), *used])


def _pattern_row(trace: PatternTrace) -> tuple[str, ...]:
    where = f" in {trace.within}" if trace.within else ""
    expected = f"{trace.at_least} place{'s' if trace.at_least > 1 else ''} of live code"
    kept = "yes" if not trace.problem else "no" if trace.checked else NOT_CHECKED
    return kept, f"pattern {trace.pattern}{where}", expected, trace.problem or first_of(trace.places, SHOWN)


def _rule_row(trace: RuleTrace) -> tuple[str, ...]:
    name, expected = f"rule {trace.rule}", "finds its subject, and finds it kept"
    broken = [site for site in trace.sites if not site.ok]
    if trace.problem:
        return NOT_CHECKED, name, expected, trace.problem
    if broken:
        told = f"{broken[0].location}: {' -> '.join(broken[0].trace) or broken[0].message}"
        return NOT_CHECKED if all(site.undecided for site in broken) else "no", name, expected, told
    if not trace.sites:
        return NOT_CHECKED, name, expected, "no code that it speaks of"
    return "yes", name, expected, f"kept in {first_of([site.location for site in trace.sites], SHOWN)}"


CHECK = Check(
    name="criteria",
    gate="business-logic",
    order=10,
    rules=RULES,
    uses=(SourceTree, CodeRules, PytestRun, CalledCode, EmptiedCode),
    plan=plan,
    judge=judge,
    page=page,
)
