"""The implementation as it stands: which lines each criterion's symbols and rules come to."""

import itertools
from collections.abc import Iterator
from typing import Self

from gates.check import Evidence
from gates.context import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.code_rules import RuleTrace, bound_rules
from gates.evidence.patterns import PatternTrace, trace_patterns
from gates.evidence.reach import Reach, ReachTrace
from gates.evidence.sources import Sources
from gates.evidence.symbols import Resolver, SymbolTrace
from gates.evidence.watchful import Watchful, watchful
from gates.model import Location
from gates.project.files import files_of
from gates.syntax import SourceModule, Unparsed
from gates.task.calls import called_for
from gates.task.code_binding import CodeBinding
from gates.task.task import Task


class SourceTree(Evidence):
    """The implementation's files, resolved for every code binding of the task."""

    files: int
    symbols: tuple[SymbolTrace, ...]
    rules: tuple[RuleTrace, ...]
    patterns: tuple[PatternTrace, ...] = ()
    reaches: tuple[ReachTrace, ...] = ()
    unparsed: tuple[str, ...]
    stands: tuple[ReachTrace, ...] = ()
    watchful: tuple[Watchful, ...] = ()

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Parse the implementation and resolve every binding."""
        paths = [path for path in files_of(task.implementation, context.root) if path.suffix == ".py"]
        if not paths:
            raise EvidenceUnavailable(f"no Python file in {', '.join(task.implementation)} ({task.path})")
        resolver = Resolver(task, Sources(context.root))
        modules: dict[str, SourceModule] = {}
        unparsed: list[str] = []
        for path in paths:
            try:
                modules[context.shown(path)] = resolver.module(path)
            except Unparsed as error:
                unparsed.append(str(error))
        bindings = [binding for criterion in task.criteria for binding in criterion.code]
        wanted = sorted({binding.rule for binding in bindings if binding.rule})
        tree = cls(
            how="the implementation's syntax trees",
            files=len(paths),
            symbols=tuple(resolver.trace(binding) for binding in bindings if binding.symbol),
            rules=bound_rules(wanted, task, context),
            patterns=trace_patterns(bindings, resolver),
            unparsed=tuple(unparsed),
        )
        asking = tuple(
            seen for trace in tree.symbols if trace.location and trace.location.path in modules
            if (seen := watchful(trace.symbol, trace.location, modules[trace.location.path]))
        )  # fmt: skip
        tree = tree.model_copy(update={"watchful": asking})
        asked = [binding for binding in bindings if binding.reached_from and tree.places(binding)]
        called = [one for one in _called_for(task) if tree.places(one)]
        reach = Reach(resolver) if asked or called else None
        found = tuple(dict.fromkeys(reach.trace(one, tree.places(one)) for one in asked)) if reach else ()
        stands = tuple(dict.fromkeys(reach.trace(one, tree.places(one)) for one in called)) if reach else ()
        return tree.model_copy(update={"reaches": found, "stands": stands})

    def symbol(self, binding: CodeBinding) -> SymbolTrace | None:
        """Return the trace of a binding."""
        wanted = (binding.symbol, binding.uses)
        return next((trace for trace in self.symbols if (trace.symbol, trace.wanted) == wanted), None)

    def pattern(self, binding: CodeBinding) -> PatternTrace | None:
        """Return the trace of a binding to a pattern."""
        wanted = (binding.pattern, binding.in_, binding.at_least)
        return next((trace for trace in self.patterns if (trace.pattern, trace.within, trace.at_least) == wanted), None)

    def reach(self, binding: CodeBinding) -> ReachTrace | None:
        """Return from where the code of a binding is reached."""
        wanted = (binding.name, binding.reached_from, binding.at_least)
        return next((trace for trace in self.reaches if (trace.name, trace.entry, trace.at_least) == wanted), None)

    def stands_for(self, called: str, binding: CodeBinding) -> ReachTrace | None:
        """Return whether what is called in the place of tests reaches the code of a binding."""
        return next((trace for trace in self.stands if (trace.name, trace.entry) == (binding.name, called)), None)

    def places(self, binding: CodeBinding) -> tuple[Location, ...]:
        """Return the lines of the implementation that a binding comes to."""
        if binding.symbol:
            trace = self.symbol(binding)
            return (trace.location,) if trace and trace.location else ()
        if binding.pattern:
            found = self.pattern(binding)
            return found.places if found else ()
        applied = self.rule(binding.rule)
        return tuple(site.location for site in applied.sites if site.ok) if applied else ()

    def ways(self, binding: CodeBinding) -> tuple[Location, ...]:
        """Return the lines that a binding comes to in this run or in another."""
        trace = self.symbol(binding) if binding.symbol else None
        return (*self.places(binding), *(trace.others if trace else ()))

    def rule(self, name: str | None) -> RuleTrace | None:
        """Return what a rule found."""
        return next((trace for trace in self.rules if trace.rule == name), None)


def _called_for(task: Task) -> Iterator[CodeBinding]:
    """Yield the symbols of each criterion without tests, as reached from each function that stands for it."""
    for criterion in task.criteria:
        symbols = [binding for binding in criterion.code if binding.symbol]
        for binding, call in itertools.product(symbols, called_for(task, criterion)):
            if not criterion.tests and binding.symbol != call:
                yield binding.model_copy(update={"reached_from": call})
