"""Functions without their bodies: extreme mutation, after Niedermayr, Juergens and Wagner (2016).

A function that tests run and that can be emptied without any of them failing is called pseudo-tested: they would pass
whatever it does.
"""

import ast
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gates.code.stub import is_stub, last_name
from gates.code.syntax import own_nodes
from gates.model import Location
from gates.proving._worker.values import KINDS
from gates.proving.source import Text, is_docstring

Function = ast.FunctionDef | ast.AsyncFunctionDef
OTHER_NAMES = {"List": "list", "Sequence": "list", "Tuple": "tuple", "Set": "set", "Dict": "dict", "Mapping": "dict"}


def gives(function: Function) -> bool:
    """Return whether a function gives its callers something that may be another."""
    return any(isinstance(node, ast.Yield | ast.YieldFrom) or _returned(node) for node in own_nodes(function))


def key_of(file: Text, function: Function) -> str:
    """Return what tells a function from all others."""
    return f"{file.path}:{_first(function)}"


def is_listened_to(function: Function) -> bool:
    """Return whether the kind of what a function gives back is heard while a test runs it: nothing else tells it."""
    yields = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own_nodes(function))
    return gives(function) and not yields and _annotated(function) not in KINDS


def _returned(node: ast.AST) -> ast.expr | None:
    """Return what a statement gives back, if it does."""
    value = node.value if isinstance(node, ast.Return) else None
    return None if isinstance(value, ast.Constant) and value.value is None else value


def _annotated(function: Function) -> str:
    """Return the kind that a function says it gives back."""
    node = function.returns.value if isinstance(function.returns, ast.Subscript) else function.returns
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        name = node.value.partition("[")[0].rpartition(".")[2]
    else:
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return OTHER_NAMES.get(name, name)


MAKES = frozenset({"__init__", "__new__", "__post_init__", "__init_subclass__", "__set_name__"})
NO_BODY = frozenset({"overload", "abstractmethod"})
# whether a module of the implementation, which has its places in the project, is being imported by a caller
IMPORTING = (
    "(lambda frame, own, file, places: any("
    'f.f_code.co_name == "<module>" and f.f_globals.get("__name__") != "__main__" '
    "and f.f_code.co_filename.startswith((own, *(own.removesuffix(file) + place for place in places))) "
    'for f, _ in __import__("traceback").walk_stack(frame)))'
    '(__import__("sys")._getframe(), __import__("sys")._getframe().f_code.co_filename, {file!r}, {places!r})'
)
ANOTHER = '__import__("gates_prove_worker.values").values.another'
REFUSED = 'raise RuntimeError("taken away to see who calls it")'
MANAGERS = frozenset({"contextmanager", "asynccontextmanager"})


@dataclass(frozen=True)
class Emptying:
    """Functions whose bodies are taken away together, and which of two values each gives back then, or a `given` one.

    They are empty `always`, or only where no module of the implementation is being imported.
    """

    functions: tuple[Function, ...]
    turn: int = 0
    given: str = ""
    always: bool = False

    def text(self, file: Text, mark: Path, places: Sequence[str]) -> str:
        """Return a file's text with functions that leave a mark when they are called, and do nothing else.

        What modules at these places of the project call while they are imported finds the functions as they were.
        """
        given = f"return {self.given}" if self.given else ""
        ends = {function: given or _end(file, function, self.turn) for function in self.functions}
        if self.always:
            return file.with_heads({function: f"{marking(mark)}; {end}" for function, end in ends.items()})
        return _headed(file, ends, mark, places)


def raising(file: Text, functions: Iterable[Function], mark: Path, places: Sequence[str]) -> str:
    """Return a file's text with functions that leave a mark when they are called, and raise."""
    return _headed(file, dict.fromkeys(functions, REFUSED), mark, places)


def noting(file: Text, functions: Iterable[Function], mark: Path, places: Sequence[str]) -> str:
    """Return a file's text with functions that leave a mark when they are called, and do what they always do."""
    return _headed(file, dict.fromkeys(functions, "pass"), mark, places)


def is_called_anew(function: Function) -> bool:
    """Return whether all that a function does is done by calls of it: it answers from no cache and makes no other one.

    What it makes or yields may go on with its work when it is not called again.
    """
    making = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Yield, ast.YieldFrom)
    inner = [node for statement in function.body for node in ast.walk(statement)]
    if function.decorator_list or isinstance(function, ast.AsyncFunctionDef) or function.name in MAKES:
        return False
    values = [node.value for node in inner if isinstance(node, ast.Return) and node.value is not None]
    plain = not any(isinstance(value, ast.Call) and _makes(value) for value in values)
    return plain and not any(isinstance(node, making) for node in inner)


def _makes(call: ast.Call) -> bool:
    """Return whether a call may give back what can be called itself: an object of a class, a partial."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name[:1].isupper() or name in {"partial", "compile", "script", "trace", "jit", "vmap", "grad", "capture"}


def places_of(implementation: Iterable[str], root: Path) -> tuple[str, ...]:
    """Return what the paths of an implementation's files begin with, in the project."""
    named = (os.path.normpath(path) for path in implementation)
    return tuple("" if path == "." else f"{path}{os.sep}" if (root / path).is_dir() else path for path in named)


