"""The part of the performance report on what the task does not ask for: all of it in one line."""

from collections.abc import Iterator

from gates.check import EvidenceSet
from gates.model import Finding, Planned, RuleText
from gates.report import Section
from gates.task.task import Task

RULES: tuple[RuleText, ...] = ()


def plan(_task: Task) -> Iterator[Planned]:
    """Plan nothing."""
    yield from ()


def judge(_task: Task, _evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge nothing."""
    yield from ()


def describe(task: Task, _evidence: EvidenceSet) -> Iterator[Section]:
    """Name what nobody asked for, so that nobody takes it for seen."""
    asked = {
        "targets": any(criterion.measures for criterion in task.criteria), "hot paths": task.hot_paths,
        "memory over time": task.leaks, "concurrency": task.concurrency, "complexity": task.scaling,
        "regression": task.regressions, "evidence from elsewhere": task.bundles,
    }  # fmt: skip
    left_out = [name for name, parts in asked.items() if not parts]
    if left_out:
        yield Section(title="Not Asked For", text=f"{', '.join(left_out).capitalize()}: not looked at.")
