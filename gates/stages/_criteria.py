"""The part of the business logic gate on the criteria: is each traced to live code, and do its tests pass?"""

from collections.abc import Iterable, Iterator

from gates.evidence.code_rules import RuleTrace
from gates.evidence.kind import EvidenceSet
from gates.evidence.run_date import day_of
from gates.evidence.source_tree import SourceTree
from gates.evidence.symbols import SymbolTrace
from gates.model import Check, Finding, Outcome, RuleText, Status, worst
from gates.requirement_coverage import cover, judge_coverage
from gates.stages._about import About
from gates.stages._criteria_sections import describe
from gates.stages._criterion_tests import judge_tests
from gates.task import CodeBinding, Criterion, Task
from gates.waiving import waive

RULES = (
    RuleText(
        id="BL001",
        title="A criterion is traced to live code",
        meaning="Each symbol of the criterion must be defined in the project, outside of "
        "`if False` and not after a "
        "return, and must use what the task says it uses; each code rule must find its subject and be kept. "
        "A file that cannot be parsed is unknown, never clean.",
    ),
    RuleText(
        id="BL002",
        title="Tests stand for a criterion",
        meaning="Every test bound to the criterion, by path, node id or marker, must have "
        "passed in a run that can be "
        "believed. Skipped and expected-to-fail tests count for nothing; without test or measure it is unknown.",
    ),
    RuleText(
        id="BL003",
        title="Coverage of criteria",
        meaning="The share of criteria with status PASS among those that are not waived, counted once, from the "
        "findings of all gates. Criteria that were not seen could still go either way, so they make the share unknown "
        "before they make it fail. Whatever the share, each criterion of level must has to pass for itself.",
    ),
)


def plan(task: Task) -> Iterator[Check]:
    """Plan for each criterion its code and its tests, then the coverage of all."""
    for criterion in task.criteria:
        about = {"level": criterion.level, "criterion": criterion.id}
        yield Check(id=f"code:{criterion.id}", title=f"{criterion.id} is traced to live code", **about)
        yield Check(id=f"tests:{criterion.id}", title=f"{criterion.id} is stood for by tests", **about)
    yield Check(id="coverage", title="Coverage of criteria")


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge each criterion by its code and its tests, and from that the coverage."""
    found = [
        finding
        for criterion in task.criteria
        for finding in (*_code(task, criterion, evidence), *judge_tests(task, criterion, evidence))
    ]
    yield from found
    yield _coverage(task, found, evidence)


def _code(task: Task, criterion: Criterion, evidence: EvidenceSet) -> Iterator[Finding]:
    """Trace a criterion to code: the symbol must exist, live, and use what it is bound to use."""
    about = About(criterion, "BL001", f"code:{criterion.id}")
    if not criterion.code:
        yield about(
            outcome=Outcome.UNKNOWN, location=task.place(criterion), actual="no binding",
            message=f"{criterion.id} names no code, so nothing shows where it is implemented.",
            remediation=f"Name the symbols that implement {criterion.id} under 'code'.",
        )  # fmt: skip
        return
    tree = evidence.get(SourceTree)
    for binding in criterion.code:
        if tree is None:
            yield about(
                outcome=Outcome.UNKNOWN, location=task.place(binding), subject=binding.name, actual="not looked at",
                message=f"{binding.name} was not traced: {evidence.why_missing(SourceTree)}",
                remediation="Make the implementation readable.",
            )  # fmt: skip
        elif binding.rule:
            yield from _by_rule(about, task, binding, tree, tree.rule(binding.rule))
        else:
            yield from _by_symbol(about, task, binding, tree.symbol(binding))


def _by_symbol(about: About, task: Task, binding: CodeBinding, trace: SymbolTrace | None) -> Iterator[Finding]:
    name = binding.name
    expected = f"{name} exists" + (f" and uses {', '.join(binding.uses)}" if binding.uses else "")
    if trace is None or not trace.checked:
        yield about(
            outcome=Outcome.UNKNOWN, location=task.place(binding), subject=name, expected=expected,
            actual="not checked",
            message=f"{name}: {trace.problem if trace else 'was not traced'}", remediation="Mend the file first.",
        )  # fmt: skip
        return
    if trace.location is None:
        yield about(
            outcome=Outcome.FAILED, location=task.place(binding), subject=name, expected=expected,
            actual="not implemented",
            message=f"{name} is not implemented: {trace.problem}", impact="The criterion has no implementation.",
            remediation=f"Implement {name}, or bind the criterion to the code that does.",
        )  # fmt: skip
        return
    unused = [use.name for use in trace.uses if not use.lines]
    for missing in unused:
        yield about(
            outcome=Outcome.FAILED, location=trace.location, subject=f"{name} uses {missing}", expected=expected,
            actual=f"no live use of {missing}", message=f"{name} does not use {missing}.",
            impact=f"What the criterion asks for ({missing}) does not happen here.",
            remediation=f"Use {missing} in {name}.",
        )  # fmt: skip
    if not unused:
        used = "; ".join(f"{use.name} in line {', '.join(map(str, use.lines))}" for use in trace.uses)
        yield about(
            outcome=Outcome.PASSED, location=trace.location, subject=name, expected=expected, actual="found",
            message=f"{name} is live code{f' and uses {used}' if used else ''}.",
        )  # fmt: skip


def _by_rule(
    about: About, task: Task, binding: CodeBinding, tree: SourceTree, trace: RuleTrace | None
) -> Iterator[Finding]:
    name = binding.name
    if trace is None or trace.problem or tree.unparsed:
        why = trace.problem if trace and trace.problem else "; ".join(tree.unparsed) or "it was not applied"
        yield about(
            outcome=Outcome.UNKNOWN, location=task.place(binding), subject=name, actual="not checked",
            message=f"{name} could not be checked: {why}", remediation="Mend what is named.",
        )  # fmt: skip
        return
    for site in trace.sites:
        bad = Outcome.UNKNOWN if site.undecided else Outcome.FAILED
        yield about(
            outcome=Outcome.PASSED if site.ok else bad, location=site.location, expected=name,
            subject=f"{name} {site.message}", message=f"{name}: {site.message}",
            actual="kept" if site.ok else " -> ".join(site.trace) or ("not decided" if site.undecided else "broken"),
            remediation="" if site.ok else f"See `gates explain {trace.rule}`.",
        )  # fmt: skip
    if not trace.sites:
        yield about(
            outcome=Outcome.FAILED, location=task.place(binding), subject=name, expected=name, actual="not implemented",
            message=f"{name} finds no code that it speaks of: the criterion is not implemented.",
            remediation="Implement what the rule describes.",
        )  # fmt: skip


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
