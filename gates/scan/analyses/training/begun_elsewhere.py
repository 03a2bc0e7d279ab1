"""Attributes that one function sets and another starts a backward pass from: `trainer.outputs["loss"].backward()`."""

import ast
from collections import defaultdict
from collections.abc import Iterator

from gates.scan.analyses.reading.code import functions
from gates.scan.analyses.training.graphs import CUT, begun_at
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import tail_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

Begun = dict[tuple[str, bool], list[ClassInfo | None]]


def is_begun_elsewhere(node: ast.Attribute, scope: Scope, *, of_part: bool) -> bool:
    """Return whether a backward pass starts somewhere from what an attribute holds, or from a part of it."""
    project = scope.project
    owners = project.once(_begun)[0].get((node.attr, of_part), [])
    own = scope.class_of(node.value) or _sole(project, node.attr) if owners else None
    if own is None or _is_cut(project, own, node.attr):
        return False
    family = {own, *project.order_of(own), *project.below(own)}
    return any((owner or _sole(project, node.attr)) in family for owner in owners)


def _begun(project: Project) -> Iterator[Begun]:
    """Yield the classes of the objects from whose attributes, or parts of these, backward passes start."""
    found: Begun = defaultdict(list)
    for module in project.modules.values():
        for function in functions(module) if "backward" in module.calls else ():
            for value in begun_at(function):
                is_part = isinstance(value, ast.Subscript)
                whole = value.value if isinstance(value, ast.Subscript) else value
                if isinstance(whole, ast.Attribute):
                    found[whole.attr, is_part].append(project.scope_of(function, module).class_of(whole.value))
    yield dict(found)


def _sole(project: Project, name: str) -> ClassInfo | None:
    """Return the only class of the program that has an attribute of a name."""
    having = [info for info in project.classes.values() if name in info.attributes]
    return having[0] if len(having) == 1 else None


def _is_cut(project: Project, owner: ClassInfo, name: str) -> bool:
    """Return whether what an attribute is set to was cut off from its graph, at some place."""
    for binding, _ in project.attribute(owner, name):
        value = binding.node
        made = value.value if isinstance(value, ast.DictComp) else value
        if isinstance(made, ast.Call) and tail_of(made.func) in CUT:
            return True
    return False
