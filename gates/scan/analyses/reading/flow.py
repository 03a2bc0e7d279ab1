"""Where values come from: the expressions that one is computed of, through variables, attributes, calls and returns."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from gates.scan.analyses.reading.code import MODEL, callee
from gates.scan.analyses.reading.origins import Origins
from gates.scan.analyses.reading.targets import only_method
from gates.scan.program.known import MODULE
from gates.scan.program.module import Function, Module, tail_of
from gates.scan.program.nodes import inner, kept, walk
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import PREPARES, SAME, Scope

MAX_HOPS = 6
OF_MODELS = frozenset({"parameters", "named_parameters", "train", "eval", "modules", "named_modules"})
MAKES = re.compile(r"^_*(build|create|make|get|load|init|prepare|wrap|setup|save|print|log|update)_")
MAX_SOURCES = 200
MAX_OVERRIDES = 8
KEEPING = frozenset({"DataParallel", "DistributedDataParallel", "DDP", "FSDP", "FullyShardedDataParallel", "compile"})
Calls = tuple[tuple[ast.Call, Module], ...]


@dataclass(frozen=True)
class Source:
    """An expression that a value is computed of, where it stands, and the calls through which it came."""

    node: ast.expr
    scope: Scope
    through: Calls = ()

    @property
    def module(self) -> Module:
        """Return the file that it stands in."""
        return self.scope.module

    @property
    def body(self) -> Function | ast.Lambda | ast.Module:
        """Return the function that it stands in, or the file."""
        return self.scope.function or self.module.tree


def sources(project: Project, node: ast.expr, scope: Scope, line: int) -> list[Source]:
    """Return the expressions that a value is computed of: the nearest assignments before it, what callees return."""
    found: dict[ast.AST, Source] = {}
    todo = [(Source(node, scope), line, MAX_HOPS)]
    while todo and len(found) < MAX_SOURCES:
        source, before, hops = todo.pop()
        if source.node in found:
            continue
        found[source.node] = source
        if hops:
            todo += [(each, at, hops - 1) for each, at in _behind(project, source, before)]
    return list(found.values())


def _behind(project: Project, source: Source, line: int) -> Iterator[tuple[Source, int]]:
    """Yield what the names of an expression were set to before a line, and what the calls in it return."""
    called = {node.func for node in ast.walk(source.node) if isinstance(node, ast.Call)}
    for node in ast.walk(source.node):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in called:
            before = set_before(source.body, node.id, line)
            for value, at in before:
                yield replace(source, node=value), at
            for value, scope, at in () if before or source.through else passed(project, node.id, source.scope):
                yield Source(value, scope), at
        elif isinstance(node, ast.Call):
            yield from _returned(project, source, node)


def set_before(body: ast.AST, name: str, line: int) -> list[tuple[ast.expr, int]]:
    """Return the last value that a name is set to before a line, and what it adds up before."""
    found: list[tuple[ast.expr, int, bool]] = []
    for node in inner(body, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]  # type: ignore[attr-defined]
        value = node.value  # type: ignore[attr-defined]  # each of them has one
        at: int = node.lineno  # type: ignore[attr-defined]
        named = any(isinstance(n, ast.Name) and n.id == name for t in targets for n in ast.walk(t))
        if named and value is not None and at < line:
            found.append((_unpacked(targets, value, name), at, isinstance(node, ast.AugAssign)))
    found.sort(key=lambda item: -item[1])
    taken: list[tuple[ast.expr, int]] = []
    for value, at, adds in found:
        taken.append((value, at))
        if not adds:
            break
    return taken


def _unpacked(targets: list[ast.expr], value: ast.expr, name: str) -> ast.expr:
    """Return what a name is set to: its own part of `a, b = c, d`."""
    for target in targets:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, part in zip(target.elts, value.elts, strict=True):
                if isinstance(one, ast.Name) and one.id == name and not isinstance(part, ast.Starred):
                    return part
    return value


def _returned(project: Project, source: Source, call: ast.Call) -> Iterator[tuple[Source, int]]:
    if any(call is other for other, _ in source.through):
        return
    for target in runs(project, source.module, call):
        scope = project.scope_of(target, source.module)
        for node in inner(target, ast.Return):
            if isinstance(node, ast.Return) and node.value is not None:
                yield Source(node.value, scope, (*source.through, (call, source.module))), node.lineno + 1


def runs(project: Project, module: Module, call: ast.Call) -> list[Function]:
    """Return the functions that a call may run: of an own method those too that classes which extend this one have."""
    target = callee(project, module, call)
    found = [target] if target is not None else []
    if target is None and isinstance(call.func, ast.Attribute):
        found = list(only_method(project, call.func, project.scope_at(call, module)))
    if not isinstance(call.func, ast.Attribute) or tail_of(call.func.value) != "self":
        return found
    owner = project.scope_at(call, module).self_class
    todo, seen = [owner.name] if owner is not None else [], set()
    while todo and len(found) < MAX_OVERRIDES:
        for info in project.extending.get(todo.pop(), ()):
            if info.name not in seen:
                seen.add(info.name)
                todo.append(info.name)
                found += [info.methods[call.func.attr]] if call.func.attr in info.methods else []
    return found


def is_forward(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call is the forward pass of a model: by the class of what is called, or by its name."""
    if not (call.args or call.keywords) or not isinstance(call.func, ast.Name | ast.Attribute):
        return False
    named = project.types.of(call.func, project.scope_at(call, module))
    if named in project.classes:
        return project.types.is_a(named, MODULE) is True and not _is_loss(named or "")
    tail = tail_of(call.func)
    if callee(project, module, call) is not None or MAKES.search(tail) or tail[:1].isupper():
        return False
    if not MODEL.search(tail) and (tail not in kept(module.tree, _used_as_models) or _is_loss(tail)):
        return False
    return isinstance(call.func, ast.Name) or tail_of(call.func.value) in {"self", "cls"} or _is_held(call.func)


