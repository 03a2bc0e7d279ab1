"""Which code of a program may have to do with events: everything else need not be walked."""

import ast
from collections import defaultdict, deque
from collections.abc import Container, Iterator
from functools import cached_property
from typing import NamedTuple

from gates.scan.paths.events import Happening
from gates.scan.program.module import Module
from gates.scan.program.project import Project
from gates.scan.ways.callers import Callers, Group
from gates.scan.ways.leads import Leads
from gates.scan.ways.mention import Mention
from gates.scan.ways.suspects import Suspects

LEAST, EACH = 300, 4  # marked functions, in all or for each with events, beyond which no doubtful way is gone


class Possible(NamedTuple):
    """Where something stands that may be an event."""

    name: str
    path: str
    line: int
    last_line: int


class Hot:
    """The code of a program that may be an event, and the functions that lead to some."""

    def __init__(self, project: Project, happening: Happening) -> None:
        self.project = project
        self.functions: dict[ast.AST, Module] = {}
        self.kinds: dict[ast.AST, set[str]] = defaultdict(set)
        self._spots: dict[ast.AST, set[Possible]] = defaultdict(set)
        self._hot: set[ast.AST] = set()
        self._leads = Leads()
        self._spread(self._begun(happening))

    def __contains__(self, node: object) -> bool:
        """Return whether something in a node may be an event or lead to one."""
        return node in self._hot

    def _begun(self, happening: Happening) -> list[ast.AST]:
        """Mark what may be an event itself; return the functions that it stands in."""
        found: list[ast.AST] = []
        suspects = Suspects(self.project)
        for kind, needs in happening.kinds:
            for pattern in (*kind.calls, *kind.enters, *kind.leaves):
                for mention in suspects.named_by(pattern):
                    if mention.node in self._hot:
                        self._count(mention.node, mention.module, kind.name)
                    elif suspects.may_be(pattern, mention, needs):
                        found += self._mark(mention.node, mention.module, kind.name)
                    if mention.node in self._hot and (
                        pattern.tail is not None or isinstance(mention.node.ctx, ast.Store)
                    ):
                        self._note(mention, kind.name)
                    for other in suspects.entered(mention) if pattern in kind.enters else suspects.handed(mention):
                        found += self._mark(other.node, other.module, kind.name)
        return found

    def _count(self, node: ast.AST, module: Module, kind: str) -> None:
        """Remember that the function around a mention may be an event of a kind."""
        for around in (node, *module.ancestors(node)):
            if around in self.functions:
                self.kinds[around].add(kind)
                return

    def _note(self, mention: Mention, kind: str) -> None:
        """Remember where something stands that may be an event of a kind."""
        node, path = mention.node, mention.module.path
        self._spots[mention.around].add(Possible(kind, path, node.lineno, node.end_lineno or node.lineno))

    def _mark(self, node: ast.AST, module: Module, kind: str = "") -> list[ast.AST]:
        """Mark what a mention stands in, up to its function; return the functions that are now known to be hot."""
        found: list[ast.AST] = []
        for here in (node, *module.ancestors(node)):
            self._hot.add(here)
            if isinstance(here, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module):
                if kind:
                    self.kinds[here].add(kind)
                    kind = ""
                if here in self.functions:
                    return found
                self.functions[here] = module
                found.append(here)
                scope = self.project.scope_of(here, module)
                if scope.outer is None or scope.outer.function is None:
                    return found
        return found

    def _spread(self, begun: list[ast.AST]) -> None:
        """Mark the code that may run hot functions: what surely does, and what may by a name or a list.

        In a large program without types a name leads on to nearly everything, which says nothing; there what is nearest
        by such a way is marked, and of the rest what stands in functions that are marked already.
        """
        later = deque[tuple[ast.AST, Group]]()
        todo = deque((function, group) for each in begun for function, group in self._ways(each))
        while todo:
            function, group = todo.popleft()
            if group.is_loose:
                later.append((function, group))
            else:
                todo += [way for new in self._led(function, group) for way in self._ways(new)]
        limit = max(LEAST, EACH * len(self.kinds))
        while later:
            function, group = later.popleft()
            known = self.functions if len(self.functions) >= limit else None
            for new in self._led(function, group, known):
                ways = list(self._ways(new))
                later.extendleft(way for way in ways if not way[1].is_loose)
                later += [way for way in ways if way[1].is_loose]

    def _ways(self, function: ast.AST) -> Iterator[tuple[ast.AST, Group]]:
        """Yield the groups of places that may run a function, each with it."""
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for group in Callers(function, self.project.scope_of(function, self.functions[function])):
                yield function, group

    def _led(self, function: ast.AST, group: Group, known: Container[ast.AST] | None = None) -> list[ast.AST]:
        """Mark the places that may run a function, those in `known` functions alone where some are given.

        Return the functions that they stand in and that are new.
        """
        places = group.places if known is None else [spot for spot in group.places if spot[2] in known]
        spots = self._leads.join(group._replace(places=places), function)
        return [new for node, module, _ in spots if node not in self._hot for new in self._mark(node, module)]

    @property
    def run(self) -> set[ast.AST]:
        """Return the functions that other code may run."""
        return self._leads.run

    def reach(self, function: ast.AST) -> frozenset[ast.AST]:
        """Return the hot functions that a function may run, by whatever it runs."""
        return self._leads.reach(function)

    def possible(self, function: ast.AST) -> frozenset[str]:
        """Return the names of the events that a function may come to, by all that it may run."""
        return self._possible.get(function, frozenset())

    def spots(self, function: ast.AST) -> frozenset[Possible]:
        """Return where a function may come to events by itself, each by its name and its lines."""
        reached = self._leads.reach_without(function, self._leads.opened)
        return frozenset().union(*(self._spots.get(each, ()) for each in (function, *reached)))

    def sure(self, function: ast.AST) -> frozenset[str]:
        """Return those that a function may come to by itself, where nobody tells of what class its arguments are."""
        return self._sure.get(function, frozenset())

    @cached_property
    def _possible(self) -> dict[ast.AST, frozenset[str]]:
        return self._leads.spread(self.kinds, self._inside())

    @cached_property
    def _sure(self) -> dict[ast.AST, frozenset[str]]:
        return self._leads.spread(self.kinds, self._inside(), self._leads.opened)

    def _inside(self) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Yield the hot functions that stand in others, and those."""
        for function, module in self.functions.items():
            for around in module.ancestors(function):
                if around in self.functions and not isinstance(around, ast.Module):
                    yield function, around
