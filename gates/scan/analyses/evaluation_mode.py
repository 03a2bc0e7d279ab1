"""Evaluations of a model that stays in training mode."""

from collections.abc import Iterator

from gates.scan.analyses._evaluating import WORDS, evaluations, places_of
from gates.scan.analyses._modes import in_eval_mode
from gates.scan.project import Project
from gates.scan.site import Site

__all__ = ["WORDS", "look"]


def look(project: Project) -> Iterator[Site]:
    """Yield each evaluation without `eval()`."""
    for found in project.once(evaluations):
        if not in_eval_mode(project, found):
            yield from places_of(
                project, found, "the model is evaluated without eval(): dropout and batch statistics go on"
            )