def _used_as_models(tree: ast.AST) -> frozenset[str]:
    """Return what a file puts into training mode, or asks for its parameters, as only models are."""
    return frozenset(
        tail_of(node.func.value)
        for node in walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in OF_MODELS
    ) - {"self", "super", ""}


def _is_held(func: ast.Attribute) -> bool:
    """Return whether a model is a field of something: `state.model(x)`, `self.modules.encoder(x)`."""
    root: ast.expr = func
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(root, ast.Name) and root.id not in {"torch", "nn", "F", "models", "torchvision", "timm"}


def _is_loss(name: str) -> bool:
    return name.rpartition(".")[2].lower().endswith(("loss", "criterion"))


def spine(
    project: Project, node: ast.expr, scope: Scope, line: int, hops: int = MAX_HOPS,
    seen: set[tuple[ast.AST, int]] | None = None,
) -> Iterator[Source]:  # fmt: skip
    """Yield the expressions that one object passed through as itself: `net`, `Net().cuda()`, `build()`, `DDP(net)`."""
    seen = set() if seen is None else seen
    if (node, line) in seen:
        return
    seen.add((node, line))
    yield Source(node, scope)
    if not hops:
        return
    if isinstance(node, ast.Call):
        for inside, where, at in _same_object(project, node, scope):
            yield from spine(project, inside, where, at or line, hops - 1, seen)
    elif isinstance(node, ast.Name):
        found = scope.lookup(node.id)
        body = (found[0].function or found[0].module.tree) if found else None
        where = found[0] if found else scope
        for value, at in set_before(body, node.id, line if where is scope else 10**9) if body else ():
            yield from spine(project, value, where, at, hops - 1, seen)
    elif isinstance(node, ast.Attribute):
        for binding, there in scope.attribute(node):
            if binding.kind == "value" and isinstance(binding.node, ast.expr):
                yield from spine(project, binding.node, there, binding.node.lineno + 1, hops - 1, seen)


def _same_object(project: Project, call: ast.Call, scope: Scope) -> Iterator[tuple[ast.expr, Scope, int]]:
    tail = tail_of(call.func)
    if tail in KEEPING or (tail in PREPARES and len(call.args) == 1):
        yield from ((arg, scope, 0) for arg in call.args[:1])
    elif isinstance(call.func, ast.Attribute) and (tail in SAME or tail.endswith("_")):
        yield call.func.value, scope, 0
    else:
        target = project.types.function(call, scope)
        inner_scope = project.scope_of(target, scope.module) if target else scope
        for node in inner(target, ast.Return) if target else ():
            if isinstance(node, ast.Return) and node.value is not None:
                yield node.value, inner_scope, node.lineno + 1


def passed(project: Project, name: str, scope: Scope) -> Iterator[tuple[ast.expr, Scope, int]]:
    """Yield what the callers of a function pass for one of its parameters."""
    function = scope.function
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    called = scope.owner.node.name if scope.owner and function.name == "__init__" else function.name
    found: Iterable[tuple[ast.Call, Module]] = project.named.get(called, [])[:20]
    for call, module in Origins(project).called(function) if called == "__call__" else found:
        value = argument(call, function, name, bound=scope.owner is not None)
        if value is not None:
            yield value, project.scope_at(call, module), call.lineno
