"""The evidence of a criterion besides its tests: code that is read, calls, calculations, training steps."""

from collections.abc import Iterator
from dataclasses import dataclass

from gates import pipeline
from gates.check import Evidence, EvidenceSet
from gates.checks.calculations.collect import Calculations
from gates.context import Context
from gates.evidence.entry_points import EntryPointRuns
from gates.evidence.pytest_run import PytestRun
from gates.evidence.recorded_tests import RecordedTests, paths_of
from gates.evidence.recording import Recording
from gates.evidence.source_tree import SourceTree
from gates.model import Outcome
from gates.task.selection import narrowed
from gates.task.task import Criterion, Task

READ = "code:"
KINDS: tuple[tuple[str, tuple[type[Evidence], ...]], ...] = (
    ("calculations", (Calculations,)),
    ("edge_cases", (Calculations,)),
    ("entry_points", (EntryPointRuns,)),
    ("training_steps", (Recording,)),
    ("recorded_tests", (PytestRun, RecordedTests)),
)  # cheapest first
MEASURED = ("leaks", "hot_paths", "concurrency", "scaling", "regressions")


@dataclass(frozen=True)
class Answer:
    """What one check of a criterion's other evidence came to."""

    check: str
    outcome: Outcome
    message: str
    place: str

    @property
    def read(self) -> bool:
        """Return whether code was only read for this."""
        return self.check.startswith(READ)


def parts_of(task: Task, criterion: Criterion) -> list[str]:
    """Return the parts of the task that stand for a criterion by running something."""
    names = (name for name, _ in KINDS)
    return [name for name in names if any(criterion.id in part.criteria for part in getattr(task, name))]


def is_measured(task: Task, criterion: Criterion) -> bool:
    """Return whether something stands for a criterion that is measured, which no fault is shown to."""
    parts = (part for name in MEASURED for part in getattr(task, name))
    return bool(criterion.measures) or any(criterion.id in part.criteria for part in parts)


def look(task: Task, criterion: Criterion, context: Context, *, run: bool) -> list[Answer]:
    """Collect a criterion's other evidence anew and judge it: what is read, or what is run."""
    alone = narrowed(task, criterion.id).model_copy(update={"claims": (), "waivers": ()})
    alone = alone.model_copy(update={"tests": _tests_of(alone)})
    parts = parts_of(task, criterion)
    kinds: list[type[Evidence]] = [k for name, each in KINDS if name in parts for k in each] if run else [SourceTree]
    evidence = EvidenceSet(why="it is not asked for here")
    for kind in dict.fromkeys(kinds):
        evidence.collect(kind, alone, context)
    return [answer for answer in _answers(alone, criterion, evidence) if answer.read is not run]


def _tests_of(task: Task) -> tuple[str, ...]:
    """Return the tests that are recorded for a task; where they are told by their marks alone, all of them."""
    recorded = {path: None for asked in task.recorded_tests for path in paths_of(task, asked)}
    return tuple(recorded) or task.tests


def _answers(task: Task, criterion: Criterion, evidence: EvidenceSet) -> Iterator[Answer]:
    for gate in pipeline.applying(task):
        for finding in gate.judge(task, evidence):
            if finding.criterion == criterion.id and not finding.check.startswith(("tests:", "measure:")):
                place = f"{finding.check} {finding.subject}"
                yield Answer(finding.check, finding.outcome, finding.message, place)


def notices(before: list[Answer], after: list[Answer]) -> Answer | None:
    """Return the first check that passed without a fault and fails with it."""
    sound = {answer.check for answer in before} - {a.check for a in before if a.outcome is Outcome.FAILED}
    sound &= {answer.check for answer in before if answer.outcome is Outcome.PASSED}
    return next((a for a in after if a.outcome is Outcome.FAILED and a.check in sound), None)
