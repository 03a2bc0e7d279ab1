"""Do the formulas of a task come out as stated, at the table's inputs and at the edges?"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from gates.check import Check, EvidenceSet
from gates.checks.calculations.collect import Calculations
from gates.checks.calculations.rows import CaseRow, case_rows
from gates.checks.calculations.spec import Calculation, Called, EdgeCase
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.bound_tests import tests_of
from gates.evidence.tests.pytest_run import PytestRun
from gates.model import Finding, Level, Location, Outcome, Planned, Row, RuleText, worst
from gates.report import Section
from gates.task.task import Criterion, Task
from gates.words import visible

NAMED = 10
LISTED = 200
LABELS = {"BL008": "calculation", "BL009": "edge case"}
SAID = {Outcome.PASSED: "yes", Outcome.FAILED: "NO", Outcome.UNKNOWN: "not seen"}
RULES = (
    RuleText(
        id="BL008",
        title="Calculations give the stated results",
        meaning="Each row of a table is called twice, in its own process. It must return what the task "
        "expects, within the tolerance. What was not seen is unknown.",
    ),
    RuleText(
        id="BL009",
        title="Edge cases come out as stated",
        meaning="Each edge case is one call. It must return what is expected, stay finite, warn, or raise "
        "the named exception. A call past its time limit is unknown.",
    ),
    RuleText(
        id="BL018",
        title="Calculations run the code of their criterion",
        meaning="Calculations that stand alone for a criterion must call one of its functions. Where no call was seen "
        "to, the criterion is unknown.",
    ),
)


@dataclass(frozen=True)
class Tried:
    """One calculation or edge case of a task, and the check that decides it."""

    rule: str
    check: str
    title: str
    called: Called


def plan(task: Task) -> Iterator[Planned]:
    """Plan each calculation and edge case once for each criterion that it names, or once for the task."""
    for tried in _tried(task):
        for check, criterion in _checks(task, tried):
            about = f"{criterion.id}: " if criterion else ""
            yield Planned(
                id=check, title=f"{about}{tried.title}", level=criterion.level if criterion else Level.MUST,
                criterion=criterion.id if criterion else None, label=LABELS[tried.rule],
            )  # fmt: skip


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge each call by what came of it, and what stands alone for a criterion by whether it runs its code."""
    astray = {criterion.id for criterion in task.criteria if _misses_code(task, criterion, evidence)}
    for tried in _tried(task):
        rows = _rows(tried, evidence)
        for check, criterion in _checks(task, tried):
            yield from _findings(task, tried, check, criterion, rows)
            if criterion and criterion.id in astray:
                yield _astray(task, tried, check, criterion)


