"""The test functions that are written in the sources, beside those that pytest planned."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch

MARKS = ("pytest.mark.", "mark.")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Written:
    """A test function as it is written: its classes and name, and its lines.

    `certain` says that pytest would collect it by all that can be read; `shadowed`, that the same name is defined
    again below in the same block; `made`, that nothing but an `__init__` of its class keeps pytest from it.
    """

    chain: tuple[str, ...]
    name: str
    line: int
    first_line: int
    certain: bool
    shadowed: bool = False
    made: bool = False

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
            sure = certain and plain
            first = min([statement.lineno, *(decorator.lineno for decorator in statement.decorator_list)])
            yield Written(chain, statement.name, statement.lineno, first, certain=sure, shadowed=again and sure)
        elif isinstance(statement, ast.ClassDef):
            again = any(isinstance(o, ast.ClassDef) and o.name == statement.name for o in body[i + 1 :])
            sure = certain and _is_plain(statement) and names.a_class(statement.name)
            sure = sure and statement.name not in rebound
            inner = list(_in_block(statement.body, names, (*chain, statement.name), certain=sure and not again))
            made = _is_kept_by_init(statement) and not chain and not again
            yield from (replace(test, made=True) if made else test for test in inner)
        elif not isinstance(statement, Function | ast.ClassDef):
            for field in ("body", "orelse", "finalbody"):
                yield from _in_block(getattr(statement, field, []), names, chain, certain=False)


def _only_marked(node: Function | ast.ClassDef) -> bool:
    return all(ast.unparse(decorator).startswith(MARKS) for decorator in node.decorator_list)


def _is_plain(node: ast.ClassDef) -> bool:
    """Return whether nothing about a class could keep pytest from collecting it."""
    return _is_bare(node) and not any(_binds(node.body, name) for name in ("__init__", "__new__", "__test__"))


def _is_kept_by_init(node: ast.ClassDef) -> bool:
    return _is_bare(node) and not _binds(node.body, "__test__") and _binds(node.body, "__init__")


def _is_bare(node: ast.ClassDef) -> bool:
    return not node.bases and not node.keywords and _only_marked(node)


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
