"""Code that fits a pattern, with what its holes stand for; and a shape, with what must and must not be around it."""

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gates.scan.pattern import AROUND, BLOCKS, HOLE, MANY, Hole, Holes, Names, Pattern, is_many, root_of
from gates.scan.program.known import canonical, is_called
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import chain_of, text_of, walk
from gates.scan.program.project import Project
from gates.scan.rule import Constraint, Shape

MAX_HOPS = 4
UNTOLD = frozenset({"ctx", "type_comment", "kind"})


def match(pattern: Pattern, node: ast.AST, names: Names, *, lenient: bool = False) -> Holes | None:
    """Return what the holes stand for where code fits a pattern; `lenient` lets `*args` and `**kwargs` hide more."""
    matcher = _Matcher(names, lenient=lenient)
    if isinstance(pattern.body, ast.expr):
        fits = isinstance(node, ast.expr) and matcher.expr(pattern.body, node, names)
    else:
        fits = isinstance(node, ast.stmt) and matcher.stmt(pattern.body, node)
    return matcher.holes if fits else None


class _Matcher:
    """One attempt; `holes` fills as it goes."""

    def __init__(self, names: Names, *, lenient: bool) -> None:
        self._names, self._lenient, self._hops = names, lenient, 0
        self.holes: dict[str, Hole] = {}

    def _bind(self, name: str, node: ast.AST, names: Names) -> bool:
        hole = Hole(node, names)
        first = self.holes.setdefault(name, hole)
        return first is hole or first.key == hole.key

    def expr(self, want: ast.expr, node: ast.expr, names: Names) -> bool:
        """Match an expression; a variable may stand for the expression that it was made by."""
        if isinstance(want, ast.Name) and want.id.startswith(HOLE):
            return self._bind(want.id.removeprefix(HOLE), node, names)
        saved = dict(self.holes)
        if self._same(want, node, names):
            return True
        self.holes = saved
        if not isinstance(node, ast.Name | ast.Attribute) or self._hops >= MAX_HOPS:
            return False
        if (behind := names.through(node)) is None:
            return False
        self._hops += 1
        try:
            return self.expr(want, *behind)
        finally:
            self._hops -= 1

    def _same(self, want: ast.expr, node: ast.expr, names: Names) -> bool:
        if (dotted := root_of(want)) is not None:
            return isinstance(node, ast.Name | ast.Attribute) and names_it(dotted, node, names)
        if type(want) is not type(node):
            return False
        if isinstance(want, ast.Call) and isinstance(node, ast.Call):
            return self.expr(want.func, node.func, names) and self._arguments(want, node, names)
        return self._fields(want, node, names)

    def _fields(self, want: ast.AST, node: ast.AST, names: Names) -> bool:
        told = ((name, wanted) for name, wanted in ast.iter_fields(want) if name not in UNTOLD)
        return all(self._value(wanted, getattr(node, name), names) for name, wanted in told)

    def _value(self, wanted: object, value: object, names: Names) -> bool:
        if isinstance(wanted, ast.expr):
            return isinstance(value, ast.expr) and self.expr(wanted, value, names)
        if isinstance(wanted, ast.AST):
            return type(wanted) is type(value) and isinstance(value, ast.AST) and self._fields(wanted, value, names)
        if isinstance(wanted, list):
            return isinstance(value, list) and self._items(wanted, value, names)
        if isinstance(wanted, str) and wanted.startswith(HOLE):
            return isinstance(value, str) and self._bind(wanted.removeprefix(HOLE), ast.Name(value), names)
        return type(wanted) is type(value) and wanted == value

    def _items(self, wanted: list[ast.AST], values: list[ast.AST], names: Names) -> bool:
        """Match a list in order, `$$$` taking any number of items."""
        if not wanted:
            return not values
        if is_many(wanted[0]):
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
        many = any(map(is_many, want.args))
        hidden = self._lenient and any(isinstance(a, ast.Starred) for a in node.args)
        loose = self._lenient and any(k.arg is None for k in node.keywords)
        given = {k.arg: k.value for k in node.keywords if k.arg}
        if not many and (given.keys() - {k.arg for k in want.keywords} or len(given) != len(node.keywords)):
            return False
        pairs = ((keyword.value, given.get(keyword.arg or "")) for keyword in want.keywords)
        fits = all(loose if value is None else self.expr(wanted, value, names) for wanted, value in pairs)
        return fits and (hidden or self._items(list(want.args), list(node.args), names))

    def stmt(self, want: ast.stmt, node: ast.stmt) -> bool:
        """Match the head of a statement; parts that a pattern does not write (decorators, a value) may be there."""
        if isinstance(want, ast.With | ast.AsyncWith) and isinstance(node, ast.With | ast.AsyncWith):
            given = [item.context_expr for item in node.items]
            return all(any(self._value(item.context_expr, each, self._names) for each in given) for item in want.items)
        if type(want) is not type(node):
            return False
        for name, wanted in ast.iter_fields(want):
            if name in BLOCKS or wanted in (None, []):
                continue
            value, has_parameters = getattr(node, name), isinstance(wanted, ast.arguments)
            if not (self._parameters(wanted, value) if has_parameters else self._value(wanted, value, self._names)):
                return False
        return True

    def _parameters(self, want: ast.arguments, node: ast.arguments) -> bool:
        wanted = [arg.arg for arg in want.args]
        given = [arg.arg for arg in (*node.posonlyargs, *node.args, *node.kwonlyargs)]
        if MANY in wanted:
            return {*wanted} - {MANY} <= {*given}
        alike = zip(wanted, given, strict=False)
        return len(wanted) == len(given) and all(self._value(one, other, self._names) for one, other in alike)


