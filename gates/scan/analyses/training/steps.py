"""The functions that run with each step of a training, and the calls by which they do: helpers, methods, callbacks."""

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator

from gates.scan.analyses.benchmarks.benching import is_benchmark
from gates.scan.analyses.reading.code import calls
from gates.scan.analyses.reading.origins import Origins
from gates.scan.analyses.reading.targets import Targets
from gates.scan.program.module import Function, Module
from gates.scan.program.nodes import inner
from gates.scan.program.project import Project
from gates.scan.ways.hooks import hooks_of

WORLD = re.compile(r"Env($|[A-Z_0-9])|Environment|Simulator")
MAX_FUNCTIONS = 300
MAX_DEPTH = 4
IsFree = Callable[
    [Module, ast.AST, ast.AST], bool
]  # whether a node runs with each turn of a loop, or call of a function


class Steps:
    """The functions that a training runs with each step, from the loops and functions that take a step."""

    def __init__(self, project: Project, begun: Iterator[tuple[Module, ast.AST]], is_free: IsFree) -> None:
        self.sites: dict[ast.AST, list[tuple[ast.Call, Module]]] = defaultdict(list)
        self.timed: set[ast.AST] = set()  # of these, what only a benchmark runs
        self.origins = Origins(project, self.called)
        self.targets = Targets(project, self.origins)
        self._project = project
        self._is_free = is_free
        self._hooks = project.once(hooks_of)[0]
        todo: list[tuple[Function, int]] = []
        for module, node in begun:
            todo += [(f, 1) for f in self._from(module, node, timed=_is_timed(node, module))]
        while todo and len(self.sites) < MAX_FUNCTIONS:
            function, depth = todo.pop(0)
            if depth < MAX_DEPTH:
                there = project.scope_of(function, next(iter(project.modules.values()))).module
                todo += [(f, depth + 1) for f in self._from(there, function, timed=function in self.timed)]

    def called(self, function: ast.AST) -> Iterator[tuple[ast.Call, Module]]:
        """Yield the calls of a function: those with each step, where it has some."""
        yield from self.sites.get(function) or self.origins.called(function)

    def _from(self, module: Module, node: ast.AST, *, timed: bool) -> list[Function]:
        """Return the functions that a loop or function runs, which were not known before."""
        fresh: list[Function] = []
        for call in calls(node):
            for target in self._reached(module, call, node):
                fresh += self._noted(target, timed=timed)
                if call not in (known for known, _ in self.sites[target]):
                    self.sites[target].append((call, module))
            for fired in self._hooks.fired_by.get(call, ()) if self._is_free(module, call, node) else ():
                fresh += self._noted(fired.function, timed=timed)
                if fired.inside not in self.sites[fired.function]:
                    self.sites[fired.function].append(fired.inside)
        for block in inner(node, ast.With):
            for item in block.items if isinstance(block, ast.With) and self._is_free(module, block, node) else ():
                for target in self.targets.entered(item.context_expr, module):
                    fresh += self._noted(target, timed=timed)
        return fresh

    def _noted(self, target: Function, *, timed: bool) -> list[Function]:
        """Note a function; return it where it was not known before, or only of a benchmark."""
        is_new = target not in self.sites
        if is_new and timed:
            self.timed.add(target)
        elif not timed and target in self.timed:
            self.timed.discard(target)
            is_new = True
        return [target] if self.sites[target] is not None and is_new else []

    def _reached(self, module: Module, call: ast.Call, node: ast.AST) -> list[Function]:
        if call in self._hooks.run_by or not self._is_free(module, call, node):
            return []  # which hooks it runs is known by the event
        return [target for target in self.targets.of(call, module) if not self._is_apart(target, module)]

    def _is_apart(self, target: Function, module: Module) -> bool:
        """Return whether a function is no part of a step: it makes an object, or is the world that an agent acts in."""
        owner = self._project.scope_of(target, module).owner
        return target.name == "__init__" or (owner is not None and WORLD.search(owner.node.name) is not None)


def _is_timed(node: ast.AST, module: Module) -> bool:
    """Return whether a loop belongs to a measurement."""
    if re.search(r"(?i)bench|profil", module.path) or "statistics" in module.aliases.values():
        return True
    return is_benchmark(node, module)