def page(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Show every call with its input, what was expected and what came of it."""
    tried = [*_tried(task)]
    for rule, title, columns in (
        ("BL008", "Calculations", ("Formula", "Input", "Expected", "Actual", "Correct")),
        ("BL009", "Edge Cases", ("Case", "Input", "Expected", "Actual", "Handled")),
    ):
        rows = [row for one in tried if one.rule == rule for row in _rows(one, evidence)]
        if rows:
            good = sum(row.outcome is Outcome.PASSED for row in rows)
            missing = "" if evidence.get(Calculations) else f" Not run: {evidence.why_missing(Calculations)}."
            more = f" The first {LISTED} of {len(rows)} are shown." if len(rows) > LISTED else ""
            yield Section(
                title=title, text=f"{good} of {len(rows)} as stated.{missing}{more}", columns=columns,
                rows=tuple((r.name, r.input, r.expected, r.actual, SAID[r.outcome]) for r in rows[:LISTED]),
            )  # fmt: skip


def _tried(task: Task) -> Iterator[Tried]:
    for i, calculation in enumerate(task.part(Calculation)):
        yield Tried("BL008", f"calc:{i}", f"calculation {calculation.call} gives the stated results", calculation)
    for i, edge in enumerate(task.part(EdgeCase)):
        yield Tried("BL009", f"edge:{i}", f"edge case is handled: {edge.name}", edge)


def _checks(task: Task, tried: Tried) -> Iterator[tuple[str, Criterion | None]]:
    """Yield the checks of a part: for each criterion that it names, or one that is the task's own."""
    if not tried.called.criteria:
        yield tried.check, None
    for criterion in task.criteria_of(tried.called):
        yield f"{tried.check}:{criterion.id}", criterion


def _rows(tried: Tried, evidence: EvidenceSet) -> list[CaseRow]:
    return [*case_rows(tried.called, tried.check, evidence.get(Calculations), evidence.why_missing(Calculations))]


def _findings(
    task: Task, tried: Tried, check: str, criterion: Criterion | None, rows: list[CaseRow]
) -> Iterator[Finding]:
    bad = sorted(
        (row for row in rows if row.outcome is not Outcome.PASSED), key=lambda row: row.outcome is not Outcome.FAILED
    )
    told = bad[:NAMED]
    if len(bad) > NAMED:
        told.append(_together(tried, bad[NAMED:], f"{len(bad) - NAMED} more rows did not come out"))
    if not bad and not _is_ours(task, tried, rows):
        told = [_foreign(tried)]
    elif not bad:
        all_hold = f"All {len(rows)} rows of {tried.called.call} hold"
        told = rows if len(rows) == 1 else [_together(tried, rows, all_hold)]
    yield from (_finding(task, tried, check, criterion, row) for row in told)


def _is_ours(task: Task, tried: Tried, rows: list[CaseRow]) -> bool:
    """Return whether a function is of the project: it has a place there, or its package is the implementation."""
    named = {PurePosixPath(folder).stem for path in task.implementation for folder in PurePosixPath(path).parts}
    return _first(row.place for row in rows) is not None or tried.called.call.partition(":")[0].split(".")[0] in named


def _foreign(tried: Tried) -> CaseRow:
    call = tried.called.call
    return CaseRow(
        name=call, input=call, expected="code of the implementation", actual="foreign code", outcome=Outcome.UNKNOWN,
        message=f"{call} lies outside of the implementation: that it is right says nothing of it.", part=tried.called,
        remediation="Call a function of the implementation.",
    )  # fmt: skip


def _together(tried: Tried, rows: list[CaseRow], message: str) -> CaseRow:
    """Return one row for several."""
    outcome = worst({row.outcome for row in rows})
    return CaseRow(
        name=tried.called.call, input=f"{len(rows)} rows", expected="as stated", outcome=outcome,
        actual=SAID[outcome], message=f"{message}.", part=tried.called, place=_first(row.place for row in rows),
        remediation="" if outcome is Outcome.PASSED else "Mend the rows that are named first.",
    )  # fmt: skip


def _misses_code(task: Task, criterion: Criterion, evidence: EvidenceSet) -> bool:
    """Return whether calculations alone stand for a criterion, and none was seen to run one of its functions."""
    parts, tree = task.shown_by(criterion), evidence.get(SourceTree)
    alone = all(isinstance(part, Called) for part in parts) and not criterion.measures
    if not parts or not alone or tree is None or tests_of(task, criterion, evidence.get(PytestRun)) or criterion.tests:
        return False
    traces = [tree.symbol(binding) for binding in criterion.code if binding.symbol]
    if not traces or len(traces) < len(criterion.code):
        return False
    ran = [row.ran for one in _tried(task) if one.called in parts for row in _rows(one, evidence)]
    places = [trace.location for trace in traces if trace and trace.location and trace.is_function]
    seen = [place for each in ran for place in each or ()]
    return len(places) == len(traces) and None not in ran and not any(p.meets(one) for p in seen for one in places)


def _astray(task: Task, tried: Tried, check: str, criterion: Criterion) -> Finding:
    names = ", ".join(binding.name for binding in criterion.code)
    row = CaseRow(
        name=tried.called.call, input=f"code of {criterion.id}", expected="something that runs its code",
        actual="its code is not run", outcome=Outcome.UNKNOWN, part=tried.called,
        message=f"What verifies {criterion.id} does not run its code: {tried.called.call} did not call {names}.",
        remediation=f"Trace {criterion.id} to the code that is called, or call that code.",
    )  # fmt: skip
    return _finding(task, replace(tried, rule="BL018"), check, criterion, row)


def _first(places: Iterable[Location | None]) -> Location | None:
    return next((place for place in places if place), None)


def _finding(task: Task, tried: Tried, check: str, criterion: Criterion | None, row: CaseRow) -> Finding:
    level = criterion.level if criterion else Level.MUST
    return Finding(
        rule=tried.rule, check=check, criterion=criterion.id if criterion else None, level=level, outcome=row.outcome,
        message=visible(" ".join(row.message.split())), location=row.place or task.place(row.part),
        subject=row.input, expected=row.expected, actual=row.actual, impact=row.impact, remediation=row.remediation,
    )  # fmt: skip


CHECK = Check(
    name="calculations", gate="business-logic", order=70, rules=RULES, uses=(Calculations,), plan=plan, judge=judge,
    page=page, row=Row.TEST,
)  # fmt: skip
