"""Classes that a program keeps under keys of a mapping: those that a decorator puts there, or a base for its heirs."""

import ast
from collections.abc import Iterator

from gates.scan.analyses.reading.code import constant, function_of
from gates.scan.analyses.reading.origins import Origins
from gates.scan.analyses.settings.defaults import choices
from gates.scan.analyses.settings.settings import setting
from gates.scan.program.classes import ClassInfo
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

Taken = tuple[str, set[object]]  # what the mapping is called, and the keys that are asked for


def made_of_kept(project: Project, node: ast.expr, scope: Scope) -> Iterator[ClassInfo]:
    """Yield the classes that an object may be of which is made by what stands under a key: `KINDS[name]()`."""
    for origin in Origins(project).of(node, scope):
        func = origin.node.func if isinstance(origin.node, ast.Call) else None
        for each in Origins(project).of(func, origin.scope) if func is not None else ():
            taken = _taken(each.node, each.scope)
            for key, info in kept(project, taken[0]) if taken is not None else ():
                if taken is not None and key in taken[1]:
                    yield info


def _taken(node: ast.expr, scope: Scope) -> Taken | None:
    """Return the mapping that something is taken out of, and under what: of `KINDS[key]`, `KINDS.get(key)`."""
    if isinstance(node, ast.Subscript):
        return tail_of(node.value), _keys(node.slice, scope)
    func = node.func if isinstance(node, ast.Call) and node.args else None
    if isinstance(node, ast.Call) and isinstance(func, ast.Attribute) and func.attr == "get":
        return tail_of(func.value), _keys(node.args[0], scope)
    return None


def _keys(node: ast.expr, scope: Scope) -> set[object]:
    """Return what a key may be: each side of a choice, a setting, any choice of an option of the command line."""
    found: set[object] = set()
    for origin in Origins(scope.project).of(node, scope):
        made = origin.node
        sides = (made.body, made.orelse) if isinstance(made, ast.IfExp) else (made,)
        found |= {value for side in sides if (value := setting(side, origin.scope)) is not None}
        listed = choices(scope.project, made.attr) if isinstance(made, ast.Attribute) else None
        if isinstance(listed, ast.List | ast.Tuple | ast.Set):
            found |= {constant(each) for each in listed.elts}
    return found


def kept(project: Project, holder: str) -> Iterator[tuple[object, ClassInfo]]:
    """Yield the classes that are put into a mapping of a name, and under what keys."""
    for module in project.modules.values():
        for keeper in _keepers(module, holder):
            outer = function_of(keeper, module)
            owner = project.scope_of(keeper, module).owner
            if keeper.name == "__init_subclass__" and owner is not None:
                yield from ((_named(info), info) for info in project.below(owner))
                continue
            name = (outer or keeper).name
            for info in project.classes.values():
                for made in info.node.decorator_list:
                    if tail_of(made.func if isinstance(made, ast.Call) else made) == name:
                        yield constant(_first(made)), info


def _keepers(module: Module, holder: str) -> Iterator[Function]:
    """Yield the functions that put one of their parameters into a mapping of a name."""
    for node in module.live.get(ast.Assign, []):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        around = function_of(node, module)
        if not isinstance(target, ast.Subscript) or tail_of(target.value) != holder or around is None:
            continue
        if isinstance(node, ast.Assign) and tail_of(node.value) in {arg.arg for arg in around.args.args}:
            yield around


def _first(made: ast.expr) -> ast.expr | None:
    given = [*made.args, *(k.value for k in made.keywords)] if isinstance(made, ast.Call) else []
    return given[0] if given else None


def _named(info: ClassInfo) -> object:
    """Return the key that a class gives itself as it extends a base: of `class Half(Base, key="half")`, `half`."""
    given = [constant(k.value) for k in info.node.keywords if k.arg != "metaclass"]
    return given[0] if len(given) == 1 else None
