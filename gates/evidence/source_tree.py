"""The implementation as it stands: which lines each criterion's symbols and rules come to."""

from typing import Self

from gates.context import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.code_rules import RuleTrace, bound_rules
from gates.evidence.kind import Evidence
from gates.evidence.sources import Sources
from gates.evidence.symbols import Resolver, SymbolTrace
from gates.files import files_of
from gates.syntax import SourceModule, Unparsed
from gates.task import CodeBinding, Task


class SourceTree(Evidence):
    """The implementation's files, resolved for every code binding of the task."""

    files: int
    symbols: tuple[SymbolTrace, ...]
    rules: tuple[RuleTrace, ...]
    unparsed: tuple[str, ...]

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
        return cls(
            how="the implementation's syntax trees",
            files=len(paths),
            symbols=tuple(resolver.trace(binding) for binding in bindings if binding.symbol),
            rules=bound_rules(wanted, task, context),
            unparsed=tuple(unparsed),
        )

    def symbol(self, binding: CodeBinding) -> SymbolTrace | None:
        """Return the trace of a binding."""
        wanted = (binding.symbol, binding.uses)
        return next((trace for trace in self.symbols if (trace.symbol, trace.wanted) == wanted), None)

    def rule(self, name: str | None) -> RuleTrace | None:
        """Return what a rule found."""
        return next((trace for trace in self.rules if trace.rule == name), None)
