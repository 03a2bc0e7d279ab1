"""The audit of a report that somebody else wrote: every claim in it, how it stands, and why."""

from dataclasses import dataclass
from pathlib import Path

from gates.check import Evidence, EvidenceSet
from gates.claims.checking import rule
from gates.claims.claim import Ruling, Standing
from gates.claims.sources import Sources
from gates.context import Context
from gates.errors import UsageError
from gates.evidence.claims import Claims, ClaimsSource, read
from gates.evidence.executed_lines import ExecutedLines
from gates.evidence.measurements import Measurements
from gates.evidence.pytest_run import PytestRun
from gates.render import escape
from gates.stages.claims import other_gates, row, world_of
from gates.task.task import Task
from gates.terminal import visible

ABOUT_TESTS = {"tests", "all passed", "test end", "exit code", "duration"}
NO_TASK = "no task was named whose evidence could be collected (--task)"
COLUMNS = ("Place", "Text", "Claimed", "Standing", "Evidence")
ORDER = (Standing.CONTRADICTED, Standing.UNSUPPORTED, Standing.CONFIRMED)
WIDE = 100  # characters of a cell on a terminal


@dataclass(frozen=True)
class Audit:
    """A report and the ruling on each of its claims, in the order of the report."""

    report: str
    rulings: tuple[Ruling, ...]
    task: str = ""

    @property
    def exit_code(self) -> int:
        """Return 1 where something is contradicted, 3 where nothing could be confirmed, else 0."""
        if self.count(Standing.CONTRADICTED):
            return 1
        return 0 if self.count(Standing.CONFIRMED) else 3

    def count(self, standing: Standing) -> int:
        """Return how many claims stand one way."""
        return sum(ruling.standing is standing for ruling in self.rulings)

    def ordered(self) -> list[Ruling]:
        """Return the rulings, the contradicted first."""
        return [ruling for standing in ORDER for ruling in self.rulings if ruling.standing is standing]


def audit(report: Path, *, root: Path, task: Task | None = None, context: Context | None = None) -> Audit:
    """Planned every claim of a report or claims file; raise `UsageError` for one that cannot be read.

    Without a task (and the context to collect its evidence in) only arithmetic, files, lines and contradictions within
    the report are checked. With one, the evidence that the claims speak of is collected, and no other.
    """
    shown = report.relative_to(root).as_posix() if report.is_relative_to(root) else report.as_posix()
    source = read(report, shown, Sources(root))
    if source.problem:
        raise UsageError(f"{shown}: {source.problem}")
    if task is None or context is None:
        world = world_of(None, EvidenceSet.withheld(NO_TASK), source)
    else:
        world = world_of(task, _evidence(source, task, context), source)
    rulings = tuple(rule(looked, world) for looked in source.claims)
    return Audit(report=shown, rulings=rulings, task=task.id if task else "")


def _evidence(source: ClaimsSource, task: Task, context: Context) -> EvidenceSet:
    """Collect what the claims of a report speak of."""
    evidence = EvidenceSet({Claims: Claims(how="the report", sources=(source,))}, why="no claim speaks of it")
    kinds = {looked.claim.said.kind for looked in source.claims}
    wanted: list[type[Evidence]] = []
    if kinds & {*ABOUT_TESTS, "coverage"}:
        wanted.append(PytestRun)
    if "coverage" in kinds:
        wanted.append(ExecutedLines)
    if "number" in kinds:
        wanted.append(Measurements)
    if kinds & {"verdict", "criterion"}:
        wanted += [kind for gate in other_gates(task) for kind in gate.uses]
    for kind in wanted:
        evidence.collect(kind, task, context)
    return evidence


def text(done: Audit) -> str:
    """Return an audit for a terminal: the counts, then a block for each claim, the contradicted first."""
    lines = [summary(done), ""]
    for ruling in done.ordered():
        place, said, claimed, standing, seen = (visible(_short(cell)) for cell in row(ruling))
        lines += [f"{standing.upper():<13} {place}  {said}"]
        lines += [f"{'':<13} claimed: {claimed}", f"{'':<13} seen:    {seen}"]
    return "\n".join(lines) + "\n"


def markdown(done: Audit) -> str:
    """Return an audit as a Markdown page."""
    against = f"the evidence of {done.task}" if done.task else "itself and the project's files"
    lines = [
        f"# Audit of {escape.inline(done.report)}",
        "",
        f"Each claim was checked against {escape.inline(against)}. {escape.inline(summary(done))}",
    ]
    for standing in ORDER:
        rulings = [ruling for ruling in done.rulings if ruling.standing is standing]
        lines += ["", f"## {standing.value.capitalize()}", ""]
        if not rulings:
            lines.append("None.")
            continue
        lines += [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
        for ruling in rulings:
            lines.append("| " + " | ".join(escape.inline(cell) for cell in row(ruling)) + " |")
    return "\n".join(lines) + "\n"


def summary(done: Audit) -> str:
    """Return the counts in one line."""
    counts = ", ".join(f"{done.count(standing)} {standing.value}" for standing in ORDER)
    return f"{len(done.rulings)} claims of {done.report}: {counts}"


def _short(cell: str) -> str:
    joined = " ".join(cell.split())
    return joined if len(joined) <= WIDE else f"{joined[:WIDE]} [...]"
