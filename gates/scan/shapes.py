"""Pieces of code that fit a shape: a pattern, with what must and must not be around it and in it."""

import ast
from collections.abc import Iterator, Sequence

from gates.scan.matches import match
from gates.scan.pattern import Hole, Holes, Pattern
from gates.scan.program.known import is_called
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import text_of, walk
from gates.scan.program.project import Project
from gates.scan.rule import Constraint, Shape

LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
AROUND: dict[str, tuple[type[ast.AST], ...]] = {
    "loop": LOOPS,
    "function": (ast.FunctionDef, ast.AsyncFunctionDef),
    "class": (ast.ClassDef,),
    "async": (ast.AsyncFunctionDef,),
    "module": (ast.Module,),
    "handler": (ast.ExceptHandler,),
}


def find(shape: Shape, module: Module, project: Project) -> Iterator[ast.AST]:
    """Yield the live code of a module that fits."""
    search = _Search(module, project)
    seen: set[ast.AST] = set()
    possible = [pattern for pattern in shape.patterns if pattern.uses <= module.uses]
    for pattern in possible if shape.may_fit(lambda each: each.uses <= module.uses) else ():
        for node in search.candidates(pattern):
            holes = None if node in seen else match(pattern, node, project.scope_at(node, module))
            if holes is not None and search.fits_around(shape, node, holes):
                seen.add(node)
                yield node


class _Search:
    """The search in one module for what must or must not be around code and in it."""

    def __init__(self, module: Module, project: Project) -> None:
        self._module = module
        self._project = project

    def candidates(self, pattern: Pattern) -> Sequence[ast.AST]:
        """Return the code of a pattern's kind, by the names that it may be written with."""
        body = pattern.body
        if pattern.tail:
            return self._module.calls.get(pattern.tail, ())
        if pattern.root is None:
            return self._module.live.get(type(body), ())
        known = self._module.calls if isinstance(body, ast.Call) else self._module.mentions
        names = self._project.names_for(pattern.root.rpartition(".")[2])
        return [node for name in names for node in known.get(name, ())]

    def fits_around(self, shape: Shape, node: ast.AST, holes: Holes) -> bool:
        around, within = (shape.inside, shape.not_inside), (shape.has, shape.not_has)
        asked = ((self._around, *around), (self._is, (), shape.not_), (self._within, *within))
        return all(meets(need, holes[name]) for name, need in shape.needs.items() if name in holes) and all(
            (not some or any(look(each, node, holes) for each in some))
            and not any(look(each, node, holes) for each in none)
            for look, some, none in asked
        )

    def _is(self, shape: Shape, node: ast.AST, holes: Holes) -> bool:
        """Return whether a node itself fits a shape; one without patterns speaks only of what is around."""
        if not shape.patterns and not shape.words:
            return self.fits_around(shape, node, holes)
        for pattern in shape.patterns:
            found = match(pattern, node, self._project.scope_at(node, self._module), lenient=True)
            agreed = found is not None and all(holes[n].key == hole.key for n, hole in found.items() if n in holes)
            if agreed and self.fits_around(shape, node, {**holes, **(found or {})}):
                return True
        return False

    def _around(self, shape: Shape, node: ast.AST, holes: Holes) -> bool:
        """Return whether something around a node fits; a function ends a loop's reach, not an `if` or a `with`."""
        inner: ast.AST = node
        crossed = False
        for around in self._module.ancestors(node):
            for word in shape.words:
                reached = word != "loop" or (not crossed and _in_body(around, inner))
                if isinstance(around, AROUND[word]) and reached and self.fits_around(shape, around, holes):
                    return True
            if shape.patterns and (not crossed or isinstance(around, ast.If)) and self._is(shape, around, holes):
                return True
            crossed = crossed or isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            inner = around
        return False

    def _within(self, shape: Shape, node: ast.AST, holes: Holes) -> bool:
        kinds = tuple(kind for word in shape.words for kind in AROUND[word])
        inside = (inner for inner in walk(node) if inner is not node)
        return any(isinstance(inner, kinds) or (shape.patterns and self._is(shape, inner, holes)) for inner in inside)


def _in_body(loop: ast.AST, inner: ast.AST) -> bool:
    """Return whether what stands in a loop is run by each of its turns."""
    if isinstance(loop, ast.For | ast.AsyncFor | ast.While):
        return inner in loop.body or inner is getattr(loop, "test", None)
    return not (isinstance(inner, ast.comprehension) and inner is loop.generators[0])  # type: ignore[attr-defined]  # a comprehension


def meets(need: Constraint, hole: Hole) -> bool:
    """Return whether an object is what it must be: by its class, or, where that is not known, by what it is called."""
    verdict = may_meet(need, hole)
    return any(is_called(tail_of(hole.node), wanted) for wanted in need.type) if verdict is None else verdict


def may_meet(need: Constraint, hole: Hole) -> bool | None:
    """Return whether what a metavariable stands for is what it must be; `None` where its class is not known."""
    node = hole.node
    if not isinstance(node, ast.expr):
        return not need.type
    if need.regex and not need.regex.search(written(node)):
        return False
    verdicts = {hole.names.is_a(node, wanted) for wanted in need.type}
    return True if True in verdicts or not verdicts else None if None in verdicts else False


def written(node: ast.expr) -> str:
    """Return the text of a string, or the code of anything else: what a regular expression is searched in."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else text_of(node)
