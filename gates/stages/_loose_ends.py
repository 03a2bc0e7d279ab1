"""The part of the business logic gate on what is bound to nothing: markers without a criterion, tests, and code."""

import re
from collections.abc import Iterator, Sequence

from gates.check import EvidenceSet
from gates.evidence.bound_tests import tests_of
from gates.evidence.executed_lines import ExecutedLines
from gates.evidence.known_criteria import KnownCriteria, Misspelt
from gates.evidence.pytest_run import PytestRun
from gates.evidence.source_tree import SourceTree
from gates.model import Finding, Level, Location, Outcome, Planned, RuleText, Severity
from gates.report import Section
from gates.stages.bound_tests import NAMED
from gates.task.task import TASK_ID, Task
from gates.task.yaml_source import did_you_mean

LISTED = 20
FORM = re.compile(rf"{TASK_ID.pattern}/{TASK_ID.pattern}")

RULES = (
    RuleText(
        id="BL004",
        title="Markers name criteria that exist",
        meaning="A test marked for a criterion that no task has would stand for nothing, unseen. A marker must have "
        "the form TASK/CRITERION, such as T035/AC3, and name a criterion of a task file in the project's folder.",
    ),
)


def plan(_task: Task) -> Iterator[Planned]:
    """Plan one check of all markers."""
    yield Planned(id="markers", title="Markers name criteria that exist")


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """List the tests and the public code that belong to no criterion: what nobody has asked for, or has forgotten."""
    if task.only:
        return  # they may belong to one that was not asked for
    run, seen, tree = evidence.get(PytestRun), evidence.get(ExecutedLines), evidence.get(SourceTree)
    if run is not None:
        bound = {test.id for criterion in task.criteria for test in tests_of(task, criterion, run)}
        loose = [test for test in run.tests if test.id not in bound]
        yield Section(
            title="Tests Without a Criterion",
            text=f"{len(loose)} of {len(run.tests)} tests stand for no criterion of {task.id}.{_first(task.id, loose)}",
            columns=("Test", "Place"),
            rows=tuple((test.id, str(test.location)) for test in loose[:LISTED]),
        )
    if seen is not None and tree is not None:
        public = [function for function in seen.functions if function.counts]
        places = [place for c in task.criteria for binding in c.code for place in tree.places(binding)]
        spare = [function for function in public if not any(function.location.meets(place) for place in places)]
        yield Section(
            title="Public Code Without a Criterion",
            text=f"{len(spare)} of {len(public)} public functions belong to no criterion of {task.id}."
            f"{_first(task.id, spare)}",
            columns=("Function", "Place"),
            rows=tuple((function.name, str(function.location)) for function in spare[:LISTED]),
        )


def _first(task: str, found: Sequence[object]) -> str:
    return f" The first {LISTED}; `gates trace {task} --format json` has all:" if len(found) > LISTED else ""


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Refuse markers that name a criterion which does not exist; where a task file is unread, it may be in there."""
    run, known = evidence.get(PytestRun), evidence.get(KnownCriteria)
    common = {"rule": "BL004", "check": "markers"}
    if run is None or known is None:
        why = evidence.why_missing(PytestRun if run is None else KnownCriteria)
        yield Finding.model_validate({
            **common, "outcome": Outcome.UNKNOWN, "severity": Severity.LOW, "level": Level.ADVISORY,
            "message": f"The markers were not seen: {why}",
        })  # fmt: skip
        return
    seen = [*((t.id, t.location, t.criteria) for t in run.tests),
            *((t.id, t.location, t.criteria) for t in run.deselected)]  # fmt: skip
    loose = [(name, where, marker) for name, where, markers in seen for marker in markers if marker not in known.names]
    for name, where, marker in loose[:NAMED]:
        yield _loose(task, known, name, where, marker)
    for one in known.misspelt[:NAMED]:
        yield _misspelt(one)
    if not loose and not known.misspelt:
        marked = sum(any(m.startswith(f"{task.id}/") for m in test.criteria) for test in run.tests)
        yield Finding.model_validate({
            **common, "outcome": Outcome.PASSED if run.tests else Outcome.UNKNOWN, "severity": Severity.INFO,
            "level": Level.ADVISORY,
            "message": f"{marked} tests are marked for criteria of {task.id}, each of which exists.",
        })  # fmt: skip


def _misspelt(one: Misspelt) -> Finding:
    return Finding(
        rule="BL004", check="markers", outcome=Outcome.FAILED, severity=Severity.HIGH, level=Level.MUST,
        location=one.location, subject=f"{one.location} {one.criterion}", expected="pytest.mark.criterion",
        actual=f"pytest.mark.{one.written}",
        message=f"pytest.mark.{one.written} names {repr(one.criterion) if one.criterion else 'no criterion'} and binds "
        "no test to anything.",
        impact="The test stands for nothing, and the criterion it means has one less.",
        remediation='Write pytest.mark.criterion("TASK/CRITERION").',
    )  # fmt: skip


def _loose(task: Task, known: KnownCriteria, name: str, where: Location, marker: str) -> Finding:
    own = marker.startswith(f"{task.id}/")
    formed = FORM.fullmatch(marker) is not None
    maybe = formed and not own and known.unread
    hint = did_you_mean(marker, known.names)
    hint = hint if hint.startswith("; did") else ""
    says = "does not exist" if formed else "has not the form TASK/CRITERION"
    says = f"was not found; not read: {', '.join(known.unread[:3])}" if maybe else f"{says}{hint}"
    return Finding(
        rule="BL004", check="markers", outcome=Outcome.UNKNOWN if maybe else Outcome.FAILED, severity=Severity.HIGH,
        level=Level.ADVISORY if maybe else Level.MUST, location=where, subject=f"{name} {marker}",
        message=f"{name} is marked for {marker!r}, which {says}", expected="a criterion of a task", actual=marker,
        impact="The test stands for nothing, and the criterion it means has one less.",
        remediation="Mend the marker's id.",
    )  # fmt: skip
