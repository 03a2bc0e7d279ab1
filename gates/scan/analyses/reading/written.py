"""Which keys a dictionary has that is written out and never changed, under the name or the attribute that keeps it."""

import ast

from gates.scan.analyses.reading.code import constant, function_of, named
from gates.scan.analyses.reading.common_objects import read_attributes
from gates.scan.analyses.reading.keys import Keys
from gates.scan.analyses.reading.only_read import only_reads
from gates.scan.program.module import Module
from gates.scan.program.nodes import kept
from gates.scan.program.project import Project


def keys_written(project: Project, module: Module, node: ast.expr) -> tuple[Keys, ast.Dict, Module] | None:
    """Return the keys of the one dictionary that an expression is, where it stands and its file."""
    scope = project.scope_at(node, module)
    behind = scope.through(node) if isinstance(node, ast.Name | ast.Attribute) else None
    made = behind[0] if behind is not None else None
    if behind is None or not isinstance(made, ast.Dict) or not made.keys:
        return None
    keys = [constant(key) if key is not None else None for key in made.keys]
    texts = frozenset(key for key in keys if isinstance(key, str))
    if len(texts) != len(keys) or not _is_left(project, module, node):
        return None
    return texts, made, behind[1].module


def _is_left(project: Project, module: Module, node: ast.expr) -> bool:
    """Return whether all uses of a dictionary only read it."""
    if isinstance(node, ast.Attribute):
        owner = project.scope_at(node, module).class_of(node.value)
        if owner is None or any(node.attr in info.attributes for info in project.below(owner)):
            return False
        uses = project.once(read_attributes)[0].get(node.attr, [])
        return all(only_reads(there.parents.get(use), use, there) for use, there in uses)
    body = function_of(node, module)
    if not isinstance(node, ast.Name) or body is None or node.id not in project.scope_at(node, module).bindings:
        return False  # what a file keeps for others they may fill
    reads = (use for use in kept(body, named).get(node.id, []) if isinstance(use, ast.Name))
    return all(only_reads(module.parents.get(use), use, module) for use in reads if isinstance(use.ctx, ast.Load))
