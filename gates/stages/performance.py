"""Stage 4, performance: was every number that a criterion demands measured, and does its interval meet the target?"""

from collections.abc import Iterator

from gates.check import EvidenceSet
from gates.evidence.bundles import Bundles
from gates.evidence.concurrency import Concurrency
from gates.evidence.hot_paths import HotPaths
from gates.evidence.leaks import Leaks
from gates.evidence.measurements import Measurements
from gates.evidence.past_runs import PastRuns
from gates.evidence.regressions import Regressions
from gates.evidence.scaling import Scaling
from gates.model import Check, Finding, Outcome, Severity
from gates.report import Section
from gates.stages import (
    _bundles,
    _concurrency,
    _hot_path,
    _leaks,
    _machine,
    _not_asked,
    _past_runs,
    _regressions,
    _scaling,
    _targets,
)
from gates.stages.gate import Gate
from gates.task.task import Task

PARTS = (
    _targets, _hot_path, _leaks, _concurrency, _scaling, _regressions, _past_runs, _bundles, _machine, _not_asked,
)  # fmt: skip
NONE_ASKED = "no-target"


def plan(task: Task) -> tuple[Check, ...]:
    """Plan what each part plans."""
    checks = tuple(check for part in PARTS for check in part.plan(task))
    return checks or (Check(id=NONE_ASKED, title="Performance targets"),)


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge part by part; say so where the task asks for nothing."""
    findings = tuple(finding for part in PARTS for finding in part.judge(task, evidence))
    yield from findings
    if not findings:
        yield Finding(
            rule="PF001", check=NONE_ASKED, outcome=Outcome.NOT_APPLICABLE, severity=Severity.INFO,
            message="The task sets no performance target.",
        )  # fmt: skip


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell what each part tells."""
    for part in PARTS:
        yield from part.describe(task, evidence)


GATE = Gate(
    name="performance",
    title="Performance Verification",
    stage=4,
    weight=30,
    code="PF",
    uses=(Measurements, Leaks, HotPaths, Concurrency, Scaling, Regressions, PastRuns, Bundles),
    rules=tuple(rule for part in PARTS for rule in part.RULES),
    plan=plan,
    judge=judge,
    describe=describe,
)
