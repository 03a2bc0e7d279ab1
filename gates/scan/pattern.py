"""Patterns of code: Python with holes, in which imported names stand for what they name.

`$X` is one expression (the same wherever it stands again), `$$$` any arguments, `f(...)` any call of f, `...` any
statements. A dotted name is a name after import resolution: `torch.amp.autocast` fits every name for it.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Protocol

from gates.scan.known import canonical
from gates.scan.nodes import chain_of

MAX_HOPS = 4
_MANY = "__many__"
_HOLE = "__hole_"
_HOLES = re.compile(r"\$\$\$[A-Z_]*|\$([A-Z_][A-Z0-9_]*)|\$")
_AFTER_KEYWORD = re.compile(rf"(=[^()=]*(?:\([^()]*\))?[^()=]*,\s*)(?:{_MANY}|\.\.\.)(?=\s*[,)])")
_ALL_ARGS = re.compile(r"(?<=[\w\])])\(\s*\.\.\.\s*\)")

Bound = Mapping[str, ast.AST]


class PatternError(ValueError):
    """A pattern that is not Python with holes; `column` is from 1."""

    def __init__(self, message: str, column: int = 1) -> None:
        super().__init__(message)
        self.column = column


class Names(Protocol):
    """What a matcher asks of the place that code stands in."""

    def dotted(self, node: ast.expr) -> str | None:
        """Return the full name of what an expression names, or `None` where it names nothing that is known."""

    def through(self, node: ast.expr) -> "tuple[ast.expr, Names] | None":
        """Return the expression that a variable was made by, and the place of that."""

    def key(self, node: ast.AST) -> str:
        """Return what makes two expressions the same object."""


@dataclass(frozen=True)
class Hole:
    """What a metavariable stands for, and where."""

    node: ast.AST
    names: Names

    @property
    def key(self) -> str:
        """Return what makes it the same as another."""
        return self.names.key(self.node)


Holes = Mapping[str, Hole]


@dataclass(frozen=True)
class Pattern:
    """A compiled pattern: an expression, or statements."""

    text: str
    body: ast.expr | tuple[ast.stmt, ...]
    tail: str | None
    holes: frozenset[str] = field(default=frozenset())

    @classmethod
    @lru_cache(maxsize=4096)
    def parse(cls, text: str) -> "Pattern":
        """Compile a pattern; raise `PatternError` with the column for what is no pattern."""
        source = _ALL_ARGS.sub(f"({_MANY})", text.strip())
        for found in _HOLES.finditer(source):
            if found[0] == "$":
                raise PatternError("expected '$NAME' in capitals or '$$$'", text.find("$") + 1)
        source = _HOLES.sub(lambda m: f"{_HOLE}{m[1]}" if m[1] else _MANY, source)
        source = _AFTER_KEYWORD.sub(rf"\1*{_MANY}", source)
        try:
            statements = ast.parse(source).body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            column = getattr(error, "offset", None) or 1
            raise PatternError(f"not a pattern of Python: {getattr(error, 'msg', error)}", column) from error
        if not statements:
            raise PatternError("expected an expression or a statement, found nothing")
        holes = frozenset(
            name.removeprefix(_HOLE) for node in ast.walk(ast.Module(statements, [])) for name in _names_in(node)
            if name.startswith(_HOLE)
        )  # fmt: skip
        only = statements[0]
        if len(statements) == 1 and isinstance(only, ast.Expr):
            if isinstance(only.value, ast.Name) and only.value.id.startswith((_HOLE, _MANY)):
                raise PatternError("a pattern of a hole alone fits everything")
            return cls(text, only.value, _tail(only.value), holes)
        return cls(text, tuple(statements), None, holes)

    @cached_property
    def words(self) -> frozenset[str]:
        """Return the names that a program must write somewhere for code to fit: of a dotted name its last."""
        body = self.body if isinstance(self.body, tuple) else (self.body,)
        return frozenset(word for part in body for word in _written(part))

    @cached_property
    def roots(self) -> frozenset[str]:
        """Return the last names of what stands in it under a dotted name."""
        body = self.body if isinstance(self.body, tuple) else (self.body,)
        return frozenset(name.rpartition(".")[2] for part in body for name in _rooted(part) if "." in name)

    @cached_property
    def called(self) -> str:
        """Return the last name of what a call pattern calls by a dotted name, or nothing."""
        root = _root(self.body.func) if isinstance(self.body, ast.Call) and self.tail is None else None
        return root.rpartition(".")[2] if root else ""

    @cached_property
    def dotted(self) -> frozenset[str]:
        """Return the dotted names in it, in full."""
        body = self.body if isinstance(self.body, tuple) else (self.body,)
        found = (_root(n) for part in body for n in ast.walk(part) if isinstance(n, ast.Attribute))
        return frozenset(name for name in found if name is not None)


def _written(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name | ast.Attribute) and _root(node) is not None:
        yield _root(node).rpartition(".")[2]  # type: ignore[union-attr]  # it is not None here
        return
    if isinstance(node, ast.Attribute) and not node.attr.startswith(_HOLE):
        yield node.attr
    if isinstance(node, ast.Import | ast.ImportFrom):
        named = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
        yield from (word for name in named for word in name.split(".") if word and not word.startswith((_HOLE, _MANY)))
    for child in ast.iter_child_nodes(node):
        yield from _written(child)


def _rooted(node: ast.AST) -> Iterator[str]:
    root = _root(node) if isinstance(node, ast.Name | ast.Attribute) else None
    if root is not None:
        yield root
        return
    for child in ast.iter_child_nodes(node):
        yield from _rooted(child)


def _names_in(node: ast.AST) -> Iterator[str]:
    for name in ("id", "attr", "arg", "name"):
        value = getattr(node, name, None)
        if isinstance(value, str):
            yield value


def _root(node: ast.expr) -> str | None:
    """Return the dotted text of a chain of names that begins with a plain name, holes left out."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        if node.attr.startswith(_HOLE):
            return None
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id.startswith((_HOLE, _MANY)):
        return None
    return ".".join([node.id, *reversed(parts)])


