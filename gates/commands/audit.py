"""What `gates audit` does: read a report, look at what it speaks of, and say which of its claims hold."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from gates import store
from gates.check import EvidenceSet
from gates.child.guardian import guarded_folder
from gates.claimed_numbers import counts
from gates.claims import Claim, Sources, Standing, lines_of, quotes, sums
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
    """Audit a report; return the summary and the exit code: 1 contradicted, 3 nothing confirmed, else 0.

    Where a task is named, its tests are run.
    """
    shown = report.relative_to(project.root) if report.is_relative_to(project.root) else report
    evidence = EvidenceSet(why="" if task else NO_TASK)
    with guarded_folder() as folder:
        if task:
            evidence.collect(PytestRun, loading.of_project(task, project), project.context(folder))
    found = audited(text_of(report, shown.as_posix(), MAX_BYTES), Sources(project.root), evidence)
    rows = [
        (one.standing.value, f"{shown.as_posix()}:{one.at}", one.text, one.claimed, one.seen) for one in found.claims
    ]
    if out:
        against = f"the tests of {task}" if task else "itself and the project's files"
        values = {"shown": shown.as_posix(), "against": against, "said": str(found), "rows": rows}
        store.write_page(out, page("claims.md.j2", project.root / TEMPLATES, **values))
    standings = {each.standing for each in found.claims}
    code = 1 if Standing.CONTRADICTED in standings else 0 if Standing.CONFIRMED in standings else 3
    return "\n".join([f"{shown.as_posix()}: {found}", "", *map(_block, rows), ""]), code


def _block(row: Sequence[str]) -> str:
    """Return a claim for a terminal: where it stands, then what is claimed and what was seen."""
    short = (" ".join(cell.split()) for cell in row)
    standing, place, said, claimed, seen = (visible(c if len(c) <= WIDE else f"{c[:WIDE]} [...]") for c in short)
    return f"{standing.upper():<13} {place}  {said}\n{'':<13} claimed: {claimed}\n{'':<13} seen:    {seen}"
