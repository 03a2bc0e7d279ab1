"""Definitions that stand for nothing: what has only a name, a text, or a refusal is no implementation."""

import ast
from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef
# These change how a function is seen or run, never what it does: under any other decorator a body may be elsewhere.
ABSTRACT = {"abstractmethod", "abstractproperty", "abstractclassmethod", "abstractstaticmethod"}
_PLAIN = (
    "staticmethod classmethod property cached_property cache lru_cache override final typechecked deprecated "
    "no_grad inference_mode enable_grad autocast compile jit script wraps runtime_checkable dataclass"
)
PLAIN = ABSTRACT | {*_PLAIN.split()}
EMPTY_BASES = {"object", "ABC", "Protocol", "Generic"}


def is_hollow(node: Function | ast.ClassDef) -> bool:
    """Return whether a definition is only a promise: an `@overload`, or a body that is nothing but a refusal."""
    names = {last_name(part) for part in node.decorator_list}
    if "overload" in names:
        return True
    if "abstractmethod" in names or isinstance(node, ast.ClassDef):
        return False
    return _refuses(list(_told(node.body)))


def is_stub(node: ast.stmt) -> bool:
    """Return whether a definition implements nothing: `pass`, `...`, a text, a refusal or `return None` alone.

    A class is one where it extends nothing and holds nothing but such; what an unknown decorator is put on is none.
    """
    if isinstance(node, Function):
        return is_plain(node) and _does_nothing(list(_told(node.body)))
    if isinstance(node, ast.ClassDef):
        bare = all(last_name(base) in EMPTY_BASES for base in node.bases) and not _keywords(node)
        return is_plain(node) and bare and all(map(is_stub, _members(node)))
    return False


def refuses(node: ast.stmt) -> bool:
    """Return whether a definition, or a method of it that is not abstract, says by an error that it is not there."""
    if isinstance(node, ast.ClassDef):
        return any(map(refuses, node.body))
    names = {last_name(part) for part in node.decorator_list} if isinstance(node, Function) else set()
    return isinstance(node, Function) and not names & ABSTRACT and _refuses(list(_told(node.body)))


def is_overload(node: ast.stmt) -> bool:
    """Return whether a definition only tells the types of another one of its name."""
    return isinstance(node, Function) and any(last_name(part) == "overload" for part in node.decorator_list)


def is_accessor(node: ast.stmt) -> bool:
    """Return whether a definition is the setter or deleter of a property of its name, which keeps its getter."""
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(part, ast.Attribute) and part.attr in {"setter", "deleter"} and last_name(part.value) == node.name
        for part in node.decorator_list
    )


def stands_for_nothing(value: ast.expr) -> bool:
    """Return whether an expression is `None`, or a function of one that does nothing: `lambda x: None`."""
    if isinstance(value, ast.Lambda):
        return stands_for_nothing(value.body)
    return isinstance(value, ast.Constant) and (value.value is None or value.value is Ellipsis)


def _told(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that are neither a text, nor `...`, nor `pass`."""
    for node in body:
        if isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            continue
        yield node


def _does_nothing(rest: list[ast.stmt]) -> bool:
    if not rest or _refuses(rest):
        return True
    only = rest[0]
    return isinstance(only, ast.Return) and (only.value is None or stands_for_nothing(only.value))


def _refuses(rest: list[ast.stmt]) -> bool:
    if len(rest) != 1 or not isinstance(rest[0], ast.Raise) or rest[0].exc is None:
        return False
    raised = rest[0].exc.func if isinstance(rest[0].exc, ast.Call) else rest[0].exc
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"


def _members(node: ast.ClassDef) -> Iterator[ast.stmt]:
    """Yield what a class holds; a name with a type and no value is something only where a decorator makes it so."""
    for inner in _told(node.body):
        if not isinstance(inner, ast.AnnAssign) or inner.value is not None or node.decorator_list:
            yield inner


def _keywords(node: ast.ClassDef) -> list[ast.keyword]:
    return [word for word in node.keywords if not (word.arg == "metaclass" and last_name(word.value) == "ABCMeta")]


def is_plain(node: Function | ast.ClassDef) -> bool:
    """Return whether no decorator may make of a definition something else than what is written."""
    return all(last_name(part) in PLAIN for part in node.decorator_list)


def last_name(node: ast.expr) -> str:
    """Return the last name of a decorator or base: `c` for `a.b.c`, `a.b.c[T]` and `a.b.c(...)`."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
