"""The functions of a file, each with the lines that run only when it is called."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gates.code.stub import is_hollow, last_name
from gates.code.syntax import SourceModule, live_statements

Function = ast.FunctionDef | ast.AsyncFunctionDef
# decorators under which a call runs the lines of the body; any other may answer in its place, or compile it
PLAIN = {
    "staticmethod",
    "classmethod",
    "property",
    "setter",
    "getter",
    "deleter",
    "abstractmethod",
    "override",
    "final",
}
MANAGING = {"no_grad", "inference_mode", "enable_grad", "autocast", "contextmanager", "asynccontextmanager", "wraps"}


@dataclass(frozen=True)
class Body:
    """A function and its own lines, from the first statement after the docstring to the last.

    `head` is the first line of its definition, that of its first decorator if it has any.
    `public` says whether no name on the way to it starts with one underscore, `promise` whether it has nothing to run
    (`...`, `raise NotImplementedError`, an overload, an abstract method or one of a protocol), `wrapped` whether a
    decorator may answer in its place.
    """

    name: str
    head: int
    line: int
    first: int
    last: int
    public: bool
    promise: bool
    wrapped: bool


def functions_of(module: SourceModule) -> list[Body]:
    """Return the functions of a file that can come to life, those inside of others too."""
    return [*_in(module.tree.body, "", public=True, promise=False)]


def _in(statements: list[ast.stmt], owner: str, *, public: bool, promise: bool) -> Iterator[Body]:
    for node in live_statements(statements):
        if isinstance(node, ast.ClassDef):
            seen, protocol = public and not is_private(node.name), "Protocol" in map(last_name, node.bases)
            yield from _in(node.body, f"{owner}{node.name}.", public=seen, promise=protocol)
        elif isinstance(node, Function):
            yield _body(node, owner, public=public, promise=promise)
            yield from _in(node.body, f"{owner}{node.name}.", public=False, promise=False)


def _body(node: Function, owner: str, *, public: bool, promise: bool) -> Body:
    rest = [part for part in node.body if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))]
    decorators = {name for part in node.decorator_list if (name := last_name(part))}
    hollow = not rest or is_hollow(node)
    return Body(
        name=owner + node.name,
        head=_first_line(node),
        line=node.lineno,
        first=min((_first_line(part) for part in rest), default=node.end_lineno or node.lineno),
        last=node.end_lineno or node.lineno,
        public=public and not is_private(node.name),
        promise=promise or hollow or any("abstract" in name for name in decorators),
        wrapped=not decorators <= PLAIN | MANAGING,
    )


def _first_line(node: ast.stmt) -> int:
    decorators = node.decorator_list if isinstance(node, Function | ast.ClassDef) else []
    return min([node.lineno, *(part.lineno for part in decorators)])


def is_private(name: str) -> bool:
    """Return whether a name is for its own project alone, such as `_step`; `__call__` is not."""
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))
