"""Code without a body of its own: constants and fields with other values, classes and functions that only promise."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gates.code.stub import is_stub, last_name
from gates.model import Location
from gates.proving._worker.values import KINDS
from gates.proving.emptying import MAKES, Emptying, Function, defined, marking
from gates.proving.source import Text, is_docstring

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
