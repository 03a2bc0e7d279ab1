"""Attributes of objects that several functions are passed: what one of them puts there for the others."""

import ast
from collections import defaultdict
from collections.abc import Iterator

from gates.scan.analyses.reading.code import function_of
from gates.scan.analyses.reading.held import Made
from gates.scan.program.module import Module
from gates.scan.program.nodes import text_of
from gates.scan.program.project import Project


def put_beside(project: Project, module: Module, node: ast.Attribute) -> list[Made]:
    """Return what an object that is passed about gets for an attribute, where a function beside this one puts it.

    Of `engine.state.metrics` in one handler it is what another handler sets `engine.state.metrics` to.
    """
    sets = project.once(_sets)[0].get(node.attr, [])
    outer = function_of(function_of(node, module) or node, module)
    near = [each for each in sets if each[0] in module.parents and _is_same_part(each[0], node)]
    is_beside = any(outer is not None and outer in module.ancestors(target) for target, _, _ in near)
    return [(value, there) for _, value, there in sets] if is_beside else []


def _is_same_part(target: ast.Attribute, node: ast.Attribute) -> bool:
    """Return whether two attributes are of the same part of an object: `engine.state`, not the object itself."""
    return isinstance(node.value, ast.Attribute) and text_of(target) == text_of(node)


def _sets(project: Project) -> Iterator[dict[str, list[tuple[ast.Attribute, ast.expr, Module]]]]:
    """Yield what attributes are set to by their names; of what begins as an empty dictionary, nothing."""
    found: dict[str, list[tuple[ast.Attribute, ast.expr, Module]]] = defaultdict(list)
    for module in project.modules.values():
        for node in module.live.get(ast.Assign, []):
            for target in node.targets if isinstance(node, ast.Assign) else ():
                is_empty = isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict) and not node.value.keys
                if isinstance(target, ast.Attribute) and isinstance(node, ast.Assign) and not is_empty:
                    found[target.attr].append((target, node.value, module))
    yield found


def read_attributes(project: Project) -> Iterator[dict[str, list[tuple[ast.AST, Module]]]]:
    """Yield the uses of all attributes by their names."""
    found: dict[str, list[tuple[ast.AST, Module]]] = defaultdict(list)
    for module in project.modules.values():
        for node in module.live.get(ast.Attribute, []):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found[node.attr].append((node, module))
    yield found