def _tail(node: ast.expr) -> str | None:
    """Return the method that a call pattern ends in, where the code must write it so too."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _root(node.func) is None:
        return None if node.func.attr.startswith(_HOLE) else node.func.attr
    return None


def match(pattern: Pattern, node: ast.AST, names: Names, *, lenient: bool = False) -> Holes | None:
    """Return what the holes stand for where code fits a pattern; `lenient` lets `*args` and `**kwargs` hide more."""
    matcher = _Matcher(names, lenient=lenient)
    if isinstance(pattern.body, ast.expr):
        fits = isinstance(node, ast.expr) and matcher.expr(pattern.body, node, names)
    elif len(pattern.body) == 1 and isinstance(node, ast.stmt):
        fits = matcher.stmt(pattern.body[0], node)
    else:
        return None
    return matcher.holes if fits else None


def match_block(pattern: Pattern, block: list[ast.stmt], names: Names) -> Holes | None:
    """Return what the holes stand for where the first statements of a block fit a pattern of several."""
    assert isinstance(pattern.body, tuple)
    matcher = _Matcher(names, lenient=False)
    return matcher.holes if matcher.block(list(pattern.body), block, whole=False) else None


class _Matcher:
    """One attempt; `holes` fills as it goes."""

    def __init__(self, names: Names, *, lenient: bool) -> None:
        self._names = names
        self._lenient = lenient
        self._hops = 0
        self.holes: dict[str, Hole] = {}

    def _bind(self, name: str, node: ast.AST, names: Names) -> bool:
        hole = Hole(node, names)
        if name in self.holes:
            return self.holes[name].key == hole.key
        self.holes[name] = hole
        return True

    def expr(self, want: ast.expr, node: ast.expr, names: Names) -> bool:
        """Match an expression; a variable may stand for the expression that it was made by."""
        if isinstance(want, ast.Name) and want.id.startswith(_HOLE):
            return self._bind(want.id.removeprefix(_HOLE), node, names)
        saved = dict(self.holes)
        if self._same(want, node, names):
            return True
        self.holes = saved
        if not isinstance(node, ast.Name | ast.Attribute) or self._hops >= MAX_HOPS:
            return False
        behind = names.through(node)
        if behind is None:
            return False
        self._hops += 1
        try:
            return self.expr(want, *behind)
        finally:
            self._hops -= 1

    def _same(self, want: ast.expr, node: ast.expr, names: Names) -> bool:
        dotted = _root(want) if isinstance(want, ast.Name | ast.Attribute) else None
        if dotted is not None:
            return isinstance(node, ast.Name | ast.Attribute) and _names_it(dotted, node, names)
        if type(want) is not type(node):
            return False
        if isinstance(want, ast.Call) and isinstance(node, ast.Call):
            return self.expr(want.func, node.func, names) and self._arguments(want, node, names)
        return self._fields(want, node, names)

    def _fields(self, want: ast.AST, node: ast.AST, names: Names) -> bool:
        for name, wanted in ast.iter_fields(want):
            if name in {"ctx", "type_comment", "kind"}:
                continue
            if not self._value(wanted, getattr(node, name), names):
                return False
        return True

    def _value(self, wanted: object, value: object, names: Names) -> bool:
        if isinstance(wanted, ast.expr):
            return isinstance(value, ast.expr) and self.expr(wanted, value, names)
        if isinstance(wanted, ast.AST):
            return type(wanted) is type(value) and isinstance(value, ast.AST) and self._fields(wanted, value, names)
        if isinstance(wanted, list):
            return isinstance(value, list) and self._items(wanted, value, names)
        if isinstance(wanted, str) and wanted.startswith(_HOLE):
            return isinstance(value, str) and self._bind(wanted.removeprefix(_HOLE), ast.Name(value), names)
        return type(wanted) is type(value) and wanted == value

    def _items(self, wanted: list[ast.AST], values: list[ast.AST], names: Names) -> bool:
        """Match a list in order, `$$$` taking any number of items."""
        if not wanted:
            return not values
        if _is_many(wanted[0]):
            return any(self._retry(wanted[1:], values[at:], names) for at in range(len(values) + 1))
        return bool(values) and self._value(wanted[0], values[0], names) and self._items(wanted[1:], values[1:], names)

    def _retry(self, wanted: list[ast.AST], values: list[ast.AST], names: Names) -> bool:
        saved = dict(self.holes)
        if self._items(wanted, values, names):
            return True
        self.holes = saved
        return False

    def _arguments(self, want: ast.Call, node: ast.Call, names: Names) -> bool:
        """Match positional arguments in order and keywords in any; without `$$$` there must be no others."""
        many = any(map(_is_many, want.args))
        hidden = self._lenient and any(isinstance(a, ast.Starred) for a in node.args)
        loose = self._lenient and any(k.arg is None for k in node.keywords)
        given = {k.arg: k.value for k in node.keywords if k.arg}
        if not many and (given.keys() - {k.arg for k in want.keywords} or len(given) != len(node.keywords)):
            return False
        for keyword in want.keywords:
            if keyword.arg not in given:
                if loose:
                    continue
                return False
            if not self.expr(keyword.value, given[keyword.arg], names):
                return False
        return hidden or self._items(list(want.args), list(node.args), names)

    def stmt(self, want: ast.stmt, node: ast.stmt) -> bool:  # noqa: C901  # a case for each part of a statement
        """Match a statement; parts that a pattern does not write (decorators, `else`) may be there."""
        if isinstance(want, ast.With | ast.AsyncWith) and isinstance(node, ast.With | ast.AsyncWith):
            return self._with(want, node)
        if type(want) is not type(node):
            return False
        for name, wanted in ast.iter_fields(want):
            value = getattr(node, name)
            if name in {"type_comment", "type_params", "returns", "annotation"} and wanted is None:
                continue
            if name in {"orelse", "finalbody", "decorator_list", "type_params", "bases", "keywords"} and not wanted:
                continue
            if name == "body" or (name in {"orelse", "finalbody"}):
                if not self.block(wanted, value):
                    return False
            elif name == "handlers":
                if not all(any(self._handler(w, h) for h in value) for w in wanted):
                    return False
            elif name == "args" and isinstance(wanted, ast.arguments):
                if not self._parameters(wanted, value):
                    return False
            elif name == "value" and wanted is None:
                continue
            elif not self._value(wanted, value, self._names):
                return False
        return True

    def _with(self, want: ast.With | ast.AsyncWith, node: ast.With | ast.AsyncWith) -> bool:
        for item in want.items:
            if not any(self._value(item.context_expr, i.context_expr, self._names) for i in node.items):
                return False
        return self.block(want.body, node.body)

    def _handler(self, want: ast.ExceptHandler, node: ast.ExceptHandler) -> bool:
        if want.type is None and node.type is not None:
            return False
        if want.type is not None and (node.type is None or not self.expr(want.type, node.type, self._names)):
            return False
        return self.block(want.body, node.body)

    def _parameters(self, want: ast.arguments, node: ast.arguments) -> bool:
        wanted = [arg.arg for arg in want.args]
        if wanted == [_MANY]:
            return True
        given = [arg.arg for arg in (*node.posonlyargs, *node.args, *node.kwonlyargs)]
        if _MANY in wanted:
            return {w for w in wanted if w != _MANY} <= set(given)
        return len(wanted) == len(given) and all(
            self._value(w, g, self._names) for w, g in zip(wanted, given, strict=True)
        )

    def block(self, want: list[ast.stmt], node: list[ast.stmt], *, whole: bool = True) -> bool:
        """Match statements in order, `...` taking any number; docstrings do not count."""
        if not want:
            return not whole or not node
        if is_gap(want[0]):
            return any(self._retry_block(want[1:], node[at:], whole=whole) for at in range(len(node) + 1))
        return bool(node) and self.stmt(want[0], node[0]) and self.block(want[1:], node[1:], whole=whole)

    def _retry_block(self, want: list[ast.stmt], node: list[ast.stmt], *, whole: bool) -> bool:
        saved = dict(self.holes)
        if self.block(want, node, whole=whole):
            return True
        self.holes = saved
        return False


def _names_it(dotted: str, node: ast.expr, names: Names) -> bool:
    found = names.dotted(node)
    return found == canonical(dotted) if found is not None else chain_of(node) == dotted


def _is_many(node: ast.AST) -> bool:
    if isinstance(node, ast.Starred):
        node = node.value
    if isinstance(node, ast.alias):
        return node.name == _MANY
    return (isinstance(node, ast.Name) and node.id == _MANY) or (
        isinstance(node, ast.Constant) and node.value is Ellipsis
    )


def is_gap(node: ast.stmt) -> bool:
    """Return whether a statement of a pattern stands for any number of statements."""
    return isinstance(node, ast.Expr) and (
        (isinstance(node.value, ast.Constant) and node.value.value is Ellipsis) or _is_many(node.value)
    )
