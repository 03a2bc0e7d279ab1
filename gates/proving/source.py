"""A file of the implementation as faults are made from it: its tree, other nodes in it, its mutants."""

import ast
import difflib
import hashlib
import io
import operator
import re
import tokenize
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

from gates.code.meanings import Function, last_name
from gates.code.syntax import constant_truth, live_nodes
from gates.model import Location
from gates.scan.program.nodes import is_none

LOG = re.compile(r"print|(_?log(ger)?|logging|warnings)\.(debug|info|warn(ing)?|error|exception|critical|log)", re.I)
TELLING = {"isinstance", "super", "cast", "TypeVar", "NewType", "ParamSpec", "overload"}
CONTEXT = 2
Node = ast.expr | ast.stmt
Parts = Mapping[ast.AST, ast.AST]  # of a tree, and what takes their place


@dataclass(frozen=True)
class Text:
    """The text of a file, named relative to the project, and its tree, from which faults are made."""

    path: str
    raw: bytes

    @classmethod
    def read(cls, root: Path, path: str) -> "Text":
        """Read a file; raise `OSError`, `SyntaxError` or `ValueError` where it cannot be read or written anew."""
        if not (root / path).resolve().is_relative_to(root.resolve()):
            raise OSError(f"{path} is a link that leads out of the project")
        text = cls(path, (root / path).read_bytes())
        _ = text.same
        return text

    @cached_property
    def tree(self) -> ast.Module:
        """Return the syntax tree; raises `SyntaxError` where there is none."""
        with warnings.catch_warnings(action="ignore"):  # what the compiler only warns of is no concern here
            return ast.parse(self.raw)

    @cached_property
    def same(self) -> str:
        """Return what the file means, without comments and spaces: they make no mutant."""
        return self.but({})

    @cached_property
    def retold(self) -> str:
        """Return a text that means the same as the file, and is not the same: with a comment behind each statement."""
        lines = self.same.split("\n")
        for token in tokenize.generate_tokens(io.StringIO(self.same).readline):
            if token.type == tokenize.NEWLINE:
                lines[token.start[0] - 1] += "  #"
        return "\n".join(lines)

    def but(self, others: Parts) -> str:
        """Return the text of the file with other nodes in the place of some; raise `ValueError` if it is too deep."""
        try:
            told = (was if nodes.isdisjoint(others) else _told(_but(node, others)) for node, nodes, was in self._split)
            return "\n".join(told) + "\n"
        except RecursionError as error:
            raise ValueError("its expressions are too deep") from error

    @cached_property
    def _split(self) -> list[tuple[ast.AST, set[ast.AST], str]]:
        """Return each statement with all that is in it, and its text: the others need not be written anew."""
        nodes = [ast.Module(self.tree.body[:1], []), *self.tree.body[1:]]  # the first may be a docstring
        return [(node, {*ast.walk(node)}, _told(node)) for node in nodes]

    @cached_property
    def worth(self) -> tuple[ast.AST, ...]:
        """Return the live nodes, leaving out annotations, and what is only told to people or to type checkers."""
        found, aside = [], set[ast.AST]()
        for node in live_nodes(self.tree):  # what holds others comes before them
            if node in aside or _only_tells(node):
                aside.update(ast.iter_child_nodes(node))
                continue
            found.append(node)
            words = isinstance(node, ast.Raise | ast.JoinedStr)
            told = map(vars(node).get, ("annotation", "returns"))
            aside.update(ast.iter_child_nodes(node) if words else filter(None, told))
        return tuple(found)


def _told(node: ast.AST) -> str:
    return "\n" * isinstance(node, Function | ast.ClassDef) + ast.unparse(node)


def _but(value: Any, others: Parts) -> Any:  # noqa: ANN401  # a field of a node is anything
    """Return a node, or what a field holds, with other nodes in place of some; what holds none stays what it is."""
    if isinstance(value, list):
        made = [_but(each, others) for each in value]
        return value if all(map(operator.is_, made, value)) else made
    if not isinstance(value, ast.AST) or not others:
        return value
    if value in others:
        return _but(others[value], {node: other for node, other in others.items() if node is not value})
    changes = {name: new for name, inner in ast.iter_fields(value) if (new := _but(inner, others)) is not inner}
    return exchanged(value, **changes) if changes else value


def is_log(node: ast.AST) -> bool:
    """Return whether a call only tells somebody something."""
    if not isinstance(node, ast.Call):
        return False
    owner = f"{last_name(node.func.value)}." if isinstance(node.func, ast.Attribute) else ""
    return LOG.fullmatch(f"{owner}{last_name(node.func)}") is not None


