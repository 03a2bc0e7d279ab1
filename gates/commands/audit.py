"""What `gates audit` does: read a report, look at what it speaks of, and say which of its claims hold."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from gates import store
from gates.check import EvidenceSet
from gates.child.guardian import guarded_folder
from gates.claimed_numbers import counts, sums
from gates.claims import Claim, Sources, Standing, lines_of, quotes
from gates.config import Project
from gates.evidence.tests.pytest_run import PytestRun
from gates.project.policy import TEMPLATES
from gates.render.markdown import page
from gates.task import loading
from gates.task.yaml_source import text_of
from gates.words import first_of, visible

NUMBER = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ][\d:.]{1,20}Z?)?|(?<![\w.])\d{1,40}(?:\.\d{1,40}){0,9}(?:e[+-]?\d{1,4})?(?!\w{0,80}\d)"
)
NO_TASK = "no task was named whose tests could be run (--task)"
ORDER = (Standing.CONTRADICTED, Standing.UNSUPPORTED, Standing.CONFIRMED)
WIDE = 100  # characters of a cell on a terminal
LISTED = 60  # lines with numbers that were not understood
MAX_BYTES = 2 * 1024 * 1024
MAX_CLAIMS = 5000


@dataclass(frozen=True)
class Audited:
    """The claims of a report, what is wrong first, how many numbers it has, and the line of each not understood."""

    claims: Sequence[Claim]
    numbers: int
    left: Sequence[int]

    def __str__(self) -> str:
        """Return the counts in one sentence each."""
        found = [each.standing for each in self.claims]
        by_standing = ", ".join(f"{found.count(each)} {each.value}" for each in Standing)
        lines = [*dict.fromkeys(self.left)]
        where = f"; not understood: lines {first_of(lines, LISTED)}" if lines else ""
        known = f"{self.numbers - len(self.left)} of {self.numbers}"
        return f"{len(found)} claims: {by_standing}. {known} numbers were computed again or found{where}."


def audited(text: str, files: Sources, evidence: EvidenceSet) -> Audited:
    """Look at every claim of a page; what an audit in it retells of another page is not its own."""
    lines = [line for line in lines_of(text) if not (line.heads and line.heads[0][1].startswith("Audit of "))]
    each = (sums(lines), quotes(lines, files), counts(lines, evidence))
    claims = [*chain.from_iterable(islice(found, MAX_CLAIMS) for found in each)][:MAX_CLAIMS]
    covered: dict[int, list[tuple[int, int]]] = {}
    for one in claims:
        for span in one.covers if one.standing is not Standing.UNSUPPORTED else ():
            covered.setdefault(span.line, []).append((span.start, span.end))
    numbers = [(line.number, match.start()) for line in lines for match in NUMBER.finditer(line.text)]
    left = [line for line, at in numbers if not any(a <= at < b for a, b in covered.get(line, ()))]
    return Audited(sorted(claims, key=lambda one: (ORDER.index(one.standing), one.at)), len(numbers), left)


def perform(report: Path, project: Project, *, task: str | None, out: Path | None) -> tuple[str, int]:
    """Audit a report; return the summary and the exit code: 1 contradicted, 3 nothing confirmed, else 0."""
    root = project.root
    shown = report.relative_to(root).as_posix() if report.is_relative_to(root) else report.as_posix()
    found = audited(text_of(report, shown, MAX_BYTES), Sources(root), _evidence(project, task))
    store.write_page(out, _markdown(shown, found, task, root / TEMPLATES))
    standings = {each.standing for each in found.claims}
    code = 1 if Standing.CONTRADICTED in standings else 0 if Standing.CONFIRMED in standings else 3
    return _text(shown, found), code


def _evidence(project: Project, task: str | None) -> EvidenceSet:
    """Run the tests of the task, where one is named."""
    if task is None:
        return EvidenceSet(why=NO_TASK)
    evidence = EvidenceSet()
    with guarded_folder() as folder:
        evidence.collect(PytestRun, loading.of_project(task, project), project.context(folder))
    return evidence


def _row(shown: str, one: Claim) -> tuple[str, ...]:
    return one.standing.value, f"{shown}:{one.at}", one.text, one.claimed, one.seen


def _text(shown: str, found: Audited) -> str:
    """Return an audit for a terminal: the counts, then a block for each claim, the contradicted first."""
    lines = [f"{shown}: {found}", ""]
    for one in found.claims:
        standing, place, said, claimed, seen = (visible(_short(cell)) for cell in _row(shown, one))
        lines.append(f"{standing.upper():<13} {place}  {said}")
        lines += [f"{'':<13} {name:<8} {told}" for name, told in (("claimed:", claimed), ("seen:", seen))]
    return "\n".join(lines) + "\n"


def _markdown(shown: str, found: Audited, task: str | None, templates: Path) -> str:
    against = f"the tests of {task}" if task else "itself and the project's files"
    rows = [_row(shown, one) for one in found.claims]
    return page("claims.md.j2", templates, shown=shown, against=against, said=str(found), rows=rows)


def _short(cell: str) -> str:
    joined = " ".join(cell.split())
    return joined if len(joined) <= WIDE else f"{joined[:WIDE]} [...]"
