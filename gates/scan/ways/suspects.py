"""Which mentions of names may be events, by what is known of a program without walking it."""

import ast
from collections.abc import Iterator

from gates.scan.paths.events import tails_of
from gates.scan.patterns.holes import Hole
from gates.scan.patterns.matches import match
from gates.scan.patterns.pattern import Pattern
from gates.scan.program.known import is_called
from gates.scan.program.module import Module, is_property, names_of, tail_of
from gates.scan.program.nodes import below, walk
from gates.scan.program.parameters import argument
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.rule import Needs
from gates.scan.ways.holders import Holder, held, set_to
from gates.scan.ways.mention import Mention
from gates.scan.ways.mentions import mentions_of

MAX_CALLERS = 20


class Suspects:
    """The mentions of a program that may be events."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._mentions = project.once(mentions_of)[0]
        self._attributes: dict[tuple[str, str], bool] = {}

    def named_by(self, pattern: Pattern) -> Iterator[Mention]:
        """Yield the mentions of the names that a pattern has."""
        for tail in tails_of(pattern):
            yield from self._mentions.meaning(tail) if pattern.tail is None else self._mentions.of(tail)

    def entered(self, mention: Mention) -> Iterator[Mention]:
        """Yield where a context is entered that a mention is kept as: `self.cast = autocast()`, `with self.cast:`."""
        yield from (other for other in self._kept(mention) if _is_entered(other))

    def handed(self, mention: Mention) -> Iterator[Mention]:
        """Yield where a method is called that a mention is kept as: `advance = scaler.step`, `advance(optimizer)`."""
        if isinstance(mention.node, ast.Attribute) and isinstance(mention.node.ctx, ast.Load) and not mention.is_called:
            yield from (other for other in self._kept(mention) if other.is_called)

    def _kept(self, mention: Mention) -> Iterator[Mention]:
        """Yield the mentions of what a mention is kept as, on and on."""
        seen: set[Holder] = set()
        todo = list(_kept_as(mention.node, mention.module, mention.scope))
        while todo:
            holder = todo.pop()
            for other in self._mentions.held_by(holder) if holder not in seen else ():
                yield other
                if isinstance(other.node.ctx, ast.Load):
                    todo += _kept_as(other.node, other.module, other.scope)
            seen.add(holder)

    def may_be(self, pattern: Pattern, mention: Mention, needs: Needs) -> bool:
        """Return whether a mention may be the event."""
        if pattern.tail is None:
            return True
        node = mention.node
        if not mention.is_called or not isinstance(node, ast.Attribute):
            return False
        assert isinstance(pattern.body, ast.expr)
        if not isinstance(pattern.body, ast.Call) or not isinstance(pattern.body.func, ast.Attribute):
            return True
        inner = Pattern(pattern.text, pattern.body.func.value, None)
        holes = match(inner, node.value, mention.scope)
        if holes is None:
            if isinstance(pattern.body.func.value, ast.Attribute):
                return isinstance(node.value, ast.Name) and pattern.body.func.value.attr in node.value.id
            return not isinstance(node.value, ast.Constant) and pattern.body.func.value.__class__ is not ast.Name
        return all(self._may_fit(needs[name].types, hole) for name, hole in holes.items() if name in needs)

    def _may_fit(self, types: tuple[str, ...], hole: Hole) -> bool:
        node, scope = hole.node, hole.names
        if not types or not isinstance(node, ast.expr) or not isinstance(scope, Scope):
            return True
        for wanted in types:
            known = self.project.types.is_a(self.project.types.of(node, scope), wanted)
            if known or (
                known is None
                and (any(is_called(n, wanted) for n in names_of(node)) or self._passed(node, scope, wanted))
            ):
                return True
        return False

    def _passed(self, node: ast.expr, scope: Scope, wanted: str) -> bool:
        """Return whether a parameter is passed something of a kind by any caller."""
        if isinstance(node, ast.Subscript | ast.Call):
            return any(is_called(name, wanted) for name in names_of(node))
        if isinstance(node, ast.Attribute):
            return self._is_attribute(node.attr, wanted)
        if not isinstance(node, ast.Name):
            return False
        found = scope.lookup(node.id)
        if found is None or not any(binding.kind in {"parameter", "opaque", "item"} for binding in found[1]):
            return False
        function = found[0].function
        if any(binding.kind != "parameter" for binding in found[1]):
            taken = (binding.node for binding in found[1] if binding.kind == "item")
            named = (tail_of(n.func) for n in taken if isinstance(n, ast.Call))
            return any(is_called(name, wanted) for name in named) or self._looped(node.id, found[0], wanted)
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            return True  # a lambda's
        for call, module in self.project.named.get(function.name, [])[:MAX_CALLERS]:
            value = argument(call, function, node.id, bound=found[0].owner is not None)
            where = self.project.scope_at(call, module)
            if value is not None and (
                is_called(tail_of(value), wanted)
                or self.project.types.is_a(self.project.types.of(value, where), wanted)
            ):
                return True
        return False

    def _is_attribute(self, name: str, wanted: str) -> bool:
        """Return whether objects of some class of the program have something of a kind under a name."""
        key = (name, wanted)
        if key not in self._attributes:
            having = (info for info in self.project.classes.values() if name in info.attributes)
            kinds = (self.project.types.attribute(info, name) for info in having)
            self._attributes[key] = any(self.project.types.is_a(kind, wanted) for kind in kinds)
        return self._attributes[key]

    def _looped(self, name: str, scope: Scope, wanted: str) -> bool:
        """Return whether a loop variable goes through something that is called so."""
        root = scope.function or scope.module.tree
        for node in below(root):
            if isinstance(node, ast.For) and name in {n.id for n in walk(node.target) if isinstance(n, ast.Name)}:
                return any(
                    is_called(tail_of(n), wanted) for n in walk(node.iter) if isinstance(n, ast.Name | ast.Attribute)
                )
        return False


def _kept_as(node: ast.AST, module: Module, scope: Scope) -> Iterator[Holder]:
    """Yield the variables that are set to what something is a part of: a call, a choice, a table."""
    inside, here = node, module.parents.get(node)
    while isinstance(here, ast.Call | ast.IfExp | ast.Subscript | ast.Dict | ast.Lambda | ast.keyword | ast.Attribute):
        if isinstance(here, ast.Call) and inside is not here.func and tail_of(here.func) not in {"partial", "dict"}:
            return
        inside, here = here, module.parents.get(here)
    if isinstance(here, ast.Return) and isinstance(scope.function, ast.FunctionDef) and is_property(scope.function):
        yield scope.function.name
    for target in set_to(inside, module) or ():
        yield from held(target, scope)


def _is_entered(mention: Mention) -> bool:
    """Return whether a mention is what a `with` enters, or whose `__enter__` or `__exit__` is called."""
    around = mention.module.parents.get(mention.node)
    if isinstance(around, ast.Attribute) and around.attr in {"__enter__", "__exit__"}:
        return True
    while isinstance(around, ast.Call | ast.Subscript):
        around = mention.module.parents.get(around)
    return isinstance(around, ast.withitem)
