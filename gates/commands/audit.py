"""What `gates audit` does: read a report, look at what it speaks of, and say which of its claims hold."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gates import store
from gates.check import EvidenceSet
from gates.child.guardian import guarded_folder
from gates.claims.page import Standing
from gates.claims.places import Sources
from gates.claims.reports import ClaimsSource, Ruling, numbers_left, read, row, rulings, summary
from gates.config import Project
from gates.evidence.tests.pytest_run import PytestRun
from gates.render import escape
from gates.task import loading
from gates.words import visible

COLUMNS = ("Place", "Text", "Claimed", "Standing", "Evidence")
NO_TASK = "no task was named whose tests could be run (--task)"
ORDER = (Standing.CONTRADICTED, Standing.UNSUPPORTED, Standing.CONFIRMED)
WIDE = 100  # characters of a cell on a terminal


@dataclass(frozen=True)
class AuditRequest:
    """What was asked for on the command line, defaults filled in; `report` is an absolute path."""

    report: Path
    project: Project
    task: str | None
    out: Path | None


def perform(request: AuditRequest) -> tuple[str, int]:
    """Audit a report; return the summary and the exit code: 1 contradicted, 3 nothing confirmed, else 0."""
    root, report = request.project.root, request.report
    shown = report.relative_to(root).as_posix() if report.is_relative_to(root) else report.as_posix()
    source = read(report, shown, Sources(root))
    found = rulings(source, _evidence(source, request))
    store.write_page(request.out, _markdown(source, found, request.task))
    standings = {each.answer.standing for each in found}
    code = 1 if Standing.CONTRADICTED in standings else 0 if Standing.CONFIRMED in standings else 3
    return _text(source, found), code


def _evidence(source: ClaimsSource, request: AuditRequest) -> EvidenceSet:
    """Run the task's tests where a claim speaks of them."""
    if request.task is None:
        return EvidenceSet.withheld(NO_TASK)
    task = loading.of_project(request.task, request.project)
    evidence = EvidenceSet(why="no claim speaks of it")
    if any(claim.said for claim in source.claims):
        with guarded_folder() as folder:
            context = request.project.context(folder)
            evidence.collect(PytestRun, task, context)
    return evidence


def _ordered(found: Sequence[Ruling]) -> list[Ruling]:
    return sorted(found, key=lambda each: ORDER.index(each.answer.standing))


def _text(source: ClaimsSource, found: Sequence[Ruling]) -> str:
    """Return an audit for a terminal: the counts, then a block for each claim, the contradicted first."""
    lines = [summary(source, found), numbers_left(source, found), ""]
    for each in _ordered(found):
        place, said, claimed, standing, seen = (visible(_short(cell)) for cell in row(each))
        lines += [
            f"{standing.upper():<13} {place}  {said}",
            f"{'':<13} claimed: {claimed}",
            f"{'':<13} seen:    {seen}",
        ]
    return "\n".join(lines) + "\n"


def _markdown(source: ClaimsSource, found: Sequence[Ruling], task: str | None) -> str:
    against = f"the tests of {task}" if task else "itself and the project's files"
    said = f"Each claim was checked against {against}. {summary(source, found)}. {numbers_left(source, found)}"
    lines = [f"# Audit of {escape.inline(source.path)}", "", escape.inline(said), ""]
    if found:
        lines += [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    lines += ["| " + " | ".join(escape.inline(cell) for cell in row(each)) + " |" for each in _ordered(found)]
    return "\n".join(lines) + "\n"


def _short(cell: str) -> str:
    joined = " ".join(cell.split())
    return joined if len(joined) <= WIDE else f"{joined[:WIDE]} [...]"
