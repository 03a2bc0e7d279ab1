"""Stage 2, execution: did the tests run to their end and pass, and does the production code run?"""

from collections.abc import Iterator

from gates.check import EvidenceSet
from gates.evidence.entry_points import EntryPointRuns
from gates.evidence.executed_lines import ExecutedLines
from gates.evidence.pytest_run import PytestRun
from gates.evidence.source_tree import SourceTree
from gates.evidence.startup import Startup
from gates.model import Check, Finding
from gates.report import Section
from gates.stages import _coverage, _entries, _startup, _suite
from gates.stages.gate import Gate
from gates.task.task import Task

PARTS = (_suite, _entries, _coverage, _startup)


def plan(task: Task) -> tuple[Check, ...]:
    """Plan what each part plans."""
    return tuple(check for part in PARTS for check in part.plan(task))


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge part by part."""
    for part in PARTS:
        yield from part.judge(task, evidence)


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell what each part tells."""
    for part in PARTS:
        yield from part.describe(task, evidence)


GATE = Gate(
    name="execution",
    title="Execution Verification",
    stage=2,
    weight=40,
    code="EX",
    uses=(PytestRun, EntryPointRuns, SourceTree, ExecutedLines, Startup),  # what was executed is read after the run
    rules=tuple(rule for part in PARTS for rule in part.RULES),
    plan=plan,
    judge=judge,
    describe=describe,
)
