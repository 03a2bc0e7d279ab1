"""Mutants of some lines, by the operators of the library mutmut, and of whole statements; none is made twice."""

import ast
import contextlib
import hashlib
import io
import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from gates.code.syntax import constant_truth, live_nodes
from gates.errors import UsageError
from gates.model import Location
from gates.proving.source import LOGGERS, LOGS, Text, compiles, is_docstring, is_log, parsed


@dataclass(frozen=True)
class Change:
    """A file with a change, before anybody has looked whether it is one: the lines it speaks of, and the new text."""

    title: str
    file: Text
    first: int
    last: int
    text: str


@dataclass(frozen=True)
class Fault:
    """A change that is one, with a name that stays the same as long as the file does."""

    id: str
    title: str
    location: Location
    text: str
    diff: str


@dataclass
class Maker:
    """Makes the faults of one criterion."""

    seen: set[str] = field(default_factory=set)

    def make(self, changes: Iterable[Change], most: int | None = None) -> tuple[list[Fault], int]:
        """Return the changes that are faults, so many at most, and how many changes were left."""
        made: list[Fault] = []
        left = 0
        for change in changes:
            if most is not None and len(made) >= most:
                left += 1
            elif fault := self.one(change):
                made.append(fault)
        return made, left

    def one(self, change: Change) -> Fault | None:
        """Return a change as a fault; `None` for what means the same as before, or as another fault, or nothing."""
        before, after = change.file.text, change.text
        if change.file.path.endswith(".py"):
            if not compiles(after):
                return None
            before, after = change.file.form, _form(after)
        form = _digest(change.file.path, after)
        if form in self.seen or before == after:
            return None
        self.seen.add(form)
        place = Location(path=change.file.path, line=change.first, last_line=change.last)
        return Fault(form, change.title, place, change.text, change.file.diff(change.text))


def spread(seed: str, changes: Iterator[Change]) -> Iterator[Change]:
    """Yield changes in an order that is the same each time and goes through all lines before it comes back to one."""
    by_line: dict[tuple[str, int], list[tuple[str, Change]]] = defaultdict(list)
    for change in changes:
        key = f"{seed}\0{change.file.path}\0{change.first}\0{change.title}"
        by_line[change.file.path, change.first].append(
            (hashlib.sha256(key.encode("utf-8", "replace")).hexdigest(), change)
        )
    lines = [sorted(each, key=lambda pair: pair[0]) for each in by_line.values()]
    for turn in zip_longest(*sorted(lines, key=lambda each: each[0][0])):
        yield from (pair[1] for pair in turn if pair)


def _form(text: str) -> str:
    return ast.dump(parsed(text))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:16]


if TYPE_CHECKING:
    import libcst

    Operators = list[tuple[type[libcst.CSTNode], Callable[[Any], Iterable[libcst.CSTNode]]]]

MISSING = "general mutations need the library mutmut, which is not installed; run: pip install 'amp-gates[prove]'"
BOUNDS: dict[type[ast.cmpop], str] = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
TYPING = {"cast", "TypeVar", "NewType", "ParamSpec", "overload"}


def operators() -> "Operators":
    """Return the operators of the library; raise `UsageError` with what to install where it is not there."""
    try:
        from mutmut.mutation import mutators
    except ImportError as error:
        raise UsageError(MISSING) from error
    return [
        (kind, operator)
        for kind, operator in mutators.mutation_operators
        if operator is not getattr(mutators, "operator_string", None)
    ] + [*_strings()]


def general(file: Text, lines: frozenset[int], found: "Operators") -> Iterator[Change]:
    """Yield each mutation of an expression or a statement that begins in one of the lines; nothing if it is no code."""
    import libcst
    from libcst.metadata import MetadataWrapper, PositionProvider

    try:
        wrapper = MetadataWrapper(libcst.parse_module(file.text))
    except (libcst.ParserSyntaxError, RecursionError):
        return
    module, places = wrapper.module, wrapper.resolve(PositionProvider)
    starts = [0, *itertools.accumulate(len(line) + 1 for line in file.text.split("\n"))]
    with contextlib.redirect_stdout(io.StringIO()):  # some operators print what they do not know
        for node in _worth(module, lambda node: places[node].start.line if node in places else 0, lines):
            first, last = places[node].start, places[node].end
            span = (starts[first.line - 1] + first.column, starts[last.line - 1] + last.column)
            for new in (new for kind, operator in found if isinstance(node, kind) for new in operator(node)):
                yield _change(file, module, (node, new), span, (first.line, last.line))


