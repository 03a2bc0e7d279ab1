"""The functions of a file, each with the lines that run only when it is called."""

import ast
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from gates.code.stub import is_hollow, last_name
from gates.code.syntax import SourceModule, live_statements, origin
from gates.evidence.lines.compilers import compiles, compiling_modules

Function = ast.FunctionDef | ast.AsyncFunctionDef
UNSEEN = (ast.Global, ast.Nonlocal, ast.Try, ast.TryStar)  # nothing of their own is run


@dataclass(frozen=True)
class Body:
    """A function and its own lines, from the first statement after the docstring to the last.

    `head` is the first line of its definition, that of its first decorator if it has any.
    `public` says whether no name on the way to it starts with one underscore, `promise` whether it has nothing to run
    (`...`, `raise NotImplementedError`, an overload, an abstract method or one of a protocol), `told` whether its lines
    can be told from that of its `def` and run as Python, `compiled` whether a decorator makes something else of them,
    `cached` whether a decorator may answer in its place. `signature` is the last line that runs where it is defined,
    `hollow` whether there is nothing in it at all, `steps` the first and last line of each statement that a call runs.
    """

    name: str
    head: int
    line: int
    first: int
    last: int
    public: bool
    promise: bool
    told: bool
    cached: bool
    compiled: bool
    signature: int
    hollow: bool
    steps: tuple[tuple[int, int], ...] = ()


def functions_of(
    module: SourceModule, exported: AbstractSet[tuple[str, str]] = frozenset(), compiling: Iterable[str] | None = None
) -> list[Body]:
    """Return the functions of a file that can come to life, those inside of others too.

    Of a private module only what a package exports is public. `compiling` are the files that use what compiles.
    """
    known = compiling_modules([module]) if compiling is None else compiling
    compiled = frozenset(
        node.lineno for node in ast.walk(module.tree)
        if isinstance(node, Function) and any(compiles(part, module, known) for part in node.decorator_list)
    )  # fmt: skip
    found = _in(module.tree.body, "", public=True, promise=False)
    bodies = [*(_compiled(body) if body.line in compiled else body for body in found), *_lambdas(module.tree.body, "")]
    if not _is_private_path(module.path):
        return bodies
    own = _dotted(module.path)
    given = {name for origin, name in exported if own == origin or own.endswith(f".{origin}")}
    return [replace(body, public=body.public and body.name.split(".")[0] in given) for body in bodies]


def exports_of(module: SourceModule) -> set[tuple[str, str]]:
    """Return what a public package takes from elsewhere to give it on: the dotted name of the module, and the name."""
    if not module.path.endswith("__init__.py") or _is_private_path(module.path):
        return set()
    taken = (node for node in live_statements(module.tree.body) if isinstance(node, ast.ImportFrom))
    package = _dotted(module.path)
    return {(origin(node, package), alias.name) for node in taken for alias in node.names}


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
        cached=any("cache" in name for name in decorators),
        compiled=False,
        signature=signature,
        hollow=hollow,
        steps=steps_of(node),
    )


def _compiled(body: Body) -> Body:
    return replace(body, told=False, compiled=True)


def _lambdas(statements: list[ast.stmt], owner: str) -> Iterator[Body]:
    """Yield the functions that modules and classes make without a `def`: `half = lambda x: x / 2`."""
    for node in live_statements(statements):
        if isinstance(node, ast.ClassDef):
            yield from _lambdas(node.body, f"{owner}{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Lambda):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            yield _lambda(node, node.value, owner + ast.unparse(target))


def _lambda(node: ast.Assign | ast.AnnAssign, made: ast.Lambda, name: str) -> Body:
    last = made.end_lineno or node.lineno
    signature = max([made.lineno, *(getattr(part, "end_lineno", 0) or 0 for part in ast.walk(made.args))])
    return Body(
        name=name, head=node.lineno, line=node.lineno, first=made.body.lineno, last=last, public=False, promise=False,
        told=False, cached=False, compiled=False, signature=signature, hollow=False,
        steps=((made.body.lineno, last),),
    )  # fmt: skip


def _first_line(node: ast.stmt) -> int:
    decorators = node.decorator_list if isinstance(node, Function | ast.ClassDef) else []
    return min([node.lineno, *(part.lineno for part in decorators)])


def is_private(name: str) -> bool:
    """Return whether a name is for its own project alone, such as `_step`; `__call__` is not."""
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def _is_private_path(path: str) -> bool:
    return any(is_private(part) for part in path.removesuffix(".py").split("/"))


def _is_protocol(node: ast.ClassDef) -> bool:
    return any(last_name(base) == "Protocol" for base in node.bases)


def _dotted(path: str) -> str:
    """Return the dotted name of a file from the project's root on."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def steps_of(node: Function) -> tuple[tuple[int, int], ...]:
    """Return the first and last line of each live statement, of a compound one its head; the first that is on a line.

    What stands in a function inside of this one is a matter of that one.
    """
    found: dict[int, tuple[int, int]] = {}
    for first, last in _spans(node.body):
        found.setdefault(first, (first, last))
    return tuple(found[first] for first in sorted(found))


def _spans(statements: list[ast.stmt]) -> Iterator[tuple[int, int]]:
    for node in live_statements(statements):
        if isinstance(node, UNSEEN) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            continue
        if isinstance(node, ast.AnnAssign) and node.value is None:
            continue
        first, last = node.lineno, node.end_lineno or node.lineno
        inside = [*getattr(node, "body", ()), *getattr(node, "cases", ())]
        if inside:
            begins = min(getattr(part, "lineno", None) or part.pattern.lineno for part in inside)
            last = max(first, begins - 1)
        yield first, last


def as_text(steps: tuple[tuple[int, int], ...]) -> str:
    """Return steps as short text: `2,3-5` is one in line 2 and one in lines 3 to 5."""
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in steps)


def as_steps(text: str) -> tuple[tuple[int, int], ...]:
    """Return steps from their text."""
    rows = (part.partition("-") for part in text.split(",") if part)
    return tuple((int(first), int(last or first)) for first, _, last in rows)
