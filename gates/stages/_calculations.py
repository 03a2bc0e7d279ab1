"""The part of the business logic gate on formulas: do calculations, edge cases and properties come out as stated?"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from gates.check import EvidenceSet
from gates.evidence.calculations import Calculations
from gates.model import Finding, Level, Location, Outcome, Planned, RuleText, Severity, worst
from gates.report import Section
from gates.stages._about import FAILED, UNKNOWN
from gates.stages._called import Row, case_rows, property_row
from gates.stages._execution_sections import LISTED, listed
from gates.task.calculation import Called
from gates.task.task import Criterion, Task
from gates.terminal import visible

NAMED = 10

RULES = (
    RuleText(
        id="BL008",
        title="Calculations give the stated results",
        meaning="Each row of a calculation's table is called in a process of the project's interpreter, twice, and "
        "what it returns is compared with what the task expects, within the stated tolerance. A wrong result shows "
        "input, expected and actual; one that could not be seen is unknown.",
    ),
    RuleText(
        id="BL009",
        title="Edge cases come out as stated",
        meaning="Each edge case is one call that must return what is expected, stay finite, warn, or raise the named "
        "exception. Any other exception, and a process that dies in it, is a failure; a call that does not return "
        "within its time limit is unknown.",
    ),
    RuleText(
        id="BL010",
        title="Stated properties hold",
        meaning="Each property is tried on inputs that hypothesis makes, the same in every run, and on all inputs of a "
        "small finite domain. One input for which "
        "it does not hold is a failure, and is shown in its simplest form; a property that no input was tried for is "
        "unknown.",
    ),
)


@dataclass(frozen=True)
class Part:
    """One calculation, edge case or property of a task, and the rows that it comes to."""

    rule: str
    check: str
    title: str
    called: Called


def plan(task: Task) -> Iterator[Planned]:
    """Plan each calculation, edge case and property once for each criterion that it names, or once for the task."""
    for part in _parts(task):
        for check, criterion in _checks(task, part):
            about = f"{criterion.id}: " if criterion else ""
            level = criterion.level if criterion else Level.MUST
            yield Planned(
                id=check, title=f"{about}{part.title}", level=level, criterion=criterion.id if criterion else None,
                label=LABELS[part.rule],
            )  # fmt: skip


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge each call by what came of it."""
    for part in _parts(task):
        rows = _rows(part, evidence)
        for check, criterion in _checks(task, part):
            yield from _findings(task, part, check, criterion, rows)


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Show every call with its input, what was expected and what came of it."""
    parts = [*_parts(task)]
    seen = evidence.get(Calculations)
    for rule, title, columns in (
        ("BL008", "Calculations", ("Formula", "Input", "Expected", "Actual", "Correct")),
        ("BL009", "Edge Cases", ("Case", "Input", "Expected", "Actual", "Handled")),
        ("BL010", "Properties", ("Property", "Of", "Expected", "Actual", "Holds")),
    ):
        rows = [row for part in parts if part.rule == rule for row in _rows(part, evidence)]
        if rows:
            good = sum(row.outcome is Outcome.PASSED for row in rows)
            missing = "" if seen else f" Not run: {evidence.why_missing(Calculations)}."
            yield Section(
                title=title,
                text=f"{good} of {len(rows)} as stated.{missing} {listed(len(rows))}".strip(),
                columns=columns,
                rows=tuple((r.name, r.input, r.expected, r.actual, SAID[r.outcome]) for r in rows[:LISTED]),
            )


LABELS = {"BL008": "calculation", "BL009": "edge case", "BL010": "property"}
SAID = {Outcome.PASSED: "yes", Outcome.FAILED: "NO", Outcome.UNKNOWN: "not seen"}


def _parts(task: Task) -> Iterator[Part]:
    for i, calculation in enumerate(task.calculations):
        title = f"calculation {calculation.call} gives the stated results"
        yield Part("BL008", f"calc:{i}", title, calculation)
    for i, edge in enumerate(task.edge_cases):
        yield Part("BL009", f"edge:{i}", f"edge case is handled: {edge.name}", edge)
    for i, stated in enumerate(task.properties):
        yield Part("BL010", f"property:{i}", f"property holds: {stated.name}", stated)


def _checks(task: Task, part: Part) -> Iterator[tuple[str, Criterion | None]]:
    """Yield the checks of a part: for each criterion that it names, or one that is the task's own."""
    if not part.called.criteria:
        yield part.check, None
    for criterion in task.criteria:
        if criterion.id in part.called.criteria:
            yield f"{part.check}:{criterion.id}", criterion


