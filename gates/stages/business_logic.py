"""Stage 2, business logic: is each criterion traced to live code that its tests run, and does that code do right?"""

from collections.abc import Iterator

from gates.check import EvidenceSet
from gates.evidence.calculations import Calculations
from gates.evidence.called_code import CalledCode
from gates.evidence.code_rules import CodeRules
from gates.evidence.emptied_code import EmptiedCode
from gates.evidence.emulated import Emulated
from gates.evidence.executed_lines import ExecutedLines
from gates.evidence.goalposts import Goalposts
from gates.evidence.known_criteria import KnownCriteria
from gates.evidence.proof import LastProof
from gates.evidence.pytest_run import PytestRun
from gates.evidence.recorded_tests import RecordedTests
from gates.evidence.recording import Recording
from gates.evidence.source_tree import SourceTree
from gates.model import Check, Finding
from gates.report import Section
from gates.stages import (
    _calculations,
    _commands,
    _criteria,
    _data_integrity,
    _emptied,
    _emulated,
    _goalposts,
    _loose_ends,
    _proof,
    _recorded,
    _recorded_tests,
    _rules,
    _waivers,
)
from gates.stages.gate import Gate
from gates.task.task import Task

PARTS = (
    _criteria,
    _loose_ends,
    _emptied,
    _commands,
    _rules,
    _waivers,
    _calculations,
    _recorded,
    _recorded_tests,
    _emulated,
    _data_integrity,
    _goalposts,
    _proof,
)


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
    name="business-logic",
    title="Business Logic Verification",
    stage=2,
    weight=30,
    code="BL",
    uses=(
        SourceTree,
        CodeRules,
        PytestRun,
        ExecutedLines,
        CalledCode,
        EmptiedCode,
        KnownCriteria,
        Calculations,
        Recording,
        RecordedTests,
        Emulated,
        Goalposts,
        LastProof,
    ),
    rules=tuple(rule for part in PARTS for rule in part.RULES),
    plan=plan,
    judge=judge,
    describe=describe,
)