def marking(mark: Path) -> str:
    """Return an expression that leaves a mark."""
    return f'__import__("os").close(__import__("os").open({str(mark)!r}, {os.O_CREAT | os.O_WRONLY}, 0o600))'


def _headed(file: Text, ends: Mapping[Function, str], mark: Path, places: Sequence[str]) -> str:
    marked, importing = marking(mark), IMPORTING.format(file=file.path, places=(*places,))
    return file.with_heads({function: f"if not {importing}: {marked}; {end}" for function, end in ends.items()})


def bodies(file: Text, places: Iterable[Location], symbol: str | None) -> list[Function]:
    """Return the functions of a symbol that have a body, of a class its methods; without one those that hold lines."""
    return list(dict.fromkeys(each for emptying in emptyings(file, places, symbol) for each in emptying.functions))


def makes_unseen(file: Text, place: Location, name: str) -> bool:
    """Return whether a symbol is a class that has nothing of its own which makes its objects."""
    found = [node for node in defined(file.tree, place, name) if isinstance(node, ast.ClassDef)]
    return any(not any(isinstance(each, Function) and each.name in MAKES for each in node.body) for node in found)


def emptyings(file: Text, places: Iterable[Location], symbol: str | None) -> list[Emptying]:
    """Return the ways to empty a symbol, to be tried until something notices; none where it has no body.

    Without a symbol the functions that hold the places are emptied, all together. Functions give two values back in
    turn. Of a class what makes its objects comes last.
    """
    seen = (defined(file.tree, place, symbol) if symbol else _holding(file.tree, place) for place in places)
    found = list(dict.fromkeys(node for nodes in seen for node in nodes))
    methods = [each for node in found if isinstance(node, ast.ClassDef) for each in node.body]
    listed = [each for each in (*found, *methods) if isinstance(each, Function) and not _is_empty(each)]
    acting = tuple(each for each in listed if each.name not in MAKES or each in found)
    tries = [Emptying(acting)]
    if any(gives(each) and not _manages(each) for each in acting):
        tries.append(Emptying(acting, 1))
    if len(listed) > len(acting):
        tries.append(Emptying(tuple(listed)))
    return [each for each in tries if each.functions]


def while_imported(tries: Sequence[Emptying]) -> list[Emptying]:
    """Return the same functions emptied while modules are imported, too, all of them together."""
    return [replace(tries[-1], turn=turn, always=True) for turn in dict.fromkeys(each.turn for each in tries)]


def _end(file: Text, function: Function, turn: int) -> str:
    """Return the statements that an emptied function ends with; what yields still does.

    It gives back a value of the kind that its annotation names or, where that names none, that it gave a test.
    """
    if _manages(function):
        return "yield; return"
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own_nodes(function)):
        return "yield ...; return" if turn else "return"
    if is_listened_to(function):
        return f"return {ANOTHER}({key_of(file, function)!r}, {turn})"
    return f"return {KINDS[_annotated(function)][turn]}" if gives(function) else "return None"


def defined(tree: ast.Module, place: Location, name: str) -> Iterator[Function | ast.ClassDef]:
    """Yield the definitions of a symbol in its lines: by its name, or what begins there where it has another."""
    first, last = place.line or 1, place.last_line or place.line or 1
    within = [
        node for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and first <= _first(node) and (node.end_lineno or 0) <= last
    ]  # fmt: skip
    named = [node for node in within if node.name == re.split(r"[.:]", name)[-1]]
    yield from (
        named[:1]
        if named and isinstance(named[0], ast.ClassDef)
        else named or [node for node in within if _first(node) == first][:1]
    )


def _holding(tree: ast.Module, place: Location) -> list[Function]:
    """Return the innermost function that holds a line, if one does."""
    line = place.line or 0
    around = [
        node for node in ast.walk(tree) if isinstance(node, Function) and _first(node) <= line <= (node.end_lineno or 0)
    ]
    return [max(around, key=_first)] if around else []


def _first(node: Function | ast.ClassDef) -> int:
    return min((each.lineno for each in node.decorator_list), default=node.lineno)


def _is_empty(node: Function) -> bool:
    """Return whether a function does nothing that could be taken away."""
    if _decorated(node) & NO_BODY:
        return True
    return all(
        isinstance(each, ast.Pass | ast.Raise)
        or is_docstring(each)
        or (isinstance(each, ast.Return) and (each.value is None or _is_none(each.value)))
        for each in node.body
    )


def _manages(node: Function) -> bool:
    return bool(_decorated(node) & MANAGERS)


def _decorated(node: Function) -> set[str]:
    found = (each.func if isinstance(each, ast.Call) else each for each in node.decorator_list)
    return {each.attr if isinstance(each, ast.Attribute) else each.id for each in found
            if isinstance(each, ast.Attribute | ast.Name)}  # fmt: skip


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


