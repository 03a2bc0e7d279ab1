"""Evaluations that build graphs which nothing needs."""

from collections.abc import Iterator

from gates.scan.analyses._evaluating import WORDS, evaluations, places_of
from gates.scan.analyses._modes import without_gradients
from gates.scan.project import Project
from gates.scan.site import Site

__all__ = ["WORDS", "look"]


def look(project: Project) -> Iterator[Site]:
    """Yield each evaluation without `no_grad()` or `inference_mode()`."""
    for found in project.once(evaluations):
        if not without_gradients(project, found):
            yield from places_of(
                project, found, "the model is evaluated with gradients: each forward pass keeps its graph"
            )
