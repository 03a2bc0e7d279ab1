"""Private names that nothing uses: what they define is written down, and never happens."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from gates import meanings
from gates.evidence._attributes import names_of
from gates.stub import EMPTY_BASES
from gates.syntax import Definition, SourceModule, live_nodes, live_statements

KEPT = 4000  # modules whose names are held
LEAST = 3  # letters of a part that tells one name from others
QUIET_BASES = EMPTY_BASES | {"Module", "Dataset", "NamedTuple", "TypedDict", "Enum", "Exception", "BaseModel"}
HOLE = re.compile(r"[%{].*", re.DOTALL)


@dataclass(frozen=True)
class Names:
    """What live code reads: each private name with the private definitions around it, and parts of names it makes.

    `offered` are the private names that `import *` takes from here, `takes` says whether it is written here.
    """

    read: frozenset[tuple[str, frozenset[str]]]
    parts: frozenset[str]
    offered: frozenset[str]
    takes: bool


def is_private(name: str) -> bool:
    """Return whether a name is for its own project alone, such as `_step`; `__call__` is not."""
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def may_be_called_from_outside(node: ast.stmt, owner: ast.ClassDef | None) -> bool:
    """Return whether others could use a definition without its name: a decorator or a base class has it."""
    if not isinstance(node, Definition) or node.decorator_list:
        return True
    if isinstance(node, ast.ClassDef):  # a base may keep a register of what extends it
        above = {names[-1] for names in map(names_of, node.bases) if names}
        if node.keywords or not above <= QUIET_BASES:
            return True
    bases = [*owner.bases, *owner.keywords] if owner else []
    return any(not (isinstance(base, ast.Name) and base.id == "object") for base in bases)


def is_used(name: str, modules: Iterable[SourceModule]) -> bool:
    """Return whether live code reads a name, other than in private definitions that are themselves not used.

    A string with the name counts, and so does the part of one that code puts together: `f"_on_{event}"`.
    """
    found = [_names(module.tree) for module in modules]
    if any(name.startswith(part) or name.endswith(part) for names in found for part in names.parts):
        return True
    reads = {pair for names in found for pair in names.read}
    if any(names.takes for names in found):
        reads |= {(offered, frozenset()) for names in found for offered in names.offered}
    alive: set[str] = set()
    while more := {read for read, inside in reads if read not in alive and inside <= alive}:
        alive |= more
    return name in alive


@lru_cache(maxsize=KEPT)
def _names(tree: ast.Module) -> Names:
    read: set[tuple[str, frozenset[str]]] = set()
    parts: set[str] = set()
    for node, inside in _live(tree.body, None, frozenset()):
        read |= {(name, inside) for name in _read_by(node) if is_private(name)}
        parts |= set(_parts(node))
    takes = bool(meanings.star_imports(tree.body))
    return Names(frozenset(read), frozenset(parts), frozenset(_offered(tree.body)), takes)


def _offered(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the private definitions of a module that its `__all__` lets out, or may let out where it is made."""
    for node in live_statements(body):
        if isinstance(node, Definition) and is_private(node.name) and meanings.is_exported(body, node.name):
            yield node.name


def _live(
    body: list[ast.stmt], owner: ast.ClassDef | None, inside: frozenset[str]
) -> Iterator[tuple[ast.AST, frozenset[str]]]:
    """Yield every node that can run, with the private definitions around it that only their names lead to."""
    for node in live_statements(body):
        if not isinstance(node, Definition):
            yield from ((inner, inside) for head in _heads(node) for inner in live_nodes(head))
            continue
        alone = is_private(node.name) and not may_be_called_from_outside(node, owner)
        within = inside | {node.name} if alone else inside
        if isinstance(node, ast.ClassDef) and owner is None:
            heads = (*node.decorator_list, *node.bases, *(word.value for word in node.keywords))
            yield from ((inner, within) for head in heads for inner in live_nodes(head))
            yield from _live(node.body, node, within)
        else:
            yield from ((inner, within) for inner in live_nodes(node))


def _heads(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a simple statement, or of a compound one the parts that are no statements."""
    if not hasattr(node, "body") and not hasattr(node, "cases"):
        yield node
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from _heads(child)
        elif not isinstance(child, ast.stmt):
            yield child


def _read_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
        yield node.id if isinstance(node, ast.Name) else node.attr
    elif isinstance(node, ast.ImportFrom):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def _parts(node: ast.AST) -> Iterator[str]:
    """Yield the parts of names that an expression puts together; one of a letter or two only where `getattr` asks."""
    asked = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr"
    made = node.args[1:2] if asked and isinstance(node, ast.Call) else [node]
    for whole in made:
        values = whole.values if isinstance(whole, ast.JoinedStr) else []
        if isinstance(whole, ast.BinOp) and isinstance(whole.op, ast.Add | ast.Mod):
            values = [whole.left, whole.right]
        for value in values:
            text = HOLE.sub("", value.value) if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""
            if "_" in text and text.isidentifier() and len(text) >= (1 if asked else LEAST):
                yield text