def _change(
    file: Text,
    module: "libcst.Module",
    nodes: tuple["libcst.CSTNode", "libcst.CSTNode"],
    span: tuple[int, int],
    lines: tuple[int, int],
) -> Change:
    """Replace a node in the text, or, where its text is not found in its place, in the tree, which takes long."""
    was, now = (module.code_for_node(each) for each in nodes)
    more = max(len(was) - (span[1] - span[0]), 0)
    begin = max(span[0] - more, 0)
    at = file.text.find(was, begin, span[1] + more)
    text = file.text[:at] + now + file.text[at + len(was) :] if at >= 0 else _rewritten(module, *nodes)
    return Change(f"{_short(was)} -> {_short(now)}", file, *lines, text)


def _rewritten(module: "libcst.Module", was: "libcst.CSTNode", now: "libcst.CSTNode") -> str:
    import libcst

    found = module.deep_replace(was, now)
    return found.code if isinstance(found, libcst.Module) else module.code


def _worth(
    node: "libcst.CSTNode", line: Callable[["libcst.CSTNode"], int], lines: frozenset[int]
) -> Iterator["libcst.CSTNode"]:
    """Yield the nodes in some lines, leaving out annotations, what is only told to people, and type checking."""
    import libcst

    if isinstance(node, libcst.Annotation) or _only_tells(node):
        return
    if line(node) in lines:
        yield node
    if isinstance(node, libcst.Raise):
        return  # the words of an exception are for people
    for child in node.children:
        yield from _worth(child, line, lines)


def _only_tells(node: "libcst.CSTNode") -> bool:
    import libcst

    if isinstance(node, libcst.Assert):
        return False
    if isinstance(node, libcst.If):
        name = node.test.attr if isinstance(node.test, libcst.Attribute) else node.test
        return isinstance(name, libcst.Name) and name.value == "TYPE_CHECKING"
    if not isinstance(node, libcst.Call):
        return False
    if isinstance(node.func, libcst.Name):
        return node.func.value in TYPING | {"print", "isinstance", "super"}
    if not isinstance(node.func, libcst.Attribute) or node.func.attr.value not in LOGS | TYPING:
        return False
    owner = node.func.value.attr if isinstance(node.func.value, libcst.Attribute) else node.func.value
    return node.func.attr.value in TYPING or (isinstance(owner, libcst.Name) and owner.value in LOGGERS)


def _strings() -> "Operators":
    """Return one change of a text in place of the library's three."""
    import libcst

    def other(node: libcst.SimpleString) -> Iterator[libcst.CSTNode]:
        found = re.fullmatch(r"([A-Za-z]*)(['\"])(.*)\2", node.value)  # texts in three quotes are for people
        if found and not found[3].startswith(found[2]):
            prefix, quote, inner = found.groups()
            yield node.with_changes(value=f"{prefix}{quote}XX{inner}XX{quote}")

    return [(libcst.SimpleString, other)]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 48 else f"{line[:45]}..."


def from_statements(place: Location, file: Text) -> Iterator[Change]:
    """Leave out each statement that does something, turn each condition round, move its bound, return nothing."""
    first, last = place.line or 1, place.last_line or 1
    for node in live_nodes(file.tree):
        if not isinstance(node, ast.expr | ast.stmt) or not (first <= node.lineno <= last):
            continue
        for what, part, text in _spoilt(node, file):
            end = part.end_lineno or part.lineno
            yield Change(what, file, part.lineno, end, file.with_parts((part, text)))


def _spoilt(node: ast.expr | ast.stmt, file: Text) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    if isinstance(node, ast.Expr) and not is_docstring(node) and not is_log(node.value):
        yield "statement left out", node, "yield" if isinstance(node.value, ast.Yield) else "pass"
    elif isinstance(node, ast.AugAssign) or (isinstance(node, ast.Assign) and _is_stored(node)):
        yield "statement left out", node, "pass"
    elif isinstance(node, ast.Raise):
        yield "exception not raised", node, "pass"
    elif isinstance(node, ast.If | ast.IfExp) and constant_truth(node.test) is None:
        yield "condition turned round", node.test, f"(not ({file.of(node.test)}))"
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in BOUNDS:
        now = f"{file.of(node.left)} {BOUNDS[type(node.ops[0])]} {file.of(node.comparators[0])}"
        yield f"{_short(file.of(node))} -> {_short(now)}", node, now
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield "returns None", node, "return None"


def _is_stored(node: ast.Assign) -> bool:
    return all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
