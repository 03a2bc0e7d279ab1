"""What a file says of the names that its functions read: constants, defaults, and those that only Python defines."""

import ast
import builtins
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gates.syntax import SourceModule

Function = ast.FunctionDef | ast.AsyncFunctionDef
# functions of Python that have no part in input and output: nobody has a reason to replace them
PURE = frozenset({
    "abs", "all", "any", "ascii", "bin", "bool", "bytearray", "bytes", "callable", "chr", "complex", "dict", "divmod",
    "enumerate", "filter", "float", "format", "frozenset", "hex", "int", "isinstance", "issubclass", "iter", "len",
    "list", "map", "max", "min", "next", "object", "oct", "ord", "pow", "range", "repr", "reversed", "round", "set",
    "slice", "sorted", "str", "sum", "tuple", "type", "zip",
})  # fmt: skip
OF_PYTHON = frozenset(dir(builtins)) | {"__file__", "__path__", "__annotations__", "__class__"}
SETTING = {"setattr", "__setattr__", "update", "__setitem__"}


@dataclass(frozen=True)
class NamedValues:
    """The constants of a file, by name, and all names that anything in it is given to, where these are `whole`."""

    literals: dict[str, str]
    bound: frozenset[str]
    whole: bool = True

    def read_by(self, function: Function) -> dict[str, object]:
        """Return what the witness of a test run is told of the names that a function reads."""
        read = _free_names(function)
        return {
            "literals": {name: text for name, text in self.literals.items() if name in read},
            "defaults": dict(_defaults(function.args)),
            "reads": sorted(read & PURE - self.bound),
            "unbound": sorted(read - self.bound - OF_PYTHON) if self.whole else [],
            "imports": sorted(set(_imported(function))),
        }


def named_values(module: SourceModule, set_elsewhere: frozenset[str]) -> NamedValues:
    """Read a file; what other files of the implementation may set has no value of its own."""
    stored = Counter(_stored(module.tree))
    names = frozenset(stored) | set_elsewhere
    literals = {
        name: text for name, text in _literals(module.tree.body) if stored[name] == 1 and name not in set_elsewhere
    }
    return NamedValues(literals, names)


def set_in(modules: Iterable[SourceModule]) -> frozenset[str]:
    """Return the names that files set on something: `other.NAME = 1`, `setattr(other, "NAME", 1)`."""
    return frozenset(name for module in modules for node in ast.walk(module.tree) for name in _set_by(node))


def makes_names(module: SourceModule) -> bool:
    """Return whether a file may set names of others that no text of it tells."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and node.attr == "__dict__":
            return True
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func).rpartition(".")[2]
        told = name != "setattr" or all(isinstance(one, ast.Constant) for one in node.args[1:2])
        if name in {"exec", "vars", "globals"} or not told:
            return True
    return False


def _imported(function: Function) -> Iterator[str]:
    """Yield the modules that a function itself imports by their full names."""
    for node in ast.walk(function):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module


def _set_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        yield node.attr
    elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in SETTING:
        words = (*node.args, *(word.value for word in node.keywords))
        yield from (one.value for one in words if isinstance(one, ast.Constant) and isinstance(one.value, str))
        yield from (word.arg for word in node.keywords if word.arg)  # such as vars(module).update(NAME=1)


def _stored(tree: ast.Module) -> Iterator[str]:
    """Yield each name that is given something in a module, once for each time, in its functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, Function | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Global):
            yield from (name for name in node.names for _ in range(2))
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name


def _literals(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for statement in body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        targets = [statement.target] if isinstance(statement, ast.AnnAssign) else targets
        text = _literal(getattr(statement, "value", None)) if targets else None
        if text and len(targets) == 1 and isinstance(targets[0], ast.Name):
            yield targets[0].id, text


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, str]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)]
    for argument, default in [*pairs, *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]:
        if text := _literal(default):
            yield argument.arg, text


def _literal(value: ast.expr | None) -> str | None:
    """Return the text of a number, a text, a truth value, None, or a tuple of such."""
    if value is None or any(isinstance(node, ast.List | ast.Dict | ast.Set | ast.Call) for node in ast.walk(value)):
        return None
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return ast.unparse(value)


def _free_names(function: Function) -> frozenset[str]:
    nodes = [node for statement in function.body for node in ast.walk(statement)]
    loaded = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    own = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    own |= {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    return frozenset(loaded - own)
