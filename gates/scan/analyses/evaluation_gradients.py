"""Evaluations that build graphs which nothing needs."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.evaluation import evaluating
from gates.scan.analyses.evaluation.evaluating import Evaluation, evaluations
from gates.scan.analyses.evaluation.left_open import forwards_of
from gates.scan.analyses.evaluation.no_gradients import without_gradients
from gates.scan.analyses.evaluation.off_blocks import in_blocks
from gates.scan.analyses.evaluation.off_steps import off_steps
from gates.scan.analyses.evaluation.sampling import sampling
from gates.scan.analyses.evaluation.sibling_phases import not_trained
from gates.scan.analyses.reading.code import callee, function_of
from gates.scan.analyses.training.forwards import is_call_of_model, trains
from gates.scan.program.module import Function
from gates.scan.program.nodes import inner
from gates.scan.program.project import Project
from gates.scan.site import Site

__all__ = ["WORDS", "look", "places_of"]
WORDS = (*evaluating.WORDS, "sample*", "p_sample*", "ddim_sample*", "ddpm_sample*", "generate*", "autoregress*")
NEAR = 3


def look(project: Project) -> Iterator[Site]:
    """Yield each evaluation without `no_grad()` or `inference_mode()`."""
    known = project.once(evaluations)
    functions = {found.function for found in known}
    others = (*in_blocks(project), *off_steps(project), *not_trained(project), *sampling(project))
    for found in (*known, *(other for other in others if other.function not in functions)):
        if not without_gradients(project, found):
            yield from places_of(
                project, found, "the model is evaluated with gradients: each forward pass keeps its graph"
            )


def places_of(project: Project, found: Evaluation, message: str) -> Iterator[Site]:
    """Yield an evaluation as a place that breaks a rule: its head, and its forward pass where that stands elsewhere.

    The head is its loop, or its function where that is far.
    """
    line: int = getattr(found.loop, "lineno", 1)
    if found.named and found.function and line - found.function.lineno > NEAR:
        line = found.function.lineno
    for here in (line, found.forward.lineno):
        if here == line or here - line > NEAR:
            yield Site(found.module.path, here, here, ok=False, message=message)
    target = callee(project, found.module, found.forward)
    inside = [c for c in inner(target, ast.Call) if isinstance(c, ast.Call) and is_call_of_model(c)] if target else []
    is_own = target is not None and not is_call_of_model(found.forward) and not _is_trained_by(project, target)
    if target is not None and inside and is_own:
        path, first = project.scope_of(target, found.module).module.path, min(c.lineno for c in inside)
        yield Site(path, first, first, ok=False, message=message)
    for forward, there in forwards_of(project, found.module, found.forward):
        if not _is_trained_by(project, function_of(forward, there)):
            yield Site(there.path, forward.lineno, forward.lineno, ok=False, message=message)


def _is_trained_by(project: Project, function: Function | None) -> bool:
    """Return whether training calls a function, too, which is to leave gradients and modes alone then."""
    named = project.named.get(function.name, ()) if function is not None else ()
    return any(trains(around) for call, there in named if (around := function_of(call, there)) is not None)
