"""The implementation as it stands: which lines each criterion's symbols and rules come to."""

from typing import Self

from gates import registry, rules
from gates.context import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.kind import Evidence
from gates.evidence.sources import Sources
from gates.evidence.symbols import Resolver, SymbolTrace
from gates.files import files_of
from gates.model import Location, Model
from gates.rules.code_rule import CodeRule
from gates.syntax import SourceModule, Unparsed
from gates.task import CodeBinding, Task


class RuleSite(Model):
    """A place that a code rule speaks of."""

    location: Location
    ok: bool
    message: str


class RuleTrace(Model):
    """What a code rule found in the implementation."""

    rule: str
    sites: tuple[RuleSite, ...]
    problem: str = ""


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
        known = {rule.id: rule for rule in registry.values(rules, CodeRule)}
        wanted = sorted({binding.rule for binding in bindings if binding.rule})
        return cls(
            how="the implementation's syntax trees",
            files=len(paths),
            symbols=tuple(resolver.trace(binding) for binding in bindings if binding.symbol),
            rules=tuple(_apply(name, known, modules) for name in wanted),
            unparsed=tuple(unparsed),
        )

    def symbol(self, binding: CodeBinding) -> SymbolTrace | None:
        """Return the trace of a binding."""
        wanted = (binding.symbol, binding.uses)
        return next((trace for trace in self.symbols if (trace.symbol, trace.wanted) == wanted), None)

    def rule(self, name: str | None) -> RuleTrace | None:
        """Return what a rule found."""
        return next((trace for trace in self.rules if trace.rule == name), None)


def _apply(name: str, known: dict[str, CodeRule], modules: dict[str, SourceModule]) -> RuleTrace:
    if name not in known:
        return RuleTrace(
            rule=name, sites=(), problem=f"there is no code rule {name!r}; known: {', '.join(sorted(known))}"
        )
    sites = tuple(
        RuleSite(
            location=Location(path=path, line=site.line, last_line=site.last_line),
            ok=site.ok,
            message=site.message,
        )
        for path, module in modules.items()
        for site in known[name].look(module)
    )
    return RuleTrace(rule=name, sites=sites)
