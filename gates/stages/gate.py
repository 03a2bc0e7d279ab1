"""What every gate has."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gates.check import Evidence, EvidenceSet
from gates.model import Check, Finding, RuleText
from gates.report import Section
from gates.task.task import Task


def always(_task: Task) -> bool:
    """Return that a gate applies to every task."""
    return True


@dataclass(frozen=True)
class Gate:
    """One stage's gate: the evidence it uses, the checks it plans, the pure functions that judge and describe.

    `weight` is its share of the task's score; `code` the two letters of its rules. A gate that does not apply to a
    task is no part of its run.
    """

    name: str
    title: str
    stage: int
    weight: int
    code: str
    uses: tuple[type[Evidence], ...]
    rules: tuple[RuleText, ...]
    plan: Callable[[Task], tuple[Check, ...]]
    judge: Callable[[Task, EvidenceSet], Iterator[Finding]]
    describe: Callable[[Task, EvidenceSet], Iterator[Section]]
    applies: Callable[[Task], bool] = always
