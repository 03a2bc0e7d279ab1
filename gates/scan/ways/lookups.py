"""Where a program calls what it has looked up: by the variable of a loop, under a key, or by a text."""

import ast
from collections import defaultdict
from collections.abc import Iterator

from gates.scan.program.module import Module, tail_of
from gates.scan.program.project import Project
from gates.scan.program.signatures import Shape, shape_of
from gates.scan.ways.hooks import hooks_of
from gates.scan.ways.registries import named_in

DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
Spot = tuple[ast.AST, Module, ast.AST]  # what stands there, its file, and the function or file around it


def called_of_lists(project: Project) -> Iterator[dict[Shape, list[Spot]]]:
    """Yield where what stands in a list or under a key is called, by how it is called, and the functions around."""
    found: dict[Shape, list[Spot]] = defaultdict(list)
    for func, module in (*_called_in_loops(project), *_called_by_key(project), *_called_for_events(project)):
        call = module.parents.get(func)
        if isinstance(call, ast.Call):
            found[shape_of(call)].append((func, module, around(func, module)))
    yield dict(found)


def _called_in_loops(project: Project) -> Iterator[tuple[ast.AST, Module]]:
    """Yield where the variable of a loop is called."""
    for module in project.modules.values():
        for loop in (*module.live.get(ast.For, []), *module.live.get(ast.comprehension, [])):
            names = named_in(loop.target) if isinstance(loop, ast.For | ast.comprehension) else []
            whole = loop if isinstance(loop, ast.For) else module.parents.get(loop, loop)
            for call in (each for name in names for each in module.calls.get(name, ())):
                if isinstance(call.func, ast.Name) and whole in module.ancestors(call):
                    yield call.func, module


def _called_for_events(project: Project) -> Iterator[tuple[ast.AST, Module]]:
    """Yield where the one function that is kept under an event is called by a variable."""
    fired = (each.inside for found in project.once(hooks_of)[0].firing.values() for each in found)
    yield from {call.func: (call.func, module) for call, module in fired if isinstance(call.func, ast.Name)}.values()


def _called_by_key(project: Project) -> Iterator[tuple[ast.AST, Module]]:
    """Yield where what stands under a key is called, directly or by a variable that is set to it."""
    for module in project.modules.values():
        found: list[ast.expr] = [c.func for c in module.calls.get("", []) if isinstance(c.func, ast.Subscript)]
        for node in module.live.get(ast.Assign, []):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):
                found += [call.func for target in node.targets for call in module.calls.get(tail_of(target), ())]
        yield from ((func, module) for func in found)


def called_by_text(project: Project) -> Iterator[tuple[ast.Call, Module, str, frozenset[str]]]:
    """Yield the calls `getattr(x, name)(...)`, how their names begin, and the texts that they may be or end with."""
    known: frozenset[str] | None = None
    for found, module in project.named.get("getattr", []):
        call = module.parents.get(found)
        held = tail_of(call.targets[0]) if isinstance(call, ast.Assign) else ""
        if held:
            body = around(found, module)
            call = next((c for c in module.calls.get(held, []) if body in module.ancestors(c)), None)
        if not isinstance(call, ast.Call) or (call.func is not found and not held) or len(found.args) < 2:
            continue
        name = found.args[1]
        if isinstance(name, ast.Constant):
            yield call, module, "", frozenset({str(name.value)})
            continue
        if known is None:
            nodes = (n for m in project.modules.values() for n in m.live.get(ast.Constant, []))
            known = frozenset(n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))
        first = name.values[0] if isinstance(name, ast.JoinedStr) and name.values else None
        first = name.left if isinstance(name, ast.BinOp) else first
        prefix = str(first.value) if isinstance(first, ast.Constant) else ""
        yield call, module, prefix, known


def around(node: ast.AST, module: Module) -> ast.AST:
    """Return the function that code stands in, or the file."""
    return next(a for a in module.ancestors(node) if isinstance(a, DEFINING))
