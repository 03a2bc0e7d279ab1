"""What syntax trees hold, walked once: the answers are kept on the nodes, which many rules ask the same of."""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from gates.code.syntax import BLOCKS, HOLDING, live_children

N = TypeVar("N")
T = TypeVar("T")
A = TypeVar("A", bound=ast.AST)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINED = (*FUNCTIONS, ast.ClassDef)
DEFINITIONS = (*DEFINED, ast.Lambda)
_MAY_BE_DEAD = HOLDING | {ast.Module, *DEFINED, ast.IfExp}  # in whose parts some may never run
_KEPT = "_gates_kept:"
_KEEPS = (*DEFINITIONS, ast.Module)  # the nodes that are walked again and again
_LEAVES = frozenset({ast.Name, ast.Constant, ast.Global, ast.Nonlocal})  # most nodes are one of these
_WITH_VALUE = frozenset({ast.Attribute, ast.keyword, ast.Expr, ast.Starred})  # and nothing else
_WITH_GAPS = frozenset({ast.Dict, ast.arguments})  # in whose lists `None` stands for what is not there
_SCALARS = frozenset({"ctx", "attr", "arg", "module", "level", "kwd_attrs", "type_comment"})
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}
_NONE: tuple[ast.AST, ...] = ()


def children(node: ast.AST) -> Sequence[ast.AST]:
    """Return the nodes directly below a node, in the order of its fields; whether a name is read or set is none."""
    kind = type(node)
    if kind in _LEAVES:
        return _NONE
    if kind in _WITH_VALUE:
        return [node.value]  # type: ignore[attr-defined]  # all of these have one
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple(name for name in kind._fields if name not in _SCALARS)
    found: list[ast.AST] = []
    own = node.__dict__
    for name in _FIELDS[kind]:
        value = own.get(name)
        if type(value) is list:
            found += value
        elif isinstance(value, ast.AST):
            found.append(value)
    return [each for each in found if each is not None] if kind in _WITH_GAPS else found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all below it, level by level."""
    yield node  # one that is kept on itself would stay for good
    yield from kept(node, _all_below) if isinstance(node, _KEEPS) else _all_below(node)


def _all_below(node: ast.AST) -> tuple[ast.AST, ...]:
    level, nodes = [node], []
    while level:
        level = [child for here in level for child in children(here)]
        nodes += level
    return tuple(nodes)


def inner(node: ast.AST, kind: type[A]) -> tuple[A, ...]:
    """Return what a node holds of a kind, the last first, but for what stands in definitions inside of it."""
    return tuple(child for child in kept(node, _all_inner) if isinstance(child, kind))


def _all_inner(node: ast.AST) -> tuple[ast.AST, ...]:
    found, stack = [], [*children(node)]
    while stack:
        child = stack.pop()
        found.append(child)
        if not isinstance(child, DEFINITIONS):
            stack += children(child)
    return tuple(found)


def kept(node: N, make: Callable[[N], T]) -> T:
    """Return what a function makes of a node, or of a class, alone; it is made once."""
    own: dict[str, T] = node.__dict__
    key = f"{_KEPT}{make.__module__}.{make.__qualname__}"
    if key not in own:
        own[key] = make(node)
    return own[key]


def text_of(node: ast.AST) -> str:
    """Return the code of a node as `ast.unparse` writes it."""
    return kept(node, ast.unparse)


def chain_of(node: ast.AST) -> str | None:
    """Return the text of `a.b.c`; `None` for anything that does not begin with a plain name."""
    if isinstance(node, ast.Attribute):
        owner = chain_of(node.value)
        return owner and f"{owner}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else None


def lines_of(node: ast.AST) -> tuple[int, int]:
    """Return the first and last line of code; a chain of calls begins at its last name, far below its first perhaps."""
    first = getattr(node, "lineno", 1)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        first = node.func.end_lineno or first
    return first, max(first, getattr(node, "end_lineno", None) or first)


def is_none(node: ast.AST | None) -> bool:
    """Return whether an expression is `None` written out."""
    return isinstance(node, ast.Constant) and node.value is None


def live_nodes_of(tree: ast.AST, parents: dict[ast.AST, ast.AST]) -> dict[type[ast.AST], list[ast.AST]]:
    """Walk what can run, without recursion: not under `if False`, not after a `return`, no unused inner function."""
    found: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        kind = type(node)
        found[kind].append(node)
        if kind in _LEAVES:
            continue
        below: Sequence[ast.AST] = live_children(node) if kind in _MAY_BE_DEAD else children(node)
        if kind in _MAY_BE_DEAD and isinstance(node, FUNCTIONS) and (unused := _unused(node)):
            below = [child for child in below if child not in unused]
        for child in below:
            parents[child] = node
        stack += below[::-1]
    return dict(found)


def _unused(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[ast.AST]:
    """Return the inner functions and lambdas of a function that nothing in it ever names."""
    if not (inner := [n for n in function.body if isinstance(n, FUNCTIONS) and not n.decorator_list]):
        return set()
    named = {n.id for n in walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return {n for n in inner if n.name not in named}


def definitions(node: ast.AST) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, ...]:
    """Return the functions and classes directly inside of a node, however deep in its blocks."""
    found, stack = [], [node]
    while stack:
        here = stack.pop()
        if here is not node and isinstance(here, DEFINED):
            found.append(here)
        else:
            stack += [child for name in BLOCKS.get(type(here), ()) for child in getattr(here, name)]
    return tuple(found)
