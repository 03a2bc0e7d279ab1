"""What keeps tests from being collected or run besides the tests themselves: conftest.py, hooks, fixtures."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from gates.evidence._goalposts.assertions import written
from gates.evidence._goalposts.move import Move, Part, moved
from gates.evidence._goalposts.repeated import items
from gates.evidence._goalposts.written_tests import Function, skip_calls
from gates.model import Location
from gates.syntax import live_statements

IGNORES = {"collect_ignore", "collect_ignore_glob"}
HOOKS = {
    "pytest_ignore_collect", "pytest_collection_modifyitems", "pytest_collect_file", "pytest_pycollect_makeitem",
    "pytest_runtest_setup", "pytest_runtest_protocol", "pytest_runtest_makereport", "pytest_runtest_call",
    "pytest_pyfunc_call", "pytest_sessionfinish", "pytest_deselected", "pytest_generate_tests",
}  # fmt: skip


def compare(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Iterator[Move]:
    """Yield what is left out now and was not: ignored files, hooks with a say in what runs, functions that skip."""
    for path, content in after.items():
        new, old = _read(content), _read(before.get(path, b""))
        if new is None or old is None:
            continue  # it is named where its tests are read
        if PurePosixPath(path).name == "conftest.py":
            yield from _of_conftest(path, old, new)
        had = {name: skips for name, (_, skips) in _skipping(old).items()}
        for name, (line, skips) in _skipping(new).items():
            if skips and (name in had or _is_for_all(new, name)):
                for skip in Counter(skips) - Counter(had.get(name, ())):
                    yield moved(Part.TESTS, f"{path}::{name}", "runs", skip, Location(path=path, line=line))


def _of_conftest(path: str, old: ast.Module, new: ast.Module) -> Iterator[Move]:
    was, now = dict(_ignored(old)), dict(_ignored(new))
    for what, line in now.items():
        if what not in was:
            yield moved(Part.TESTS, f"{path} collect_ignore", "collected", what, Location(path=path, line=line))
    hooks = {node.name: written(node) for node in live_statements(old.body) if isinstance(node, Function)}
    for node in live_statements(new.body):
        if isinstance(node, Function) and node.name in HOOKS and hooks.get(node.name) != written(node):
            before = "changed from before" if node.name in hooks else "none"
            place = Location(path=path, line=node.lineno)
            yield moved(Part.TESTS, f"{path} hook {node.name}", before, "has a say in what runs", place)


def _ignored(module: ast.Module) -> Iterator[tuple[str, int]]:
    for node in live_statements(module.body):
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) else None
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if value is not None and any(isinstance(target, ast.Name) and target.id in IGNORES for target in targets):
            yield from ((item, node.lineno) for item in items(value, {}) or (written(value),))


def _skipping(module: ast.Module) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Return the functions that are no tests, with the calls in them that skip what uses them."""
    return {
        node.name: (node.lineno, tuple(skip_calls(node.body, ())))
        for node in live_statements(module.body)
        if isinstance(node, Function) and not node.name.startswith("test")
    }


def _is_for_all(module: ast.Module, name: str) -> bool:
    """Return whether a function is a fixture that every test uses, asked or not."""
    found = [node for node in live_statements(module.body) if isinstance(node, Function) and node.name == name]
    return any("autouse=True" in written(part) for node in found for part in node.decorator_list)


def _read(content: bytes) -> ast.Module | None:
    try:
        return ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
