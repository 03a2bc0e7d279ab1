"""Criteria: traced to live code, verified by tests, and how many of them are."""

from collections.abc import Iterable, Iterator
from functools import partial

from gates.check import Check, EvidenceSet
from gates.checks.criteria.tested import judge_markers, judge_tests
from gates.checks.criteria.traced import judge_code, page
from gates.criteria import cover, judge_coverage, waive
from gates.evidence.called_code import CalledCode
from gates.evidence.code_rules import CodeRules
from gates.evidence.run_date import day_of
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.pytest_run import PytestRun
from gates.model import Basis, Finding, Outcome, Planned, Row, RuleText, Status, worst
from gates.proving.emptied_code import EmptiedCode
from gates.task.task import Criterion, Task

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


CHECK = Check(
    "criteria",
    "business-logic",
    10,
    RULES,
    (SourceTree, CodeRules, PytestRun, CalledCode, EmptiedCode),
    plan,
    judge,
    page,
)
