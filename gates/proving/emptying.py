"""Functions without their bodies: extreme mutation, after Niedermayr, Juergens and Wagner (2016).

Code that can be emptied without a test failing is pseudo-tested. A constant or a class of fields has other values.
"""

import ast
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock

from gates.child.trying.keeping import MARK
from gates.child.trying.values import KINDS
from gates.code.meanings import decorators_of, does_nothing, is_stub, last_name
from gates.code.syntax import first_line
from gates.model import Location
from gates.proving.source import Parts, Text, exchanged, is_docstring
from gates.scan.program.nodes import inner, is_none

Function = ast.FunctionDef | ast.AsyncFunctionDef
MAKES = frozenset({"__init__", "__new__", "__post_init__", "__init_subclass__", "__set_name__"})
NO_BODY = frozenset({"overload", "abstractmethod"})
MAKING = frozenset({"partial", "compile", "script", "trace", "jit", "vmap", "grad", "capture"})
MANAGERS = frozenset({"contextmanager", "asynccontextmanager"})
# whether a module of the implementation, which has its places in the project, is being imported by a caller
IMPORTING = (
    "(lambda frame, own, file, places: any("
    'f.f_code.co_name == "<module>" and f.f_globals.get("__name__") != "__main__" '
    "and f.f_code.co_filename.startswith((own, *(own.removesuffix(file) + place for place in places))) "
    'for f, _ in __import__("traceback").walk_stack(frame)))'
    '(__import__("sys")._getframe(), __import__("sys")._getframe().f_code.co_filename, {file!r}, {places!r})'
)
VALUES = '__import__("gates_probe.trying.values").trying.values'
REFUSED = 'raise RuntimeError("taken away to see who calls it")'
MARKING = f'__import__("os").close(__import__("os").open({MARK!r}, {os.O_CREAT | os.O_WRONLY}, 0o600))'


def guard(file: Text, implementation: Iterable[str], root: Path) -> str:
    """Return the condition under which a function is emptied: no module of the implementation is being imported."""
    named = (os.path.normpath(path) for path in implementation)
    places = ["" if path == "." else f"{path}{os.sep}" if (root / path).is_dir() else path for path in named]
    return f"if not {IMPORTING.format(file=file.path, places=(*places,))}: "


PARSING = Lock()


def stubs(ends: Mapping[Function, str], unless: str) -> Parts:
    """Return functions that leave a mark when they are called and end with a statement, unless something keeps them."""
    made = dict[ast.AST, ast.AST]()
    for each, end in ends.items():
        first = int(is_docstring(each.body[0]) and len(each.body) > 1)
        with PARSING:  # Python 3.11 loses count where two threads make trees
            head = ast.parse(f"{unless}{MARKING}; {end}").body
        made[each] = exchanged(each, body=[*each.body[:first], *head, *each.body[first:]])
    return made


def _end(file: Text, function: Function, turn: int) -> str:
    """Return how an emptied function ends: it yields, or returns the kind that its annotation names or a test heard."""
    if decorators_of(function) & MANAGERS:
        return "yield; return"
    if _yields(function):
        return "yield ...; return" if turn else "return"
    if is_heard(function):
        return f"return {VALUES}.another({key_of(file, function)!r}, {turn})"
    return f"return {KINDS[_annotated(function)][turn]}" if gives(function) else "return None"


def key_of(file: Text, function: Function) -> str:
    """Return what tells a function from all others."""
    return f"{file.path}:{first_line(function)}"


def is_heard(function: Function) -> bool:
    """Return whether the kind of what a function gives back is heard while a test runs it: nothing else tells it."""
    return gives(function) and _annotated(function) not in KINDS


def _annotated(function: Function) -> str:
    return last_name(function.returns) if function.returns else ""


def gives(function: Function) -> bool:
    """Return whether a function gives its callers something that may be another, and goes on when it is called."""
    given = [node.value for node in inner(function, ast.Return) if node.value is not None]
    return not _yields(function) and not all(map(is_none, given))


def _yields(function: Function) -> bool:
    return bool(inner(function, ast.Yield) or inner(function, ast.YieldFrom))


def is_called_anew(function: Function) -> bool:
    """Return whether all that a function does is done by calls of it: no cache answers, nothing it makes goes on."""
    making = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Yield, ast.YieldFrom)
    nodes = [node for statement in function.body for node in ast.walk(statement)]
    if function.decorator_list or isinstance(function, ast.AsyncFunctionDef) or function.name in MAKES:
        return False
    given = [node.value for node in nodes if isinstance(node, ast.Return) and isinstance(node.value, ast.Call)]
    callable_ = any(name[:1].isupper() or name in MAKING for name in map(last_name, given))  # an object, a partial
    return not callable_ and not any(isinstance(node, making) for node in nodes)


