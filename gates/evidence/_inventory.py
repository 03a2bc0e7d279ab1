"""The test functions that are written in the sources, beside those that pytest planned."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch

from gates.evidence._pytest_witness.asserting import asserts

MARKS = ("pytest.mark.", "mark.")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Written:
    """A test function as it is written: its classes and name, its lines, and the first line in it that asserts.

    `certain` says that pytest would collect it by all that can be read; `shadowed`, that the same name is defined
    again below in the same block.
    """

    chain: tuple[str, ...]
    name: str
    line: int
    first_line: int
    last_line: int
    assertion: int | None
    certain: bool
    shadowed: bool = False

    @property
    def shown(self) -> str:
        """Return the name as pytest would show it."""
        return "::".join((*self.chain, self.name))


@dataclass(frozen=True)
class Names:
    """What pytest takes for a test: patterns of functions and of classes."""

    functions: Sequence[str]
    classes: Sequence[str]

    def function(self, name: str) -> bool:
        """Return whether a function of this name is a test."""
        return any(_matches(name, pattern) for pattern in self.functions)

    def a_class(self, name: str) -> bool:
        """Return whether a class of this name holds tests."""
        return any(_matches(name, pattern) for pattern in self.classes)


def written_tests(source: bytes, names: Names) -> list[Written]:
    """Return the test functions of a file; none where it cannot be parsed, which pytest will say itself."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    return list(_in_block(tree.body, names, (), certain=not _binds(tree.body, "__test__")))


def _in_block(body: list[ast.stmt], names: Names, chain: tuple[str, ...], *, certain: bool) -> Iterator[Written]:
    rebound = {name for statement in body for name in _bound(statement)}
    deleted = {name for statement in body if isinstance(statement, ast.Delete) for name in _bound(statement)}
    for i, statement in enumerate(body):
        if isinstance(statement, Function) and names.function(statement.name):
            if any("fixture" in ast.unparse(decorator) for decorator in statement.decorator_list):
                continue
            again = any(isinstance(o, Function) and o.name == statement.name for o in body[i + 1 :])
            plain = _only_marked(statement) and statement.name not in rebound - deleted
            yield _written(statement, chain, certain=certain and plain, shadowed=again and plain and certain)
        elif isinstance(statement, ast.ClassDef):
            again = any(isinstance(o, ast.ClassDef) and o.name == statement.name for o in body[i + 1 :])
            sure = certain and _is_plain(statement) and statement.name not in rebound and names.a_class(statement.name)
            yield from _in_block(statement.body, names, (*chain, statement.name), certain=sure and not again)
        elif not isinstance(statement, Function | ast.ClassDef):
            for field in ("body", "orelse", "finalbody"):
                yield from _in_block(getattr(statement, field, []), names, chain, certain=False)


def _written(node: Function, chain: tuple[str, ...], *, certain: bool, shadowed: bool) -> Written:
    asserting = [inner.lineno for inner in ast.walk(node) if isinstance(inner, ast.stmt) and asserts(inner)]
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return Written(
        chain=chain, name=node.name, line=node.lineno, first_line=first, last_line=node.end_lineno or node.lineno,
        assertion=min(asserting, default=None), certain=certain, shadowed=shadowed,
    )  # fmt: skip


def _only_marked(node: Function | ast.ClassDef) -> bool:
    return all(ast.unparse(decorator).startswith(MARKS) for decorator in node.decorator_list)


def _is_plain(node: ast.ClassDef) -> bool:
    """Return whether nothing about a class could keep pytest from collecting it."""
    return not (
        node.bases or node.keywords or not _only_marked(node)
        or any(_binds(node.body, name) for name in ("__init__", "__new__", "__test__"))
    )  # fmt: skip


def _binds(body: list[ast.stmt], name: str) -> bool:
    return any(name in _bound(s) or (isinstance(s, Function) and s.name == name) for s in body)


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement binds or deletes, other than by defining a function or class."""
    if isinstance(statement, Function | ast.ClassDef):
        return set()
    nodes = list(ast.walk(statement))
    names = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    names |= {n.value.id for n in nodes if isinstance(n, ast.Attribute) and n.attr == "__test__"
              and isinstance(n.value, ast.Name)}  # fmt: skip
    return names | {(a.asname or a.name) for n in nodes if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names}


def _matches(name: str, pattern: str) -> bool:
    return name.startswith(pattern) or (any(c in pattern for c in "*?[") and fnmatch(name, pattern))
