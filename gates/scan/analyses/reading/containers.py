"""What may be taken out of a container: of one that is written out, and of what a call of a library returns."""

import ast
from collections.abc import Iterator

from gates.scan.program.module import tail_of
from gates.scan.program.scope import Scope

Path = tuple[int | None, ...]
Way = tuple[ast.expr, Scope, Path]
HOLDS = frozenset(
    {"list", "tuple", "sorted", "reversed", "iter", "set", "deque", "tqdm", "track", "ModuleList", "copy"}
)


def element(node: ast.expr, scope: Scope, path: Path) -> Iterator[Way]:
    """Yield what may be taken out of a container that is written out."""
    at, rest = path[0], path[1:]
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        if at is not None:
            known = node.elts[: at + 1]  # what stands after a starred part is at no known place
            yield from (
                (part, scope, rest) for part in known[at:] if not any(isinstance(p, ast.Starred) for p in known)
            )
        else:
            yield from ((part, scope, path if isinstance(part, ast.Starred) else rest) for part in node.elts)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            yield value, scope, path if key is None else rest
    elif isinstance(node, ast.DictComp):
        yield node.value, scope, rest
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
        yield node.elt, scope, rest
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.BitOr):
        yield from ((part, scope, path) for part in (node.left, node.right))


def taken_from(node: ast.Call, tail: str, scope: Scope, path: Path) -> Iterator[Way]:
    """Yield what may be taken out of what a call returns."""
    at = path[1] if len(path) > 1 else None
    if isinstance(node.func, ast.Attribute) and tail in {"values", "items", "copy"}:
        if tail != "items":
            yield node.func.value, scope, path
        elif at == 1:
            yield node.func.value, scope, (None, *path[2:])
    elif tail == "enumerate" and node.args and at == 1:
        yield node.args[0], scope, (None, *path[2:])
    elif tail == "zip" and at is not None:
        yield from ((arg, scope, (None, *path[2:])) for arg in node.args[at : at + 1])
    elif tail == "defaultdict" and node.args:
        yield ast.Call(node.args[0], [], []), scope, path[1:]
    elif tail in {"dict", "ModuleDict", "OrderedDict"} and node.keywords:
        yield from ((more.value, scope, path[1:] if more.arg else path) for more in node.keywords)
    elif tail in HOLDS and node.args:
        yield node.args[0], scope, path


def places_in(target: ast.expr, name: str) -> Iterator[Path]:
    """Yield where in a target a name stands."""
    if isinstance(target, ast.Name) and target.id == name:
        yield ()
    elif isinstance(target, ast.Tuple | ast.List):
        for at, part in enumerate(target.elts):
            yield from ((at, *rest) for rest in places_in(part, name))


def is_same(one: ast.expr, other: ast.expr) -> bool:
    """Return whether two expressions name the same variable, or the same attribute of an instance."""
    return type(one) is type(other) and isinstance(one, ast.Name | ast.Attribute) and tail_of(one) == tail_of(other)
