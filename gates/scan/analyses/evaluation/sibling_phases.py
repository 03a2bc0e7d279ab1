"""Classes for phases of one base, of which the one that trains sets the mode of the model, and no other does."""

import ast
import re
from collections.abc import Iterator

from gates.scan.analyses.evaluation.phases import sets_off
from gates.scan.analyses.reading.code import MODEL, calls
from gates.scan.analyses.training.forwards import is_call_of_model
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, text_of
from gates.scan.program.project import Project

EVALUATES = re.compile(r"(?i)^(valid|eval|test|dev)|(valid|eval)\w*$|Test\w*$")
WITHOUT = re.compile(r"\b(no_grad|inference_mode)\(\)")


def never_set(project: Project) -> Iterator[tuple[Module, Function, ast.Call]]:
    """Yield the forward passes of classes that evaluate, where nothing ever puts a model into evaluation mode."""
    if any(map(sets_off, project.modules.values())):
        return
    for info in project.classes.values():
        heirs = [each for each in project.extending.get(info.name, ()) if not each.twice]
        if not any(map(_trains, heirs)):
            continue
        for heir in heirs:
            found = _forward(heir) if EVALUATES.search(heir.node.name) and not _trains(heir) else None
            if found is not None:
                yield heir.scope.module, *found


def _trains(info: ClassInfo) -> bool:
    """Return whether a method of a class puts a model into training mode."""
    made = (call for method in info.methods.values() for call in calls(method) if tail_of(call.func) == "train")
    return any(isinstance(c.func, ast.Attribute) and MODEL.search(tail_of(c.func.value)) for c in made)


def _forward(info: ClassInfo) -> tuple[Function, ast.Call] | None:
    """Return the first forward pass of a class that stands in a block without gradients."""
    for method in info.methods.values():
        decorated = any(WITHOUT.search(text_of(each)) for each in method.decorator_list)
        blocks = [node for node in inner(method, ast.With) if isinstance(node, ast.With)]
        within = [each for each in blocks if any(WITHOUT.search(text_of(item.context_expr)) for item in each.items)]
        for place in [method] if decorated else within:
            found = [call for call in calls(place) if is_call_of_model(call)]
            if found:
                return method, found[0]
    return None