def makes_unseen(file: Text, place: Location, name: str) -> bool:
    """Return whether a symbol is a class that has nothing of its own which makes its objects."""
    found = [node for node in defined(file.tree, place, name) if isinstance(node, ast.ClassDef)]
    return any(not any(isinstance(each, Function) and each.name in MAKES for each in node.body) for node in found)


def bodies(file: Text, places: Iterable[Location], symbol: str | None) -> list[Function]:
    """Return the functions of a symbol that have a body, of a class its methods; without one those that hold lines."""
    seen = (defined(file.tree, place, symbol) if symbol else _holding(file.tree, place) for place in places)
    found = list(dict.fromkeys(node for nodes in seen for node in nodes))
    methods = [each for node in found if isinstance(node, ast.ClassDef) for each in node.body]
    functions = [each for each in (*found, *methods) if isinstance(each, Function)]
    return [each for each in functions if not does_nothing(each) and not decorators_of(each) & NO_BODY]


def emptyings(file: Text, listed: Sequence[Function], unless: str) -> list[Parts]:
    """Return the ways to empty the functions of a symbol, with two values in turn, at last what makes its objects."""
    acting = [each for each in listed if each.name not in MAKES] or listed
    tries = [{each: _end(file, each, turn) for each in acting} for turn in (0, 1)]
    if not any(gives(each) or (_yields(each) and not decorators_of(each) & MANAGERS) for each in acting):
        del tries[1]
    if len(listed) > len(acting):
        tries.append({each: _end(file, each, 0) for each in listed})
    return [stubs(ends, unless) for ends in tries if ends]


def exchanges(file: Text, place: Location, symbol: str) -> list[Parts]:
    """Return the ways to give other values to a constant, or to the fields of a class without methods, or no fields."""
    kinds = [node for node in defined(file.tree, place, symbol) if isinstance(node, ast.ClassDef)]
    fields = [each for node in kinds for each in node.body if not is_docstring(each)]
    if any(not isinstance(each, ast.Assign | ast.AnnAssign) for each in fields):
        return []
    given = fields or _assignments(file.tree, place, re.split(r"[.:]", symbol)[-1])
    values = [each.value for each in given if each.value is not None]  # type: ignore[attr-defined]  # they are assignments
    ways = [{each: _other(each, turn) for each in values} for turn in (0, 1)]
    return [*(way for way in ways if way), *(_without(node) for node in kinds if fields)]


def _other(value: ast.expr, turn: int) -> ast.AST:
    """Return an expression that gives another value of the kind of one, and leaves a mark."""
    return ast.parse(f"{VALUES}.other(({ast.unparse(value)}), {turn}, lambda: {MARKING})", mode="eval").body


def promises(file: Text, place: Location, symbol: str, unless: str) -> list[Parts]:
    """Return what may take the place of a definition that does nothing: functions return, a class has no methods."""
    for node in defined(file.tree, place, symbol):
        methods = node.body if isinstance(node, ast.ClassDef) else [node]
        acting = [each for each in methods if isinstance(each, Function) and each.name not in MAKES]
        if isinstance(node, ast.ClassDef) and all(_is_abstract(each, node) for each in acting):
            return [_without(node)]
        return [stubs(dict.fromkeys(acting, "return ..."), unless)]
    return []


def _without(node: ast.ClassDef) -> Parts:
    return {node: ast.parse(f"class {node.name}: {MARKING}").body[0]}


def _is_abstract(node: Function, owner: ast.ClassDef) -> bool:
    protocol = any(last_name(base) == "Protocol" for base in owner.bases)
    return protocol or not is_stub(node) or any("abstract" in last_name(each) for each in node.decorator_list)


def defined(tree: ast.Module, place: Location, name: str) -> Iterator[Function | ast.ClassDef]:
    """Yield the definitions of a symbol in its lines: by its name, or what begins there where it has another."""
    first, last = place.line or 1, place.last_line or place.line or 1
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    within = [node for node in nodes if first <= first_line(node) and (node.end_lineno or 0) <= last]
    named = [node for node in within if node.name == re.split(r"[.:]", name)[-1]]
    if named and isinstance(named[0], ast.ClassDef):
        named = named[:1]
    yield from named or [node for node in within if first_line(node) == first][:1]


def _holding(tree: ast.Module, place: Location) -> list[Function]:
    line, functions = place.line or 0, [node for node in ast.walk(tree) if isinstance(node, Function)]
    around = [node for node in functions if first_line(node) <= line <= (node.end_lineno or 0)]
    return [max(around, key=first_line)] if around else []


def _assignments(tree: ast.Module, place: Location, name: str) -> Iterator[ast.Assign | ast.AnnAssign]:
    """Yield what gives a name, and no other one, a value in a line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.lineno == place.line:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if [getattr(target, "id", "") for target in targets] == [name]:
                yield node
