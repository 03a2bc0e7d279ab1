"""Which code of a program may have to do with events: what has their names, what calls that, what it is concerned with.

A name leads to all functions that are called so: what a call really runs is found on the path.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property

from gates.scan.matches import match, may_meet, names_it
from gates.scan.paths.events import Happening, tails_of
from gates.scan.pattern import Pattern
from gates.scan.program.module import Module, tail_of
from gates.scan.program.nodes import FUNCTIONS, walk
from gates.scan.program.project import Project
from gates.scan.program.scope import ClassInfo, Scope
from gates.scan.rule import EventKind

TELLING = (ast.Constant, ast.Call, ast.Name, ast.Attribute, ast.IfExp, ast.Lambda)
ASKING = (ast.If, ast.IfExp, ast.Call, ast.withitem, ast.While, ast.Match)


def _asked(node: ast.AST) -> ast.AST:
    """Return the part of code that decides what it does."""
    if isinstance(node, ast.Call):
        return node.func
    return node.test if isinstance(node, ast.If | ast.IfExp | ast.While) else node


CALLED = frozenset({"__init__", "__call__", "forward", "__enter__", "__exit__", "__iter__", "__next__"})
KEEPING = ast.Call | ast.IfExp | ast.Lambda | ast.Dict | ast.Attribute | ast.Subscript
FEW = 2  # classes that have a method of one name: there an object of which nothing is known may be of one
MAX_DEPTH = 3  # calls that a walk goes into, one inside of the other
HOPS = 2  # variables that something is kept as, one after the other
Mention = tuple[ast.Name | ast.Attribute, Module]


class Hot:
    """The code of a program that may be an event, and the functions that lead to some."""

    def __init__(self, project: Project, happening: Happening) -> None:
        self.project, self._needs = project, happening.needs
        self.functions: dict[ast.AST, Module] = {}
        self.kinds: dict[ast.AST, set[str]] = defaultdict(set)
        self._hot: set[ast.AST] = set()
        self._runs: dict[ast.AST, set[ast.AST]] = defaultdict(set)  # by function those that it may run
        self._seen: dict[tuple[str, str], bool] = {}
        self._names: dict[ast.AST, frozenset[str]] = {}
        edge = [function for each in happening.kinds for function in self._begun(each)]
        for _ in range(MAX_DEPTH):
            calls = [(function, *place) for function in edge for place in self._callers(function)]
            edge = [outer for function, node, module in calls for outer in self._mark(node, module, runs=function)]

    def __contains__(self, node: object) -> bool:
        """Return whether something in a node may be an event or lead to one."""
        return node in self._hot

    def matter(self, nodes: Iterable[ast.AST], scope: Scope) -> bool:
        """Return whether statements set something to what a later condition or event may tell apart."""
        inside = (inner for each in nodes for inner in walk(each))
        told = (node for node in inside if isinstance(node, ast.Assign) and isinstance(node.value, TELLING))
        for target in (each for node in told for each in node.targets):
            around = scope.module.tree if isinstance(target, ast.Attribute) else scope.function
            if tail_of(target) in self._asked_in(around or scope.module.tree):
                return True
        return False

    def _asked_in(self, around: ast.AST) -> frozenset[str]:
        """Return the names that stand in hot conditions, and whose methods are hot, in a function or a whole file."""
        if around not in self._names:
            asked = (_asked(node) for node in walk(around) if node in self._hot and isinstance(node, ASKING))
            names = {tail_of(n) for each in asked for n in walk(each) if isinstance(n, ast.Name | ast.Attribute)}
            self._names[around] = frozenset(names - {"self"})
        return self._names[around]

    def _mentions(self, name: str) -> list[Mention]:
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
        """Return the events of each function, of those inside of it, and of what it may run, so far as calls go."""
        own: dict[ast.AST, list[ast.AST]] = {function: [function] for function in self.functions}
        for function, module in self.functions.items():
            for around in module.ancestors(function):
                if around in own and not isinstance(around, ast.Module):
                    own[around].append(function)
        runs = {f: [each for part in parts for each in self._runs.get(part, ())] for f, parts in own.items()}
        found = {f: set().union(*(self.kinds.get(part, ()) for part in parts)) for f, parts in own.items()}
        for _ in range(MAX_DEPTH):
            found = {f: kinds.union(*(found.get(each, ()) for each in runs[f])) for f, kinds in found.items()}
        return found

    def _begun(self, kind: EventKind) -> list[ast.AST]:
        """Mark what may be an event itself; return the functions that it stands in."""
        found: list[ast.AST] = []
        for pattern in kind.code.patterns:
            for tail in tails_of(pattern):
                for node, module in self._mentions(tail):
                    if self._may_be(pattern, node, module):
                        for place in ((node, module), *self._kept(node, module)):
                            found += self._mark(*place, kind.name)
        return found

    def _may_be(self, pattern: Pattern, node: ast.Name | ast.Attribute, module: Module) -> bool:
        """Return whether a name may be that of an event, by what may be known of its objects on any path."""
        body, around, scope = pattern.body, module.parents.get(node), self.project.scope_at(node, module)
        if not isinstance(body, ast.Call):
            return isinstance(body, ast.expr) or (around is not None and match(pattern, around, scope) is not None)
        if pattern.root is not None:
            return names_it(pattern.root, node, scope)
        if pattern.tail is None or not isinstance(body.func, ast.Attribute):
            return True
        if not isinstance(node, ast.Attribute) or not isinstance(around, ast.Call) or around.func is not node:
            return False
        holes = match(pattern, around, scope, lenient=True)
        if holes is None:  # a variable may hold what the pattern writes out
            made = body.func.value.func if isinstance(body.func.value, ast.Call) else body.func.value
            return isinstance(node.value, ast.Name | ast.Attribute) and bool(self._mentions(tail_of(made)))
        return all(may_meet(self._needs[n], hole) is not False for n, hole in holes.items() if n in self._needs)

    def _kept(self, node: ast.expr, module: Module) -> list[Mention]:
        """Return where that is used in its file which something is kept as: `self.cast = autocast()`."""
        found, names = list[Mention](), set[str]()
        todo: Sequence[ast.expr] = [node]
        for _ in range(HOPS):
            names = {name for each in todo for name in _targets(each, module)} - names
            uses = (use for name in names for use in module.mentions.get(name, ()))
            loaded = [use for use in uses if isinstance(use.ctx, ast.Load) and use is not node]
            found, todo = [*found, *((use, module) for use in loaded)], loaded
        return found

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

    def _callers(self, function: ast.AST) -> Iterable[Mention]:
        """Return the places that may run a function, by its name or that of its class, where that is known by name."""
        if not isinstance(function, FUNCTIONS):
            return []
        home = self.functions[function]
        owner = self.project.scope_of(function, home).owner
        by_class = owner is not None and function.name in CALLED
        name = owner.node.name if owner is not None and by_class else function.name
        places = [each for each in self._mentions(name) if self._sees(each[1], home)]
        places = [each for each in places if owner is None or by_class or self._may_be_of(*each, owner)]
        handed = [each for each in places if by_class or (owner is None and not _is_called(*each))]
        return [*places, *(use for each in handed for use in self._kept(*each))]

    def _may_be_of(self, node: ast.expr, module: Module, owner: ClassInfo) -> bool:
        """Return whether a name may be that of a method of a class: its object is one, or may well be one."""
        if not isinstance(node, ast.Attribute):
            return False
        scope = self.project.scope_at(node, module)
        kind = scope.self_class if tail_of(node.value) == scope.self_name and isinstance(node.value, ast.Name) else None
        kind = kind or self.project.classes.get(self.project.types.of(node.value, scope) or "")
        if kind is not None:
            return kind is owner or owner in self.project.order_of(kind) or kind in self.project.order_of(owner)
        return self.project.method_names[node.attr] <= FEW

    def _sees(self, module: Module, home: Module) -> bool:
        """Return whether a file may know what another one defines: it is that one, or imports something of it."""
        key = module.path, home.path
        if key not in self._seen:
            self._seen[key] = module is home or any(
                name == home.name
                or name.startswith(f"{home.name}.")
                or home.name.endswith(f".{name.lstrip('.')}")
                or name.rpartition(".")[0].lstrip(".") == home.name.rpartition(".")[2]
                for name in module.aliases.values()
            )
        return self._seen[key]


def _targets(node: ast.AST, module: Module) -> list[str]:
    """Return the names that what a node stands in is set to: a call, a choice, a table."""
    around = module.parents.get(node)
    while isinstance(around, KEEPING):
        around = module.parents.get(around)
    targets = around.targets if isinstance(around, ast.Assign) else []
    return [tail_of(each) for each in targets if isinstance(each, ast.Name | ast.Attribute)]


def _is_called(node: ast.expr, module: Module) -> bool:
    around = module.parents.get(node)
    return isinstance(around, ast.Call) and around.func is node
