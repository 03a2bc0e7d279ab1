"""The part of the business logic gate on the criteria: is each traced to live code, and do its tests pass?"""

from collections.abc import Iterable, Iterator

from gates.check import EvidenceSet
from gates.evidence.run_date import day_of
from gates.model import Basis, Finding, Outcome, Planned, Row, RuleText, Status, worst
from gates.requirement_coverage import cover, judge_coverage
from gates.stages._code_bindings import judge_code
from gates.stages._criteria_sections import describe
from gates.stages._criterion_tests import judge_tests
from gates.task.task import Task
from gates.waiving import waive

RULES = (
    RuleText(
        id="BL001",
        title="A criterion is traced to live code",
        meaning="Each symbol of the criterion must be defined in the project, outside of "
        "`if False` and not after a "
        "return, must do something, and must use what the task says it uses; each pattern must fit live code; each "
        "code rule must find its subject and be kept; what must be reached from an entry must be called from there. "
        "A file that cannot be parsed is unknown, never clean. What does nothing (a null object, a protocol, an "
        "abstract class) passes where a test of the criterion notices in a copy that it does something, or is an "
        "ordinary class; what refuses (`raise NotImplementedError`) never does. Code that asks whether a test looks on "
        "is unknown, unless an entry point or a measure shows it.",
    ),
    RuleText(
        id="BL002",
        title="Tests stand for a criterion",
        meaning="Every test bound to the criterion, by path, node id or marker, must have "
        "passed in a run that can be "
        "believed. Skipped and expected-to-fail tests count for nothing; without test or measure it is unknown. "
        "So it is where what stands in the place of tests is seen not to call the criterion's code, and where the "
        "exception that a test expects by a wider kind came of a name that the code does not have.",
    ),
    RuleText(
        id="BL003",
        title="Coverage of criteria",
        meaning="The share of criteria with status PASS among those that are not waived, counted once, from the "
        "findings of all gates. Criteria that were not seen could still go either way, so they make the share unknown "
        "before they make it fail. Whatever the share, each criterion of level must has to pass for itself.",
    ),
)


def plan(task: Task) -> Iterator[Planned]:
    """Plan for each criterion its code and its tests, then the coverage of all."""
    for criterion in task.criteria:
        about = {"level": criterion.level, "criterion": criterion.id}
        yield Planned(
            id=f"code:{criterion.id}",
            title=f"{criterion.id} is traced to live code",
            basis=Basis.READ,
            row=Row.CODE,
            **about,
        )
        yield Planned(id=f"tests:{criterion.id}", title=f"{criterion.id} is stood for by tests", **about)
    yield Planned(id="coverage", title="Coverage of criteria")


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge each criterion by its code and its tests, and from that the coverage."""
    found = [
        finding
        for criterion in task.criteria
        for finding in (*judge_code(task, criterion, evidence), *judge_tests(task, criterion, evidence))
    ]
    yield from found
    yield _coverage(task, found, evidence)


def _coverage(task: Task, found: list[Finding], evidence: EvidenceSet) -> Finding:
    """Compute the coverage as far as code and tests tell; the whole run counts again with all that was seen."""
    marked = waive(task, found, day_of(evidence))
    return judge_coverage(task, cover(task, [_traced(f for f in marked if f.criterion == c.id) for c in task.criteria]))


def _traced(findings: Iterable[Finding]) -> Status:
    """Return where a criterion stands as far as its code and tests tell."""
    about = [*findings]
    outcome = worst({f.outcome for f in about if not f.waived} - {Outcome.NOT_APPLICABLE})
    if outcome is Outcome.FAILED:
        return Status.FAIL
    if any(f.waived for f in about):
        return Status.WAIVED
    return Status.PASS if outcome is Outcome.PASSED else Status.UNVERIFIED


__all__ = ["RULES", "describe", "judge", "plan"]
