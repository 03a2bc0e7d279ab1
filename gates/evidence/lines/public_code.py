"""The functions of a file, each with the lines that run only when it is called."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gates.code.stub import is_hollow, last_name
from gates.code.syntax import SourceModule, live_statements

Function = ast.FunctionDef | ast.AsyncFunctionDef
# decorators under which a call runs the lines of the body; any other may answer in its place, or compile it
RUNS_IT = {
    "staticmethod", "classmethod", "property", "setter", "getter", "deleter", "abstractmethod", "override", "final",
    "no_grad", "inference_mode", "enable_grad", "autocast", "contextmanager", "asynccontextmanager", "wraps",
}  # fmt: skip


@dataclass(frozen=True)
class Body:
    """A function and its own lines, from the first statement after the docstring to the last.

    `head` is the first line of its definition, that of its first decorator if it has any.
    `public` says whether no name on the way to it starts with one underscore, `promise` whether it has nothing to run
    (`...`, `raise NotImplementedError`, an overload, an abstract method or one of a protocol), `told` whether its lines
    can be told from that of its `def`, `wrapped` whether a decorator may answer in its place, `hollow` whether there is
    nothing in it at all.
    """

    name: str
    head: int
    line: int
    first: int
    last: int
    public: bool
    promise: bool
    told: bool
    wrapped: bool
    hollow: bool


def functions_of(module: SourceModule) -> list[Body]:
    """Return the functions of a file that can come to life, those inside of others too."""
    return [*_in(module.tree.body, "", public=True, promise=False), *_lambdas(module.tree.body, "")]


def innermost(bodies: list[Body], line: int) -> Body | None:
    """Return the function that a line belongs to."""
    around = [body for body in bodies if body.first <= line <= body.last]
    return max(around, key=lambda body: body.first, default=None)


def _in(statements: list[ast.stmt], owner: str, *, public: bool, promise: bool) -> Iterator[Body]:
    for node in live_statements(statements):
        if isinstance(node, ast.ClassDef):
            seen = public and not is_private(node.name)
            yield from _in(node.body, f"{owner}{node.name}.", public=seen, promise=_is_protocol(node))
        elif isinstance(node, Function):
            yield _body(node, owner, public=public, promise=promise)
            yield from _in(node.body, f"{owner}{node.name}.", public=False, promise=False)


def _body(node: Function, owner: str, *, public: bool, promise: bool) -> Body:
    rest = [part for part in node.body if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))]
    first = min((_first_line(part) for part in rest), default=node.end_lineno or node.lineno)
    head = [node.args, *node.decorator_list, *([node.returns] if node.returns else [])]
    signature = max([node.lineno, *(getattr(part, "end_lineno", 0) or 0 for top in head for part in ast.walk(top))])
    decorators = {name for part in node.decorator_list if (name := last_name(part))}
    hollow = not rest or is_hollow(node)
    return Body(
        name=owner + node.name,
        head=_first_line(node),
        line=node.lineno,
        first=first,
        last=node.end_lineno or node.lineno,
        public=public and not is_private(node.name),
        promise=promise or hollow or any("abstract" in name for name in decorators),
        told=first > signature,
        wrapped=not decorators <= RUNS_IT,
        hollow=hollow,
    )


def _lambdas(statements: list[ast.stmt], owner: str) -> Iterator[Body]:
    """Yield the functions that modules and classes make without a `def`: `half = lambda x: x / 2`."""
    for node in live_statements(statements):
        if isinstance(node, ast.ClassDef):
            yield from _lambdas(node.body, f"{owner}{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Lambda):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            yield _lambda(node, node.value, owner + ast.unparse(target))


def _lambda(node: ast.Assign | ast.AnnAssign, made: ast.Lambda, name: str) -> Body:
    return Body(
        name=name, head=node.lineno, line=node.lineno, first=made.body.lineno, last=made.end_lineno or node.lineno,
        public=False, promise=False, told=False, wrapped=False, hollow=False,
    )  # fmt: skip


def _first_line(node: ast.stmt) -> int:
    decorators = node.decorator_list if isinstance(node, Function | ast.ClassDef) else []
    return min([node.lineno, *(part.lineno for part in decorators)])


def is_private(name: str) -> bool:
    """Return whether a name is for its own project alone, such as `_step`; `__call__` is not."""
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def _is_protocol(node: ast.ClassDef) -> bool:
    return any(last_name(base) == "Protocol" for base in node.bases)
