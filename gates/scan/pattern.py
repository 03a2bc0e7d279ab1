"""Patterns of code: Python with holes, in which imported names stand for what they name.

`$X` is one expression (the same wherever it stands again), `$$$` any arguments, `f(...)` any call of f. Of a statement
with a block the pattern is the head, and `...` its block. A dotted name is a name after import resolution:
`torch.amp.autocast` fits every name for it.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gates.scan.program.nodes import chain_of

if TYPE_CHECKING:
    from gates.scan.paths.place import Place
    from gates.scan.program.scope import Scope

MANY, HOLE = "__many__", "__hole_"
BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")  # what statements hold
AROUND: dict[str, tuple[type[ast.AST], ...]] = {  # the kinds of surroundings that have a name
    "loop": (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
    "function": (ast.FunctionDef, ast.AsyncFunctionDef),
    "class": (ast.ClassDef,),
    "async": (ast.AsyncFunctionDef,),
    "module": (ast.Module,),
    "handler": (ast.ExceptHandler,),
}


Names: TypeAlias = "Scope | Place"  # where code stands: in a program, or on a path through it


class Hole(NamedTuple):
    """What a metavariable stands for, and where."""

    node: ast.AST
    names: Names

    @property
    def key(self) -> str:
        """Return what makes it the same as another."""
        return self.names.key(self.node)


Holes = Mapping[str, Hole]


def root_of(node: ast.AST) -> str | None:
    """Return the dotted text of a chain of names that begins with a plain name, holes left out."""
    chain = chain_of(node)
    return None if chain is None or HOLE in chain or MANY in chain else chain


def is_many(node: ast.AST) -> bool:
    """Return whether a part of a pattern stands for any number of items."""
    if isinstance(node, ast.Starred):
        node = node.value
    if isinstance(node, ast.alias):
        return node.name == MANY
    is_dots = isinstance(node, ast.Constant) and node.value is Ellipsis
    return is_dots or (isinstance(node, ast.Name) and node.id == MANY)


MAX_LENGTH = 5000
_HOLES = re.compile(r"\$\$\$[A-Z_]*|\$([A-Z_][A-Z0-9_]*)|\$")
_AFTER_KEYWORD = re.compile(rf"(=[^()=]*(?:\([^()]*\))?[^()=]*,\s*)(?:{MANY}|\.\.\.)(?=\s*[,)])")
_ALL_ARGS = re.compile(r"(?<=[\w\])])\(\s*\.\.\.\s*\)")


class PatternError(ValueError):
    """A pattern that is not Python with holes."""


@dataclass(frozen=True)
class Pattern:
    """A compiled pattern: an expression, or a statement."""

    text: str
    body: ast.expr | ast.stmt
    tail: str | None
    holes: frozenset[str] = field(default=frozenset())

    @classmethod
    @lru_cache(maxsize=4096)
    def parse(cls, text: str) -> "Pattern":
        """Compile a pattern; raise `PatternError` with the column for what is no pattern."""
        if len(text) > MAX_LENGTH:
            raise PatternError(f"the pattern has {len(text)} characters, expected at most {MAX_LENGTH}")
        source = _ALL_ARGS.sub(f"({MANY})", text.strip())
        if "$" in (found[0] for found in _HOLES.finditer(source)):
            raise PatternError("expected '$NAME' in capitals or '$$$'")
        source = _HOLES.sub(lambda m: f"{HOLE}{m[1]}" if m[1] else MANY, source)
        source = _AFTER_KEYWORD.sub(rf"\1*{MANY}", source)
        try:
            statements = ast.parse(source).body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise PatternError(f"not a pattern of Python: {getattr(error, 'msg', error)}") from error
        if len(statements) != 1:
            raise PatternError(f"expected an expression or a statement, found {len(statements)}")
        only = statements[0]
        body = only.value if isinstance(only, ast.Expr) else only
        if isinstance(body, ast.Name) and body.id.startswith((HOLE, MANY)):
            raise PatternError("a pattern of a hole alone fits everything")
        inside = [part for name in BLOCKS for part in getattr(only, name, ())]
        if not all(isinstance(part, ast.Expr) and is_many(part.value) for part in inside):
            raise PatternError("the block of a pattern is '...'; what must be in it stands under 'has'")
        written = (getattr(node, key, None) for node in ast.walk(only) for key in ("id", "attr", "arg", "name"))
        holes = (str(name).removeprefix(HOLE) for name in written if str(name).startswith(HOLE))
        return cls(text, body, _tail(body), frozenset(holes))

    @cached_property
    def root(self) -> str | None:
        """Return the dotted name of what code must call or name to fit, where that is known by other names too."""
        return root_of(self.body.func if isinstance(self.body, ast.Call) else self.body)

    @cached_property
    def words(self) -> frozenset[str]:
        """Return the names that a program must write somewhere for code to fit: of a dotted name its last."""
        return frozenset(word for word, _ in _written(self.body))

    @cached_property
    def lendable(self) -> frozenset[str]:
        """Return those of its words for which imports and assignments may give a file another."""
        return frozenset(word for word, is_lendable in _written(self.body) if is_lendable)

    @cached_property
    def uses(self) -> frozenset[str]:
        """Return what a file itself must write for code in it to fit, in the form of `Module.uses`."""
        nodes = [node for node in ast.walk(self.body) if isinstance(node, ast.Attribute)]
        stored = {f"{n.attr}=" for n in nodes if isinstance(n.ctx, ast.Store) and not n.attr.startswith(HOLE)}
        return self.words - self.lendable | stored | ({f"{self.tail}()"} if self.tail else set())


def _written(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """Yield the words of a pattern, and whether other names may stand for them."""
    if (root := root_of(node)) is not None:
        yield root.rpartition(".")[2], True
        return
    if isinstance(node, ast.Attribute) and not node.attr.startswith(HOLE):
        yield node.attr, False
    if isinstance(node, ast.Import | ast.ImportFrom):
        named = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
        words = (word for name in named for word in name.split(".") if word)
        yield from ((word, False) for word in words if not word.startswith((HOLE, MANY)))
    for child in ast.iter_child_nodes(node):
        yield from _written(child)


def _tail(node: ast.AST) -> str | None:
    """Return the method that a call pattern ends in, where the code must write it so too."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and root_of(node.func) is None:
        return None if node.func.attr.startswith(HOLE) else node.func.attr
    return None