def _rows(part: Part, evidence: EvidenceSet) -> list[Row]:
    seen, why = evidence.get(Calculations), evidence.why_missing(Calculations)
    if part.rule == "BL010":
        return [property_row(part.called, part.check, seen, why)]
    return [*case_rows(part.called, part.check, seen, why)]


def _findings(task: Task, part: Part, check: str, criterion: Criterion | None, rows: list[Row]) -> Iterator[Finding]:
    bad = [row for row in rows if row.outcome is not Outcome.PASSED]
    bad.sort(key=lambda row: row.outcome is not Outcome.FAILED)
    for row in bad[:NAMED]:
        yield _finding(task, part, check, criterion, row)
    if len(bad) > NAMED:
        rest = bad[NAMED:]
        yield _finding(task, part, check, criterion, _together(part, rest, f"{len(rest)} more rows did not come out"))
    if not bad and not _is_ours(task, part, rows):
        text = f"{part.called.call} lies outside of the implementation: that it is right says nothing of it."
        foreign = Row(name=part.called.call, input=part.called.call, expected="code of the implementation",
                      actual="foreign code", outcome=Outcome.UNKNOWN, message=text, part=part.called,
                      remediation="Call a function of the implementation.")  # fmt: skip
        yield _finding(task, part, check, criterion, foreign)
        return
    if not bad:
        row = rows[0] if len(rows) == 1 else _together(part, rows, f"All {len(rows)} rows of {part.called.call} hold")
        yield _finding(task, part, check, criterion, row)


def _is_ours(task: Task, part: Part, rows: list[Row]) -> bool:
    """Return whether a function is of the project: it has a place there, or its package is the implementation."""
    named = {PurePosixPath(folder).stem for path in task.implementation for folder in PurePosixPath(path).parts}
    return _first(row.place for row in rows) is not None or part.called.call.partition(":")[0].split(".")[0] in named


def _together(part: Part, rows: list[Row], message: str) -> Row:
    """Return one row for several."""
    outcome = worst({row.outcome for row in rows})
    return Row(
        name=part.called.call, input=f"{len(rows)} rows", expected="as stated", outcome=outcome,
        actual=SAID[outcome], message=f"{message}.", part=part.called,
        place=_first(row.place for row in rows),
        remediation="" if outcome is Outcome.PASSED else "Mend the rows that are named first.",
    )  # fmt: skip


def _first(places: Iterable[Location | None]) -> Location | None:
    return next((place for place in places if place), None)


def _finding(task: Task, part: Part, check: str, criterion: Criterion | None, row: Row) -> Finding:
    level = criterion.level if criterion else Level.MUST
    severity = {Outcome.FAILED: FAILED, Outcome.UNKNOWN: UNKNOWN}.get(row.outcome, {}).get(level, Severity.INFO)
    return Finding(
        rule=part.rule, check=check, criterion=criterion.id if criterion else None, level=level, outcome=row.outcome,
        severity=severity, message=visible(" ".join(row.message.split())), location=row.place or task.place(row.part),
        subject=row.input, expected=row.expected, actual=row.actual, impact=row.impact, remediation=row.remediation,
        command=row.command,
    )  # fmt: skip


__all__ = ["RULES", "describe", "judge", "plan"]
