"""What the witness of a test run is told to watch: the functions that a task's criteria are traced to."""

import ast
import json
import os
from collections.abc import Iterator
from pathlib import Path

from gates.code.sources import Sources
from gates.code.symbols import Resolver
from gates.context import Context
from gates.evidence._beside_tests import files_beside_tests
from gates.evidence._named_values import PURE, NamedValues, makes_names, named_values, set_in
from gates.model import Location
from gates.syntax import SourceModule, Unparsed, live_statements
from gates.task.task import Task

Function = ast.FunctionDef | ast.AsyncFunctionDef
MOST = 400  # functions: each is looked at when a test asserts for the first time


def tell_what_to_watch(path: Path, task: Task, context: Context) -> None:
    """Write down the functions that the symbols of a task come to, and where its implementation lies."""
    resolver = Resolver(task, Sources(context.root))
    elsewhere = set_in(_modules(resolver))
    functions = {
        str(one["name"]): one
        for criterion in task.criteria for binding in criterion.code if binding.symbol
        for one in _functions(resolver, resolver.trace(binding).location, binding.symbol.partition(":")[0], elsewhere)
    }  # fmt: skip
    told = {
        "root": os.path.realpath(context.root),
        "implementation": [os.path.realpath(context.root / path) for path in task.implementation],
        "traced": sorted(traced_names(task)),
        "tests": _folders_of_tests(task, context.root),
        "made": any(map(makes_names, _modules(resolver))),
        "helpers": sorted(map(os.path.realpath, files_beside_tests(task, context.root))),
        "functions": [*functions.values()][:MOST],
    }
    path.write_text(json.dumps(told), encoding="utf-8")


def traced_names(task: Task) -> frozenset[str]:
    """Return the last names of the symbols that criteria are traced to."""
    symbols = [binding.symbol for criterion in task.criteria for binding in criterion.code if binding.symbol]
    return frozenset(symbol.rpartition(":")[2].rpartition(".")[2] for symbol in symbols)


def _folders_of_tests(task: Task, root: Path) -> list[str]:
    """Return the folders of the tests that hold nothing of the implementation."""
    named = {root / path.partition("::")[0] for path in task.tests}
    folders = {os.path.realpath(path if path.is_dir() else path.parent) for path in named}
    own = [os.path.realpath(root / path) for path in task.implementation]
    return sorted(folder for folder in folders if not any(f"{one}/".startswith(f"{folder}/") for one in own))


def _modules(resolver: Resolver) -> Iterator[SourceModule]:
    for path in resolver.python_files():
        try:
            yield resolver.module(path)
        except Unparsed:
            continue


def _functions(
    resolver: Resolver, place: Location | None, module_name: str, elsewhere: frozenset[str]
) -> Iterator[dict[str, object]]:
    """Yield the functions within some lines of a file, those of classes too."""
    if place is None:
        return
    try:
        module = resolver.module(resolver.root / place.path)
    except Unparsed:
        return
    first, last = place.line or 1, place.last_line or place.line or 1
    file = os.path.realpath(resolver.root / place.path)
    named = module_name if file.endswith(f"{module_name.replace('.', os.sep)}.py") else ""
    changed = _is_changed(module)
    said = NamedValues({}, PURE, whole=False) if changed else named_values(module, elsewhere)
    for chain, node, plain in _in(module.tree.body, (), plain=not changed):
        if first <= node.lineno <= last:
            head = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield {"name": f"{place.path}:{'.'.join(chain)}", "path": file, "chain": chain, "line": head,
                   "plain": plain, "module": named, **said.read_by(node)}  # fmt: skip


def _in(
    body: list[ast.stmt], owner: tuple[str, ...], *, plain: bool
) -> Iterator[tuple[tuple[str, ...], Function, bool]]:
    statements = [*live_statements(body)]
    bound = [name for statement in statements for name in _bound(statement)]
    for node in statements:
        if isinstance(node, ast.ClassDef):
            alone = plain and not node.decorator_list and not node.keywords
            yield from _in(node.body, (*owner, node.name), plain=alone)
        elif isinstance(node, Function) and bound.count(node.name) == 1:
            yield (*owner, node.name), node, plain and not node.decorator_list


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement gives something to, once for each time."""
    if isinstance(statement, Function | ast.ClassDef):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)


def _is_changed(module: SourceModule) -> bool:
    """Return whether a module sets attributes or takes all from another: its functions may be wrapped there."""
    for node in ast.walk(module.tree):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Name) and called.id in {"setattr", "globals", "vars", "exec"}:
            return True
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            return True
    return False
