"""Which code leads to which functions: directly, or by way of places that may run any of several."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property

from gates.scan.ways.callers import Group, Open
from gates.scan.ways.lookups import Spot


class Leads:
    """What code may run, by way of one node for all the functions that the same places may run."""

    def __init__(self) -> None:
        self._leads: dict[ast.AST, set[ast.AST]] = defaultdict(set)
        self._any: dict[object, ast.AST] = {}  # what stands for all functions that some places may run
        self._reach: dict[ast.AST, frozenset[ast.AST]] = {}

    def join(self, group: Group, function: ast.AST) -> list[Spot]:
        """Let places lead to one more function; return them the first time."""
        if group.key is None:
            return self._add(group.places, function)
        new: list[Spot] = []
        if group.key not in self._any:
            self._any[group.key] = ast.Name("any", ast.Load())
            new = self._add(group.places, self._any[group.key])
        self._leads[self._any[group.key]].add(function)
        return new

    def _add(self, places: Iterable[Spot], target: ast.AST) -> list[Spot]:
        found = list(places)
        for _, _, around in found:
            if around is not target:
                self._leads[around].add(target)
        return found

    @cached_property
    def opened(self) -> frozenset[ast.AST]:
        """Return what stands for the methods that calls on objects of unknown class may run."""
        return frozenset(node for key, node in self._any.items() if isinstance(key, Open))

    @cached_property
    def run(self) -> set[ast.AST]:
        """Return the functions that other code may run."""
        found: set[ast.AST] = set()
        arounds: dict[ast.AST, set[ast.AST]] = defaultdict(set)
        groups = {any_one: self._leads[any_one] for any_one in self._any.values()}
        for around, targets in self._leads.items():
            for target in targets if around not in groups else ():
                if target in groups:
                    arounds[target].add(around)
                elif target is not around:
                    found.add(target)
        for any_one, members in groups.items():
            by = arounds[any_one]
            found |= members if len(by) > 1 else {member for member in members if by and member not in by}
        return found

    def reach(self, function: ast.AST) -> frozenset[ast.AST]:
        """Return what a function may run, by whatever it runs."""
        if function not in self._reach:
            self._reach[function] = self.reach_without(function, frozenset())
        return self._reach[function]

    def reach_without(self, function: ast.AST, without: frozenset[ast.AST]) -> frozenset[ast.AST]:
        """Return what a function may run, but for what only some ways lead to."""
        seen: set[ast.AST] = set()
        todo = list(self._leads.get(function, ()))
        while todo:
            here = todo.pop()
            if here not in seen and here not in without:
                seen.add(here)
                todo += self._leads.get(here, ())
        return frozenset(seen)

    def spread(
        self,
        kinds: Mapping[ast.AST, set[str]],
        inside: Iterable[tuple[ast.AST, ast.AST]],
        without: frozenset[ast.AST] = frozenset(),
    ) -> dict[ast.AST, frozenset[str]]:
        """Carry events from the functions that have them to all that may run those, or that those stand inside of."""
        behind: dict[ast.AST, set[ast.AST]] = defaultdict(set)
        for around, targets in self._leads.items():
            for target in targets if around not in without else ():
                behind[target].add(around)
        for function, around in inside:
            behind[function].add(around)
        found = {node: frozenset(names) for node, names in kinds.items()}
        todo = list(found)
        while todo:
            here = todo.pop()
            for around in behind.get(here, ()):
                both = found.get(around, frozenset()) | found[here]
                if both != found.get(around):
                    found[around] = both
                    todo.append(around)
        return found
