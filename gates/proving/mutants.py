"""Mutants of some lines: of statements, conditions, operators, constants and arguments; none is made twice."""

import ast
import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

from gates.code.syntax import constant_truth
from gates.model import Location
from gates.proving.source import Text, compiles, is_none, parsed

PAIRS = (
    (ast.Add, ast.Sub),
    (ast.Mult, ast.Div),
    (ast.BitAnd, ast.BitOr),
    (ast.LShift, ast.RShift),
    (ast.And, ast.Or),
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.Is, ast.IsNot),
    (ast.In, ast.NotIn),
)
OTHER: dict[type[ast.AST], type[ast.AST]] = {
    **dict(PAIRS),
    **{two: one for one, two in PAIRS},
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.USub: ast.UAdd,
    ast.Break: ast.Continue,
    ast.Continue: ast.Break,
}


@dataclass(frozen=True)
class Fault:
    """A file with a change: the lines it speaks of, and the new text."""

    title: str
    file: Text
    location: Location
    text: str

    @cached_property
    def form(self) -> str:
        """Return what the new text means; nothing where it is no program."""
        return ast.dump(parsed(self.text)) if compiles(self.text) else ""

    @property
    def id(self) -> str:
        """Return a name that stays the same as long as the file does."""
        raw = f"{self.location.path}\0{self.form}".encode("utf-8", "backslashreplace")
        return hashlib.sha256(raw).hexdigest()[:16]

    @property
    def diff(self) -> str:
        """Return the change as a difference."""
        return self.file.diff(self.text)


def distinct(faults: Iterable[Fault], most: int) -> tuple[list[Fault], int]:
    """Return those that mean something, so many at most and none twice, and how many were not looked at."""
    made: dict[tuple[str, str], Fault] = {}
    left = 0
    for fault in faults:
        if len(made) >= most:
            left += 1
        elif fault.form and fault.form != fault.file.form:
            made.setdefault((fault.location.path, fault.form), fault)
    return [*made.values()], left


def spread(seed: str, faults: Iterator[Fault]) -> Iterator[Fault]:
    """Yield faults in an order that is the same each time and goes through all lines before it comes back to one."""
    by_line: dict[tuple[str, int], list[tuple[str, Fault]]] = defaultdict(list)
    for fault in faults:
        place = fault.location.path, fault.location.line or 1
        key = f"{seed}\0{place[0]}\0{place[1]}\0{fault.title}"
        by_line[place].append((hashlib.sha256(key.encode("utf-8", "replace")).hexdigest(), fault))
    lines = [sorted(each, key=lambda pair: pair[0]) for each in by_line.values()]
    for turn in zip_longest(*sorted(lines, key=lambda each: each[0][0])):
        yield from (pair[1] for pair in turn if pair)


def mutants(file: Text, lines: Collection[int]) -> Iterator[Fault]:
    """Yield each mutant of what begins in one of the lines."""
    for node in file.worth:
        if isinstance(node, ast.expr | ast.stmt):
            for what, part, text in (*_spoilt(node, file), *_exchanged(node, file)):
                if part.lineno in lines:
                    place = Location(path=file.path, line=part.lineno, last_line=part.end_lineno)
                    yield Fault(what, file, place, file.with_parts((part, text)))


def _spoilt(node: ast.expr | ast.stmt, file: Text) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    """Leave out a statement that does something, turn a condition round, return nothing."""
    if isinstance(node, ast.Expr):
        yield "statement left out", node, "yield" if isinstance(node.value, ast.Yield) else "pass"
    elif isinstance(node, ast.AugAssign) or (isinstance(node, ast.Assign) and _is_stored(node)):
        yield "statement left out", node, "pass"
    elif isinstance(node, ast.Raise):
        yield "exception not raised", node, "pass"
    elif isinstance(node, ast.If | ast.IfExp) and constant_truth(node.test) is None:
        yield "condition turned round", node.test, f"(not ({file.of(node.test)}))"
    elif isinstance(node, ast.Return) and node.value is not None and not is_none(node.value):
        yield "returns None", node, "return None"


def _exchanged(node: ast.expr | ast.stmt, file: Text) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    """Put another node in the place of one."""
    for other in _others(node):
        with suppress(RecursionError):  # a sum of a thousand terms is a thousand deep
            text = ast.unparse(other)
            yield (
                f"{_short(file.of(node))} -> {_short(text)}",
                node,
                f"({text})" if isinstance(node, ast.expr) else text,
            )


def _others(node: ast.expr | ast.stmt) -> Iterator[ast.AST]:
    """Yield the same with another operator, constant or value, and with an argument less."""
    if isinstance(node, ast.Break | ast.Continue):
        yield OTHER[type(node)]()
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.UnaryOp | ast.AugAssign) and type(node.op) in OTHER:
        yield _with(node, op=OTHER[type(node.op)]())
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield _with(node, ops=[OTHER[type(node.ops[0])]()])
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield ast.Constant(f"XX{node.value}XX")
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield ast.Constant(not node.value if isinstance(node.value, bool) else node.value + 1)
    elif isinstance(node, ast.Assign) and not _is_stored(node) and not is_none(node.value):
        yield _with(node, value=ast.Constant(None))
    elif isinstance(node, ast.Call):
        for i, given in enumerate(node.args):
            if not is_none(given) and not isinstance(given, ast.Starred):
                yield _with(node, args=[*node.args[:i], ast.Constant(None), *node.args[i + 1 :]])
        yield from (_with(node, keywords=[e for e in node.keywords if e is not word]) for word in node.keywords)


def _with(node: ast.AST, **changes: object) -> ast.AST:
    return ast.copy_location(type(node)(**{**dict(ast.iter_fields(node)), **changes}), node)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 48 else f"{line[:45]}..."


def _is_stored(node: ast.Assign) -> bool:
    return all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
