"""Pieces of code that fit a shape: a pattern, with what must and must not be around it and in it."""

import ast
from collections.abc import Iterable, Iterator

from gates.scan.matches import match, match_block
from gates.scan.pattern import Hole, Holes, Pattern, is_gap
from gates.scan.program.known import is_called
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import walk
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.rule import Need, Piece

LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
AROUND: dict[str, tuple[type[ast.AST], ...]] = {
    "loop": LOOPS,
    "function": (ast.FunctionDef, ast.AsyncFunctionDef),
    "class": (ast.ClassDef,),
    "async": (ast.AsyncFunctionDef,),
    "module": (ast.Module,),
    "handler": (ast.ExceptHandler,),
}


def find(piece: Piece, module: Module, project: Project) -> Iterator[tuple[ast.AST, Holes]]:
    """Yield the live code of a module that fits, with what its metavariables stand for."""
    seen: set[ast.AST] = set()
    for pattern in piece.patterns:
        if not pattern.uses <= module.uses:
            continue  # nothing can fit
        search = _Search(pattern, module, project)
        for node, holes in search.candidates():
            if node not in seen and search.fits_around(piece, node, holes):
                seen.add(node)
                yield node, holes


class _Search:
    """The search for a pattern, and for what must or must not be around it and in it, in one module."""

    def __init__(self, pattern: Pattern, module: Module, project: Project) -> None:
        self._pattern = pattern
        self._module = module
        self._project = project

    def candidates(self) -> Iterator[tuple[ast.AST, Holes]]:
        """Yield what fits the pattern itself."""
        pattern, module = self._pattern, self._module
        if isinstance(pattern.body, tuple):
            yield from self._statements(pattern.body)
            return
        nodes: list[ast.AST] | list[ast.Call]
        nodes = module.calls.get(pattern.tail, []) if pattern.tail else module.live.get(type(pattern.body), [])
        if isinstance(pattern.body, ast.Name | ast.Attribute):
            nodes = [*module.live.get(ast.Name, []), *module.live.get(ast.Attribute, [])]
        yield from self._single(nodes)

    def _single(self, nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.AST, Holes]]:
        for node in nodes:
            holes = match(self._pattern, node, self._scope_at(node))
            if holes is not None:
                yield node, holes

    def _statements(self, body: tuple[ast.stmt, ...]) -> Iterator[tuple[ast.AST, Holes]]:
        head = body[0]
        if len(body) == 1:
            yield from self._single(self._module.live.get(type(head), []))
            return
        begins = None if is_gap(head) or isinstance(head, ast.With | ast.AsyncWith) else type(head)
        for kind, nodes in self._module.live.items():
            for around in nodes if "body" in kind._fields else ():
                for block in _blocks(around):
                    for at, first in enumerate(block):
                        if begins is not None and type(first) is not begins:
                            continue
                        holes = match_block(self._pattern, block[at:], self._scope_at(first))
                        if holes is not None:
                            yield first, holes

    def _scope_at(self, node: ast.AST) -> Scope:
        return self._project.scope_at(node, self._module)

    def fits_around(self, piece: Piece, node: ast.AST, holes: Holes) -> bool:
        """Return whether what fits is what a piece says beside its patterns."""
        if not all(meets(need, holes[name], self._project) for name, need in piece.needs.items() if name in holes):
            return False
        if piece.inside and not any(self._around(p, node, holes) for p in piece.inside):
            return False
        if any(self._around(p, node, holes) for p in piece.not_inside):
            return False
        if any(self._is(p, node, holes) for p in piece.never):
            return False
        if piece.has and not any(self._within(p, node, holes) for p in piece.has):
            return False
        return not any(self._within(p, node, holes) for p in piece.not_has)

    def _is(self, piece: Piece, node: ast.AST, holes: Holes) -> bool:
        """Return whether a node itself fits a piece; one without patterns speaks only of what is around."""
        if not piece.patterns and not piece.words:
            return self.fits_around(piece, node, holes)
        for pattern in piece.patterns:
            found = match(pattern, node, self._scope_at(node), lenient=True)
            if found is not None and _agree(found, holes) and self.fits_around(piece, node, {**holes, **found}):
                return True
        return False

    def _around(self, piece: Piece, node: ast.AST, holes: Holes) -> bool:
        """Return whether something around a node fits; a function ends a loop's reach, not an `if` or a `with`."""
        inner: ast.AST = node
        crossed = False
        for around in self._module.ancestors(node):
            is_function = isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            for word in piece.words:
                wanted = isinstance(around, AROUND[word]) and (
                    word != "loop" or (not crossed and _in_body(around, inner))
                )
                if wanted and self.fits_around(piece, around, holes):
                    return True
            if piece.patterns and (not crossed or isinstance(around, ast.If)) and self._is(piece, around, holes):
                return True
            crossed = crossed or is_function
            inner = around
        return False

    def _within(self, piece: Piece, node: ast.AST, holes: Holes) -> bool:
        """Return whether something in a node fits."""
        for inner in walk(node):
            if inner is node:
                continue
            if any(isinstance(inner, AROUND[word]) for word in piece.words):
                return True
            if piece.patterns and self._is(piece, inner, holes):
                return True
        return False


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block


def _in_body(loop: ast.AST, inner: ast.AST) -> bool:
    """Return whether what stands in a loop is run by each of its turns."""
    if isinstance(loop, ast.For | ast.AsyncFor | ast.While):
        return inner in loop.body or inner is getattr(loop, "test", None)
    return not (isinstance(inner, ast.comprehension) and inner is loop.generators[0])  # type: ignore[attr-defined]  # a comprehension


def _agree(found: Holes, holes: Holes) -> bool:
    return all(name not in holes or hole.key == holes[name].key for name, hole in found.items())


def meets(need: Need, hole: Hole, project: Project) -> bool:
    """Return whether what a metavariable stands for is what it must be."""
    node, names = hole.node, hole.names
    if not isinstance(node, ast.expr) or not isinstance(names, Scope):
        return not (need.types or need.names or need.made_by)
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)
    if need.equals and not {text, ast.unparse(node)} & set(need.equals):
        return False
    if need.regex and not need.regex.search(text):
        return False
    if need.names and names.dotted(node) not in need.names:
        return False
    if need.types and not any(is_type(node, names, wanted, project) for wanted in need.types):
        return False
    if need.made_by and not _made_by(need, node, names):
        return False
    return need.never is None or not meets(need.never, hole, project)


def is_type(node: ast.expr, scope: Scope, wanted: str, project: Project) -> bool:
    """Return whether an object is of a kind: by its class, or, where that is not known, by what it is called."""
    known = project.types.is_a(project.types.of(node, scope), wanted)
    return is_called(tail_of(node), wanted) if known is None else known


def _made_by(need: Need, node: ast.expr, scope: Scope) -> bool:
    behind: tuple[ast.expr, Scope] | None = (node, scope)
    for _ in range(4):
        if behind is None:
            return False
        if any(match(pattern, behind[0], behind[1]) is not None for pattern in need.made_by):
            return True
        behind = behind[1].through(behind[0])
    return False