def is_docstring(node: ast.AST) -> bool:
    """Return whether a statement is only a text."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _only_tells(node: ast.AST) -> bool:
    """Return whether a change of a node changes nothing: docstrings, messages, declarations, `__all__`."""
    if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        named = any(isinstance(target, ast.Name) and target.id in {"__all__", "__slots__"} for target in targets)
        return named or node.value is None
    if isinstance(node, ast.Call):
        return is_log(node) or last_name(node.func) in TELLING
    return is_docstring(node) or (isinstance(node, ast.Expr) and is_log(node.value))


# what take each other's place, and what takes the place of something that takes none
SWAPPED = "Add Sub, Mult Div, BitAnd BitOr, LShift RShift, And Or, Lt LtE, Gt GtE, Eq NotEq, Is IsNot, In NotIn"
PAIRS = [[getattr(ast, name) for name in pair.split()] for pair in f"{SWAPPED}, Break Continue".split(", ")]
ONE_WAY: dict[type[ast.AST], type[ast.AST]] = {ast.FloorDiv: ast.Div, ast.Mod: ast.Mult, ast.Pow: ast.Mult}
OTHER = ONE_WAY | {ast.USub: ast.UAdd} | {one: two for pair in PAIRS for one, two in (pair, pair[::-1])}


@dataclass(frozen=True)
class Fault:
    """A file with a change: the lines it speaks of, and what takes the place of what."""

    title: str
    file: Text
    location: Location
    parts: Parts

    @cached_property
    def text(self) -> str:
        """Return the new text; nothing where it is no program."""
        with warnings.catch_warnings(action="ignore"), suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            text = self.file.but(self.parts)
            compile(text, "fault", "exec", dont_inherit=True)
            return text
        return ""

    @property
    def id(self) -> str:
        """Return a name that stays the same as long as the file does."""
        return hashlib.sha256(f"{self.location.path}\0{self.text}".encode("utf-8", "backslashreplace")).hexdigest()[:16]

    @property
    def diff(self) -> str:
        """Return the change as a difference, with a little of what is around it, and without comments."""
        before, after, name = self.file.same.splitlines(), self.text.splitlines(), self.file.path
        lines = difflib.unified_diff(before, after, name, name, lineterm="", n=CONTEXT)
        return "\n".join(line for line in lines if not line.startswith("@@"))


def distinct(faults: Iterable[Fault], most: int) -> tuple[list[Fault], int]:
    """Return those that mean something, so many at most and none twice, and how many were not looked at."""
    made, left = dict[tuple[str, str], Fault](), 0
    for fault in faults:
        if len(made) >= most:
            left += 1
        elif fault.text and fault.text != fault.file.same:
            made.setdefault((fault.location.path, fault.text), fault)
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


def mutants(file: Text, places: Iterable[Location]) -> Iterator[Fault]:
    """Yield each mutant of what begins in some lines of a file."""
    lines = {line for place in places if place.path == file.path for line in place.lines}
    for node in file.worth:
        if isinstance(node, Node):
            for what, part, other in _changes(node):
                if part.lineno in lines:
                    place = Location(path=file.path, line=part.lineno, last_line=part.end_lineno)
                    yield Fault(what, file, place, {part: other})


def _changes(node: Node) -> Iterator[tuple[str, Node, ast.AST]]:
    """Leave out a statement that does something, turn a condition round, return nothing, put something else there."""
    if isinstance(node, ast.Expr):
        rest = ast.Expr(ast.Yield()) if isinstance(node.value, ast.Yield) else ast.Pass()
        yield f"{_short(ast.unparse(node))} left out", node, rest
    elif isinstance(node, ast.AugAssign | ast.Raise) or (isinstance(node, ast.Assign) and _is_stored(node)):
        yield f"{_short(ast.unparse(node))} left out", node, ast.Pass()
    elif isinstance(node, ast.If | ast.IfExp) and constant_truth(node.test) is None:
        yield f"{_short(ast.unparse(node.test))} turned round", node.test, ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.Return) and node.value is not None and not is_none(node.value):
        yield f"{_short(ast.unparse(node))} -> return None", node, ast.Return(ast.Constant(None))
    for other in _others(node):
        with suppress(RecursionError):  # a sum of a thousand terms is a thousand deep
            yield f"{_short(ast.unparse(node))} -> {_short(ast.unparse(other))}", node, other


def _others(node: Node) -> Iterator[ast.AST]:
    """Yield the same with another operator, constant or value, and with an argument less."""
    if isinstance(node, ast.Break | ast.Continue):
        yield OTHER[type(node)]()
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.UnaryOp | ast.AugAssign) and type(node.op) in OTHER:
        yield exchanged(node, op=OTHER[type(node.op)]())
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield exchanged(node, ops=[OTHER[type(node.ops[0])]()])
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield ast.Constant(f"XX{node.value}XX")
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield ast.Constant(not node.value if isinstance(node.value, bool) else node.value + 1)
    elif isinstance(node, ast.Assign) and not _is_stored(node) and not is_none(node.value):
        yield exchanged(node, value=ast.Constant(None))
    elif isinstance(node, ast.Call):
        for i, given in enumerate(node.args):
            if not is_none(given) and not isinstance(given, ast.Starred):
                yield exchanged(node, args=[*node.args[:i], ast.Constant(None), *node.args[i + 1 :]])
        yield from (exchanged(node, keywords=[e for e in node.keywords if e is not word]) for word in node.keywords)


def exchanged(node: ast.AST, **changes: object) -> ast.AST:
    """Return a node like one, with other fields."""
    return ast.copy_location(type(node)(**{**dict(ast.iter_fields(node)), **changes}), node)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 48 else f"{line[:45]}..."


def _is_stored(node: ast.Assign) -> bool:
    return all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
