"""What the variable of a loop stands for, turn by turn: `for row in (old, new)`, `min(rows, key=lambda row: ...)`."""

import ast
from collections.abc import Iterator

from gates.scan.members.code import callee, function_of
from gates.scan.members.gone_through import source_of
from gates.scan.members.held import held, values_in
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import is_none, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope

LISTS = frozenset({"list", "List", "Sequence", "Iterable", "Iterator", "Collection", "tuple", "Tuple"})
ORDERS = frozenset({"sorted", "min", "max"})
Element = tuple[ast.expr, Scope]


def elements(project: Project, module: Module, name: ast.Name) -> list[Element]:
    """Return what a loop's variable is in each turn, or what it is annotated as; nothing where that is not known."""
    found = _container(name, module)
    if found is None:
        return []
    container, path = found
    if isinstance(container, ast.Tuple | ast.List | ast.Dict):
        return [(value, project.scope_at(value, module)) for value in values_in(container, path)]
    if isinstance(container, ast.Name):
        values = held(project, container.id, function_of(container, module) or module.tree, module, path=path)
        return [(value, project.scope_at(value, there)) for value, there in values]
    return []


def annotated(project: Project, module: Module, name: ast.Name) -> str | None:
    """Return the class that a list is annotated to hold, whose elements a loop's variable goes through."""
    found = _container(name, module)
    if found is None or found[1]:
        return None
    container, scope = found[0], project.scope_at(found[0], module)
    told: ast.expr | None = None
    if isinstance(container, ast.Name) and (bound := scope.lookup(container.id)) is not None:
        kinds = [binding.node for binding in bound[1] if binding.kind == "parameter"]
        told = kinds[0] if len(bound[1]) == 1 and kinds and isinstance(kinds[0], ast.expr) else None
        scope = bound[0].outer or bound[0]
    elif isinstance(container, ast.Call) and (target := callee(project, module, container)) is not None:
        told, scope = target.returns, project.scope_of(target, module)
    inside = _inside(told)
    return scope.dotted(inside) if isinstance(inside, ast.Name | ast.Attribute) else None


def _inside(told: ast.expr | None) -> ast.expr | None:
    """Return what an annotation says that a list holds: of `list[Row]` and of `tuple[Row, ...]`, `Row`."""
    if not isinstance(told, ast.Subscript) or tail_of(told.value) not in LISTS:
        return None
    parts = told.slice.elts if isinstance(told.slice, ast.Tuple) else [told.slice]
    rest = [p for p in parts[1:] if not (isinstance(p, ast.Constant) and p.value is ...)]
    is_plain = not rest and (len(parts) == 2) is (tail_of(told.value) in {"tuple", "Tuple"})
    return parts[0] if is_plain and not is_none(parts[0]) else None


def _container(name: ast.Name, module: Module) -> tuple[ast.expr, list[int]] | None:
    """Return what the innermost loop that sets a variable goes through, where nothing else in it sets that."""
    below: ast.AST = name
    for around in module.ancestors(name):
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return None
        if isinstance(around, ast.Lambda) and name.id in {a.arg for a in walk(around.args) if isinstance(a, ast.arg)}:
            return _ordered(around, module)
        for turn in _turns(around, below):
            target = next((n for n in walk(turn.target) if isinstance(n, ast.Name) and n.id == name.id), None)
            if target is not None:
                return source_of(target, module) if _is_set_once(around, name.id) else None
        below = around
    return None


def _turns(around: ast.AST, below: ast.AST) -> Iterator[ast.For | ast.comprehension]:
    """Yield the loops whose variables stand for something in a part of a node."""
    if isinstance(around, ast.For) and below in around.body:
        yield around
    elif isinstance(around, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
        at = around.generators.index(below) if isinstance(below, ast.comprehension) else len(around.generators)
        yield from reversed(around.generators[:at])


def _is_set_once(around: ast.AST, name: str) -> bool:
    stored = [n for n in walk(around) if isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load)]
    others = (
        n for n in walk(around) if isinstance(n, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and n.name == name
    )
    return len(stored) == 1 and not any(others)


def _ordered(key: ast.Lambda, module: Module) -> tuple[ast.expr, list[int]] | None:
    """Return what is put in order by a key: of `min(rows, key=lambda row: row.loss)`, `rows`."""
    option = module.parents.get(key)
    call = module.parents.get(option) if isinstance(option, ast.keyword) and option.arg == "key" else None
    if not isinstance(call, ast.Call) or tail_of(call.func) not in ORDERS or len(call.args) != 1:
        return None
    return (call.args[0], []) if len(key.args.args) == 1 and isinstance(call.func, ast.Name) else None
