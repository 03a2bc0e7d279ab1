"""How functions can be called, and how calls call: what tells that a call cannot run a function of the same name."""

import ast

from gates.scan.program.module import Function, tail_of
from gates.scan.program.nodes import kept

Shape = tuple[int, frozenset[str]]
SAME_SIGNATURE = frozenset(
    {"abstractmethod", "cache", "cached_property", "classmethod", "contextmanager", "asynccontextmanager", "final"}
    | {"lru_cache", "no_grad", "enable_grad", "inference_mode", "override", "property", "staticmethod"}
)  # decorators that leave open what a function is passed


def parameters(function: Function | ast.Lambda) -> dict[str, ast.expr | None]:
    """Return the parameters of a function with their defaults, those that have a place first."""
    names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
    found: dict[str, ast.expr | None] = dict.fromkeys(names)
    found |= dict(zip(reversed(names), reversed(function.args.defaults), strict=False))
    return found | {a.arg: d for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)}


def shape_of(call: ast.Call) -> Shape:
    """Return how many arguments a call has, and those by name; -1 and "" where some are not written out."""
    count = -1 if any(isinstance(arg, ast.Starred) for arg in call.args) else len(call.args)
    return count, frozenset(keyword.arg or "" for keyword in call.keywords)


def accepts(function: Function, shape: Shape, *, bound: bool) -> bool:
    """Return whether a function can be called so: `bound` where its instance is passed beside."""
    least, most, names, required = kept(function, _signature)
    count, given = shape
    skipped = int(bound and not any(tail_of(d) == "staticmethod" for d in function.decorator_list))
    if count + skipped > most or (names is not None and not given - {""} <= names):
        return False
    if count < 0 or "" in given:
        return True
    return count + skipped + len(given) >= least and required <= given


def _signature(function: Function) -> tuple[int, float, frozenset[str] | None, frozenset[str]]:
    """Return how many arguments a function takes, the names that these may have, and those that must be named."""
    arguments = function.args
    if any(tail_of(d.func if isinstance(d, ast.Call) else d) not in SAME_SIGNATURE for d in function.decorator_list):
        return 0, float("inf"), None, frozenset()
    places = [arg.arg for arg in (*arguments.posonlyargs, *arguments.args)]
    named = [arg.arg for arg in arguments.kwonlyargs]
    required = {n for n, d in zip(named, arguments.kw_defaults, strict=True) if d is None}
    most = float("inf") if arguments.vararg else len(places)
    names = frozenset((*places, *named)) if arguments.kwarg is None else None
    return len(places) - len(arguments.defaults) + len(required), most, names, frozenset(required)
