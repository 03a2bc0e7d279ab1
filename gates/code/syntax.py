"""Python source as a tree: names resolved through imports, live code only."""

import ast
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from gates.words import place_in

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
Choice = ast.If | ast.While | ast.IfExp  # made once: a union that is written out is made anew each time
HOLDING: frozenset[type[ast.AST]] = frozenset(
    {ast.If, ast.Try, ast.TryStar, ast.With, ast.AsyncWith, ast.For, ast.AsyncFor, ast.While, ast.Match}
    | {ast.ExceptHandler, ast.match_case}
)
_BLOCKS: tuple[type[ast.AST], ...] = (*HOLDING, ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
BLOCKS = {  # the lists of statements of what holds some
    kind: tuple(name for name in ("body", "handlers", "orelse", "finalbody", "cases") if name in kind._fields)
    for kind in _BLOCKS
}
STATED = ast.stmt | ast.ExceptHandler | ast.match_case
MAY_LEAVE = frozenset(  # a `with` may swallow what its body raises
    {ast.Return, ast.Raise, ast.Break, ast.Continue, ast.Assert, ast.Expr, ast.If, ast.Try, ast.TryStar, ast.Match}
    | {ast.While}
)
MAX_BYTES = 2 * 1024 * 1024
DEEPEST = 400  # statements within statements, each `elif` one more
NAMED_TRUTHS = {"TYPE_CHECKING": False, "__debug__": True}
OPEN_TESTS = frozenset({ast.Call, ast.Compare, ast.Subscript})  # of which nothing is known: most conditions are these
ENDS_PROCESS = frozenset({"sys.exit", "os._exit", "os.abort"})


@dataclass(frozen=True)
class SourceModule:
    """One parsed file: its path relative to the project, its tree, and what its imports are called in full."""

    path: str
    tree: ast.Module
    aliases: dict[str, str] = field(default_factory=dict)

    def dotted(self, node: ast.expr) -> str | None:
        """Return the full dotted name of `a.b.c`, imports resolved; `None` for anything else."""
        if isinstance(node, ast.Attribute):
            owner = self.dotted(node.value)
            return owner and f"{owner}.{node.attr}"
        return self.aliases.get(node.id, node.id) if isinstance(node, ast.Name) else None


def content(path: Path) -> bytes | str:
    """Return the bytes of a file, or as text the reason why there are none."""
    try:
        size = os.stat(path).st_size  # noqa: PTH116  # called for every file
        return path.read_bytes() if size <= MAX_BYTES else f"{size} bytes, more than {MAX_BYTES}: not read"
    except OSError as error:
        return error.strerror or str(error)


class Unparsed(Exception):
    """A file that cannot be read as Python, and why; it is never taken for clean."""


def parse(text: bytes, path: str, package: str) -> SourceModule:
    """Parse a module; raise `Unparsed` with the place and the reason."""
    try:
        if not (text.isascii() or b"coding" in text[:200]):  # a file may say that it is another
            text.decode()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the compiler warns of is no concern here
            tree = ast.parse(text, filename=path)
        return SourceModule(path, tree, dict(pair for node in blocks(tree) for pair in imported(node, package)))
    except UnicodeDecodeError as error:
        raise Unparsed(f"{path}:{place_in(error)}: it is not UTF-8") from error
    except SyntaxError as error:
        column = f":{error.offset}" if error.lineno and error.offset else ""
        raise Unparsed(f"{path}:{error.lineno or 1}{column}: {error.msg}") from error
    except RecursionError as error:
        raise Unparsed(f"{path}:1: nested too deeply to be read") from error
    except (ValueError, MemoryError) as error:
        raise Unparsed(f"{path}:1: {error or type(error).__name__}") from error


def live_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that can run, those of `if`, `try` and `with` blocks too, definitions unopened."""
    left: list[ast.AST] = [*reversed([*_until_dead(body)])]
    while left:  # no recursion: each `elif` stands in the one before it
        node = left.pop()
        if isinstance(node, ast.stmt):
            yield node
        if type(node) in HOLDING:
            left.extend(each for each in reversed(live_children(node)) if isinstance(each, STATED))


def live_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield every node that can run: not under `if False`, not after a `return` or an endless loop."""
    left = [node]
    while left:  # no recursion: a sum of a thousand terms is a thousand deep
        node = left.pop()
        yield node
        left.extend(reversed(live_children(node)))


def live_children(node: ast.AST) -> list[ast.AST]:
    """Return the nodes directly below a node that can run."""
    dead = _dead_fields(node)
    held: list[ast.AST] = []
    for name in node._fields:
        value = None if name in dead else getattr(node, name, None)
        if isinstance(value, list):
            held.extend(_until_dead(value, isinstance(node.op, ast.Or) if isinstance(node, ast.BoolOp) else None))
        elif isinstance(value, ast.AST):
            held.append(value)
    return held


def first_line(node: ast.stmt) -> int:
    """Return the line that a statement begins in, its decorators with it."""
    above: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(part.lineno for part in above)])