MARK = "{mark}"
NUMBERS = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop)
VALUES = {"Decimal", "Fraction", "Path", "PurePath", "timedelta", "frozenset", "compile", "MappingProxyType"}
Part = tuple[ast.expr | ast.stmt, str]


@dataclass(frozen=True)
class Exchange:
    """Parts of a file, each with what is put there; `{mark}` in it leaves a mark."""

    parts: tuple[Part, ...]
    functions: tuple[Function, ...] = ()
    always: bool = True

    def text(self, file: Text, mark: Path, _places: Sequence[str]) -> str:
        """Return a file's text with other parts."""
        return file.with_parts(*((node, text.replace(MARK, marking(mark))) for node, text in self.parts))


DISPLAYS: dict[type[ast.expr], str] = {
    ast.List: "list", ast.ListComp: "list", ast.Set: "set", ast.SetComp: "set", ast.Dict: "dict", ast.DictComp: "dict",
    ast.Tuple: "tuple", ast.JoinedStr: "str", ast.Compare: "bool",
}  # fmt: skip


def exchanges(file: Text, places: Sequence[Location], symbol: str) -> list[Exchange]:
    """Return other values for a constant or a field, and for a class of fields alone also none at all."""
    for place in places:
        for node in defined(file.tree, place, symbol):
            if isinstance(node, ast.ClassDef):
                return [*_of_class(node)]
        name = symbol.rpartition(":")[2].rpartition(".")[2]
        for value in _values(file.tree, place, name):
            return [Exchange(((value, _marked(text)),)) for text in others(value)]
    return []


def promises(file: Text, place: Location, symbol: str) -> list[Emptying | Exchange]:
    """Return what may be put in the place of a definition that does nothing: a test that asserts so has to notice.

    Functions give back something; a class of nothing but abstract methods is an ordinary one, without any.
    """
    for node in defined(file.tree, place, symbol):
        if isinstance(node, Function):
            return [Emptying((node,), given="...")]
        methods = [each for each in node.body if isinstance(each, Function) and not _is_abstract(each, node)]
        acting = tuple(each for each in methods if each.name not in MAKES)
        if acting:
            return [Emptying(acting, given="...")]
        indent = " " * node.col_offset
        plain = f"class {node.name}:\n{indent}    def __init_subclass__(cls, **_): {MARK}\n"
        heads: list[Part] = [(each, "(lambda kind: kind)") for each in node.decorator_list]
        return [Exchange((*heads, (node, plain)), always=False)]
    return []


def others(value: ast.expr) -> tuple[str, ...]:
    """Return other values than one that is written out, none where it is made by something else."""
    if isinstance(value, ast.Constant) and isinstance(value.value, bool):
        return str(not value.value), "None"
    if isinstance(value, ast.Constant) and isinstance(value.value, str | bytes):
        none, some = KINDS[type(value.value).__name__]
        return (none if value.value in {"A", b"A"} else some), "None"
    if all(isinstance(node, NUMBERS) and _is_number(node) for node in ast.walk(value)):
        return f"({ast.unparse(value)}) + 1", "None"
    if kind := DISPLAYS.get(type(value)):
        parts = getattr(value, "elts", None) or getattr(value, "keys", None)
        bare = isinstance(value, ast.List | ast.Tuple | ast.Dict) and not parts
        return KINDS[kind][bare], "None"
    return ("None",) if isinstance(value, ast.Call) and last_name(value.func) in VALUES else ()


def _is_number(node: ast.AST) -> bool:
    return not isinstance(node, ast.Constant) or type(node.value) in {int, float, complex}


def _values(tree: ast.Module, place: Location, name: str) -> Iterator[ast.expr]:
    """Yield what a name is given by a statement that begins in a line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.lineno == place.line and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if len(targets) == 1 and isinstance(targets[0], ast.Name) and targets[0].id == name:
                yield node.value


def _of_class(node: ast.ClassDef) -> Iterator[Exchange]:
    """Yield a class with other values in its fields, and one without them; of one with methods nothing."""
    fields = [each for each in node.body if isinstance(each, ast.Assign | ast.AnnAssign)]
    rest = [each for each in node.body if each not in fields and not is_docstring(each)]
    if not fields or rest:
        return
    given = [(each.value, others(each.value)) for each in fields if each.value is not None]
    parts: list[Part] = [(value, texts[0]) for value, texts in given if texts]
    if parts:
        yield Exchange(((parts[0][0], _marked(parts[0][1])), *parts[1:]))
    yield Exchange(((fields[0], MARK), *((each, "pass") for each in fields[1:])))


def _marked(text: str) -> str:
    return f"({MARK}, {text})[1]"


def _is_abstract(node: Function, owner: ast.ClassDef) -> bool:
    protocol = any(last_name(base) == "Protocol" for base in owner.bases)
    return protocol or not is_stub(node) or any("abstract" in last_name(each) for each in node.decorator_list)
