"""The rules that waivers name, beside those that there are: a waiver of none would only seem to let something pass."""

from collections.abc import Iterator
from pathlib import Path

from gates import pipeline
from gates.task import yaml_source
from gates.task.shape import is_typed
from gates.task.task import Task
from gates.task.yaml_source import Document, Problem, SourceError, did_you_mean


def check_waived_rules(task: Task, path: Path) -> None:
    """Raise `UsageError` with `file:line:col` for each waiver whose rule no gate has."""
    if not any(waiver.rule for waiver in task.waivers):
        return
    document = yaml_source.read(path, task.path, is_typed)
    problems = list(_unknown(task, document))
    if problems:
        raise SourceError(task.path, document.text, problems)


def _unknown(task: Task, document: Document) -> Iterator[Problem]:
    known = pipeline.rule_texts()
    for i, waiver in enumerate(task.waivers):
        if waiver.rule and waiver.rule not in known:
            place = document.place(("waivers", i, "rule"))
            yield Problem(*place, f"there is no rule {waiver.rule!r}{did_you_mean(waiver.rule, known)}")