def _dead_fields(node: ast.AST) -> set[str]:
    """Return the parts of a node that its own constant condition keeps from running."""
    if isinstance(node, Comprehension):
        empty = any(constant_truth(part) is False for each in node.generators for part in (each.iter, *each.ifs))
        return {"elt", "key", "value"} if empty else set()
    if not isinstance(node, Choice):
        return {"body"} if isinstance(node, ast.For) and _never_loops(node.iter) else set()
    truth = constant_truth(node.test)
    return set() if truth is None else {"orelse" if truth else "body"}


def _until_dead(items: Iterable[object], decided: bool | None = None) -> Iterator[ast.AST]:
    """Yield the items of a list up to the one after which nothing runs: of `and` and `or`, one that is `decided`."""
    for item in items:
        if not isinstance(item, ast.AST):
            continue
        yield item
        if type(item) in MAY_LEAVE and leaves(item):  # type: ignore[arg-type]  # a statement
            return
        if decided is not None and isinstance(item, ast.expr) and constant_truth(item) is decided:
            return


def leaves(node: ast.stmt) -> bool:
    """Return whether nothing after a statement of the same block can run."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name))):
            return f"{owner}.{name}" in ENDS_PROCESS
        case ast.Return() | ast.Raise() | ast.Break() | ast.Continue():
            return True
        case ast.Assert():
            return constant_truth(node.test) is False
        case ast.If():
            return _all_branches_leave(node)
        case ast.Try() | ast.TryStar():
            goes = _any_leaves(node.body) or _any_leaves(node.orelse)
            return _any_leaves(node.finalbody) or (goes and all(_any_leaves(handler.body) for handler in node.handlers))
        case ast.Match(cases=[*_, ast.match_case(guard=None, pattern=ast.MatchAs(pattern=None))]):
            return all(_any_leaves(case.body) for case in node.cases)
        case ast.While() if constant_truth(node.test) is True:
            return not any(isinstance(inner, ast.Break) for inner in ast.walk(node))
    return False


def _all_branches_leave(node: ast.If) -> bool:
    while True:
        if (truth := constant_truth(node.test)) is True:
            return _any_leaves(node.body)
        if truth is None and not _any_leaves(node.body):
            return False
        if len(node.orelse) != 1 or not isinstance(node.orelse[0], ast.If):
            return _any_leaves(node.orelse)
        node = node.orelse[0]


def _any_leaves(body: list[ast.stmt]) -> bool:
    return any(type(node) in MAY_LEAVE and leaves(node) for node in reversed(body))  # it is mostly the last that does


def constant_truth(test: ast.expr) -> bool | None:
    """Return what a condition always is, or `None`; `TYPE_CHECKING` is never true at run time."""
    if type(test) in OPEN_TESTS:
        return None
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return None if (inner := constant_truth(test.operand)) is None else not inner
    if isinstance(test, ast.BoolOp):
        truths = [constant_truth(value) for value in test.values]
        decided = isinstance(test.op, ast.Or)
        return decided if decided in truths else None if None in truths else not decided
    if isinstance(test, ast.Dict):
        return None if test.keys else False
    if isinstance(test, ast.Tuple | ast.List):
        return None if test.elts else False
    name = test.id if isinstance(test, ast.Name) else test.attr if isinstance(test, ast.Attribute) else ""
    return NAMED_TRUTHS.get(name)


def _never_loops(over: ast.expr) -> bool:
    """Return whether a loop is over nothing: `for _ in ():`, `for _ in range(0):`."""
    if isinstance(over, ast.Call):
        return bool(over.args) and ast.unparse(over) == "range(0)"
    return constant_truth(over) is False


def blocks(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements of a file or function, and what holds some, level by level; expressions hold none."""
    level: list[ast.AST] = [tree]
    for _ in range(DEEPEST + 1):
        yield from level
        level = [child for node in level for name in BLOCKS.get(type(node), ()) for child in getattr(node, name)]
        if not level:
            return
    raise RecursionError("nested too deeply to be read")


def imported(node: ast.AST, package: str) -> Iterator[tuple[str, str]]:
    """Yield each name that an import gives, with what that is called in full."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            short = alias.asname or alias.name.split(".")[0]
            yield short, alias.name if alias.asname else short
    elif isinstance(node, ast.ImportFrom):
        yield from ((alias.asname or alias.name, f"{origin(node, package)}.{alias.name}") for alias in node.names)


def origin(node: ast.ImportFrom, package: str) -> str:
    """Return the absolute name of the module that a `from` import names."""
    if not node.level:
        return node.module or ""
    parts = package.split(".") if package else []
    return ".".join([*parts[: len(parts) - (node.level - 1)], *([node.module] if node.module else [])])


def defined(tree: ast.Module) -> Iterator[tuple[str, Definition]]:
    """Yield the functions and classes of a module and what its classes define, each by its name there."""
    for node in tree.body:
        if isinstance(node, Definition):
            yield node.name, node
        if isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{one.name}", one) for one in node.body if isinstance(one, Definition))


def parsed_definitions(content: bytes) -> list[tuple[str, Definition]]:
    """Return the functions and classes of a file, each by its name there; none of what is no Python."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return [*defined(ast.parse(content))]
    return []


def texts(content: bytes) -> dict[str, str]:
    """Return what each function and class of a file says, by its name there."""
    return {name: ast.dump(node) for name, node in parsed_definitions(content)}