def names_it(dotted: str, node: ast.expr, names: Names) -> bool:
    """Return whether an expression names what a dotted name of a pattern does."""
    found = names.dotted(node)
    return found == canonical(dotted) if found is not None else chain_of(node) == dotted


def find(shape: Shape, module: Module, project: Project) -> Iterator[ast.AST]:
    """Yield the live code of a module that fits."""
    search = _Search(module, project)
    seen: set[ast.AST] = set()
    possible = [pattern for pattern in shape.patterns if pattern.uses <= module.uses]
    for pattern in possible if shape.may_fit(lambda each: each.uses <= module.uses) else ():
        for node in search.candidates(pattern):
            holes = None if node in seen else match(pattern, node, project.scope_at(node, module))
            if holes is not None and search.fits_around(shape, node, holes):
                seen.add(node)
                yield node


class _Search(NamedTuple):
    """The search in one module for what must or must not be around code and in it."""

    module: Module
    project: Project

    def candidates(self, pattern: Pattern) -> Sequence[ast.AST]:
        """Return the code of a pattern's kind, by the names that it may be written with."""
        body = pattern.body
        if pattern.tail:
            return self.module.calls.get(pattern.tail, ())
        if pattern.root is None:
            return self.module.live.get(type(body), ())
        known = self.module.calls if isinstance(body, ast.Call) else self.module.mentions
        names = self.project.names_for(pattern.root.rpartition(".")[2])
        return [node for name in names for node in known.get(name, ())]

    def fits_around(self, shape: Shape, node: ast.AST, holes: Holes) -> bool:
        around, within = (shape.inside, shape.not_inside), (shape.has, shape.not_has)
        asked = ((self._around, *around), (self._is, (), shape.not_), (self._within, *within))
        return all(meets(need, holes[name]) for name, need in shape.needs.items() if name in holes) and all(
            (not some or any(look(each, node, holes) for each in some))
            and not any(look(each, node, holes) for each in none)
            for look, some, none in asked
        )

    def _is(self, shape: Shape, node: ast.AST, holes: Holes) -> bool:
        """Return whether a node itself fits a shape; one without patterns speaks only of what is around."""
        if not shape.patterns and not shape.words:
            return self.fits_around(shape, node, holes)
        for pattern in shape.patterns:
            found = match(pattern, node, self.project.scope_at(node, self.module), lenient=True)
            agreed = found is not None and all(holes[n].key == hole.key for n, hole in found.items() if n in holes)
            if agreed and self.fits_around(shape, node, {**holes, **(found or {})}):
                return True
        return False

    def _around(self, shape: Shape, node: ast.AST, holes: Holes) -> bool:
        """Return whether something around a node fits; a function ends a loop's reach, not an `if` or a `with`."""
        inner: ast.AST = node
        crossed = False
        for around in self.module.ancestors(node):
            for word in shape.words:
                reached = word != "loop" or (not crossed and _in_body(around, inner))
                if isinstance(around, AROUND[word]) and reached and self.fits_around(shape, around, holes):
                    return True
            if shape.patterns and (not crossed or isinstance(around, ast.If)) and self._is(shape, around, holes):
                return True
            crossed = crossed or isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            inner = around
        return False

    def _within(self, shape: Shape, node: ast.AST, holes: Holes) -> bool:
        kinds = tuple(kind for word in shape.words for kind in AROUND[word])
        inside = (inner for inner in walk(node) if inner is not node)
        return any(isinstance(inner, kinds) or (shape.patterns and self._is(shape, inner, holes)) for inner in inside)


def _in_body(loop: ast.AST, inner: ast.AST) -> bool:
    """Return whether what stands in a loop is run by each of its turns."""
    if isinstance(loop, ast.For | ast.AsyncFor | ast.While):
        return inner in loop.body or inner is getattr(loop, "test", None)
    return not (isinstance(inner, ast.comprehension) and inner is loop.generators[0])  # type: ignore[attr-defined]  # a comprehension


def meets(need: Constraint, hole: Hole) -> bool:
    """Return whether an object is what it must be: by its class, or, where that is not known, by what it is called."""
    verdict = may_meet(need, hole)
    return any(is_called(tail_of(hole.node), wanted) for wanted in need.type) if verdict is None else verdict


def may_meet(need: Constraint, hole: Hole) -> bool | None:
    """Return whether what a metavariable stands for is what it must be; `None` where its class is not known."""
    node = hole.node
    if not isinstance(node, ast.expr):
        return not need.type
    if need.regex and not need.regex.search(written(node)):
        return False
    names = hole.names
    verdicts = {names.project.types.is_a(names.type_of(node), wanted) for wanted in need.type}
    return True if True in verdicts or not verdicts else None if None in verdicts else False


def written(node: ast.expr) -> str:
    """Return the text of a string, or the code of anything else: what a regular expression is searched in."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else text_of(node)
