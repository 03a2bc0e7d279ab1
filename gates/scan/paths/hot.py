"""Which code of a program may have to do with events: what has their names, and what calls that.

Everything else need not be walked. A name leads to all functions that are called so: too much is walked rather than
too little, and what a call really runs is found on the path.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property

from gates.scan.matches import match, names_it
from gates.scan.paths.events import Happening, tails_of
from gates.scan.pattern import Hole, Pattern, root_of
from gates.scan.program.classes import ClassInfo
from gates.scan.program.known import is_called, is_kind
from gates.scan.program.module import Module, names_of, tail_of
from gates.scan.program.project import Project
from gates.scan.program.scope import Scope
from gates.scan.rule import EventKind, Needs

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
FEW = 2  # classes that have a method of one name: there an object of which nothing is known may be of one
CALLED = frozenset({"__init__", "__call__", "forward", "__enter__", "__exit__"})
KEEPING = ast.Call | ast.IfExp | ast.Lambda | ast.Dict | ast.Attribute | ast.Subscript
MAX_DEPTH = 3  # calls that a walk goes into, one inside of the other
Place = tuple[ast.Name | ast.Attribute, Module]


class Hot:
    """The code of a program that may be an event, and the functions that lead to some."""

    def __init__(self, project: Project, happening: Happening) -> None:
        self.project = project
        self.functions: dict[ast.AST, Module] = {}
        self.kinds: dict[ast.AST, set[str]] = defaultdict(set)
        self._hot: set[ast.AST] = set()
        self._named: dict[tuple[str, str], bool] = {}
        self._runs: dict[ast.AST, set[ast.AST]] = defaultdict(set)  # by function those that it may run
        edge = [function for each in happening.kinds for function in self._begun(*each)]
        for _ in range(MAX_DEPTH):
            edge = [
                outer
                for function in edge
                for node, module in self._callers(function)
                for outer in self._mark(node, module, runs=function)
            ]

    def __contains__(self, node: object) -> bool:
        """Return whether something in a node may be an event or lead to one."""
        return node in self._hot

    def _mentions(self, name: str) -> list[Place]:
        """Return where the program mentions a name, the last part of a dotted one."""
        return [(node, module) for module in self.project.modules.values() for node in module.mentions.get(name, ())]

    @cached_property
    def run(self) -> set[ast.AST]:
        """Return the functions that other code may run."""
        return {inner for outer, each in self._runs.items() for inner in each if inner is not outer}

    def possible(self, function: ast.AST) -> frozenset[str]:
        """Return the names of the events that a function may come to, by all that it may run."""
        return frozenset(self._possible.get(function, ()))

    @cached_property
    def _possible(self) -> dict[ast.AST, set[str]]:
        """Return the events of each function and of what it may run, as far as a walk goes into calls."""
        own = {f: [f, *self._within[f]] for f in self.functions}
        runs = {f: [each for part in parts for each in self._runs.get(part, ())] for f, parts in own.items()}
        found = {f: set().union(*(self.kinds.get(part, ()) for part in parts)) for f, parts in own.items()}
        for _ in range(MAX_DEPTH):
            found = {f: kinds.union(*(found.get(each, ()) for each in runs[f])) for f, kinds in found.items()}
        return found

    @cached_property
    def _within(self) -> dict[ast.AST, list[ast.AST]]:
        """Return by function those that stand in it."""
        found: dict[ast.AST, list[ast.AST]] = defaultdict(list)
        for function, module in self.functions.items():
            for around in module.ancestors(function):
                if around in self.functions and not isinstance(around, ast.Module):
                    found[around].append(function)
        return found

    def _begun(self, kind: EventKind, needs: Needs) -> list[ast.AST]:
        """Mark what may be an event itself; return the functions that it stands in."""
        return [
            function
            for pattern in kind.code.patterns
            for tail in tails_of(pattern)
            for node, module in self._mentions(tail)
            if self._may_be(pattern, node, module, needs)
            for place in (node, *_kept(node, module))
            for function in self._mark(place, module, kind.name)
        ]

    def _may_be(self, pattern: Pattern, node: ast.Name | ast.Attribute, module: Module, needs: Needs) -> bool:
        """Return whether a name may be that of an event: written so, and of no object that is known to be another."""
        body, around, scope = pattern.body, module.parents.get(node), self.project.scope_at(node, module)
        if not isinstance(body, ast.Call):
            return isinstance(body, ast.expr) or (around is not None and match(pattern, around, scope) is not None)
        if (root := root_of(body.func)) is not None:
            return names_it(root, node, scope)
        if pattern.tail is None:
            return True
        if not isinstance(node, ast.Attribute) or not isinstance(around, ast.Call) or around.func is not node:
            return False
        holes = match(pattern, around, scope, lenient=True) or {}
        return all(self._may_fit(needs[name].type, hole, module) for name, hole in holes.items() if name in needs)

    def _may_fit(self, wanted: Iterable[str], hole: Hole, module: Module) -> bool:
        """Return whether an object may be of a kind: one of which nothing is known only where a file names such."""
        types, node, scope = self.project.types, hole.node, hole.names
        if not wanted or not isinstance(node, ast.expr) or not isinstance(scope, Scope):
            return True
        kind = types.of(node, scope)
        verdicts = {each: types.is_a(kind, each) for each in wanted}
        called = names_of(node)
        return any(
            is_so or (is_so is None and (self._names(module, each) or any(is_called(name, each) for name in called)))
            for each, is_so in verdicts.items()
        )

    def _names(self, module: Module, wanted: str) -> bool:
        """Return whether a name of a file is one that objects of a kind are called by, or the kind's own."""
        key = module.path, wanted
        if key not in self._named:
            self._named[key] = any(is_called(word, wanted) or is_kind(f"_.{word}", wanted) for word in module.uses)
        return self._named[key]

    def _mark(self, node: ast.AST, module: Module, kind: str = "", runs: ast.AST | None = None) -> list[ast.AST]:
        """Mark what a name stands in, up to its function; return the functions that are now known to be hot."""
        found: list[ast.AST] = []
        for here in (node, *module.ancestors(node)):
            self._hot.add(here)
            if isinstance(here, (*FUNCTIONS, ast.Lambda, ast.Module)):
                if kind:
                    self.kinds[here].add(kind)
                    kind = ""
                if runs is not None and runs is not here:
                    self._runs[here].add(runs)
                    runs = None
                if here in self.functions:
                    return found
                self.functions[here] = module
                found.append(here)
                scope = self.project.scope_of(here, module)
                if scope.outer is None or scope.outer.function is None:
                    return found
        return found

    def _callers(self, function: ast.AST) -> list[Place]:
        """Return the places that may run a function, by its name or that of its class."""
        if not isinstance(function, FUNCTIONS):
            return []
        owner = self.project.scope_of(function, self.functions[function]).owner
        by_class = owner is not None and function.name in CALLED
        found = self._mentions(owner.node.name if owner is not None and by_class else function.name)
        if owner is not None and not by_class:
            found = [each for each in found if self._may_be_of(*each, owner)]
        kept = [(use, module) for node, module in found if by_class or owner is None for use in _kept(node, module)]
        return [*found, *kept]

    def _may_be_of(self, node: ast.expr, module: Module, owner: ClassInfo) -> bool:
        """Return whether a name may be that of a method of a class: its object is one, or few classes have it."""
        if not isinstance(node, ast.Attribute):
            return False
        kind = self.project.scope_at(node, module).class_of(node.value)
        if kind is None:
            return self.project.method_names[node.attr] <= FEW
        return kind is owner or owner in self.project.order_of(kind) or kind in self.project.order_of(owner)


def _kept(node: ast.expr, module: Module) -> list[ast.Name | ast.Attribute]:
    """Return where that is used in a file which a name is kept as: `self.cast = autocast()`."""
    around = module.parents.get(node)
    while isinstance(around, KEEPING):
        around = module.parents.get(around)
    targets = around.targets if isinstance(around, ast.Assign) else []
    names = {tail_of(each) for each in targets} - {""}
    return [use for name in names for use in module.mentions.get(name, ()) if isinstance(use.ctx, ast.Load)]
