"""The implementation as it stands: which lines each criterion's symbols and rules come to."""

import ast
from typing import Self

from gates.check import Evidence
from gates.code.sources import Sources
from gates.code.symbols import Resolver, SymbolTrace
from gates.code.syntax import SourceModule
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.code_rules import PatternTrace, RuleTrace, bound_rules, trace_patterns
from gates.model import Location, Model
from gates.project.files import files_of
from gates.task.measurement import CodeBinding
from gates.task.task import Task

HARNESSES = frozenset({"pytest", "_pytest", "unittest", "nose", "coverage", "hypothesis"})
VARIABLES = frozenset({"PYTEST_CURRENT_TEST", "PYTEST_VERSION", "PYTEST_XDIST_WORKER", "GATES_WITNESS", "GATES_WORKER"})
CHOICES = (ast.If, ast.IfExp, ast.While)


class Watchful(Model):
    """A symbol that asks whether a test looks on: where, and how."""

    symbol: str
    location: Location
    asks: str


def watchful(symbol: str, place: Location, module: SourceModule) -> Watchful | None:
    """Return where a function or class chooses its way by whether a test looks on; nothing of a plugin of pytest."""
    first, last = place.line or 1, place.last_line or place.line or 1
    inside = [node for node in ast.walk(module.tree) if isinstance(node, CHOICES) and first <= node.lineno <= last]
    asking = next((choice for choice in inside if _asks(choice.test)), None)
    if asking is None or _imports_pytest(module.tree):
        return None
    line = Location(path=place.path, line=asking.lineno)
    return Watchful(symbol=symbol, location=line, asks=ast.unparse(asking.test))


def _asks(choice: ast.expr) -> bool:
    """Return whether an expression asks for a test: by a variable of pytest, or by what is imported."""
    words = {node.value for node in ast.walk(choice) if isinstance(node, ast.Constant)}
    imported = any(isinstance(node, ast.Attribute) and node.attr == "modules" for node in ast.walk(choice))
    return bool(words & VARIABLES or (imported and words & HARNESSES))


def _imports_pytest(tree: ast.Module) -> bool:
    named = (alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names)
    of = (node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return any(name.split(".")[0] in {"pytest", "_pytest"} for name in (*named, *of))


class SourceTree(Evidence):
    """The implementation's files, resolved for every code binding of the task."""

    files: int
    symbols: tuple[SymbolTrace, ...]
    rules: tuple[RuleTrace, ...]
    patterns: tuple[PatternTrace, ...] = ()
    unparsed: tuple[str, ...]
    watchful: tuple[Watchful, ...] = ()

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Parse the implementation and resolve every binding."""
        paths = [path for path in files_of(task.implementation, context.root) if path.suffix == ".py"]
        if not paths:
            raise EvidenceUnavailable(f"no Python file in {', '.join(task.implementation)} ({task.path})")
        resolver = Resolver(task, Sources(context.root))
        files, unparsed = resolver.read()
        modules = {module.path: module for module in files.values()}
        bindings = [binding for criterion in task.criteria for binding in criterion.code]
        symbols = tuple(resolver.trace(binding) for binding in bindings if binding.symbol)
        live = [(one.symbol, one.location) for one in symbols if one.location and one.location.path in modules]
        asked = (watchful(name, place, modules[place.path]) for name, place in live)
        return cls(
            how="the implementation's syntax trees",
            files=len(paths),
            symbols=symbols,
            rules=bound_rules(sorted({binding.rule for binding in bindings if binding.rule}), task, context),
            patterns=trace_patterns(bindings, resolver),
            unparsed=unparsed,
            watchful=tuple(filter(None, asked)),
        )

    def symbol(self, binding: CodeBinding) -> SymbolTrace | None:
        """Return the trace of a binding."""
        wanted = (binding.symbol, binding.uses)
        return next((trace for trace in self.symbols if (trace.symbol, trace.wanted) == wanted), None)

    def pattern(self, binding: CodeBinding) -> PatternTrace | None:
        """Return the trace of a binding to a pattern."""
        wanted = (binding.pattern, binding.in_, binding.at_least)
        return next((trace for trace in self.patterns if (trace.pattern, trace.within, trace.at_least) == wanted), None)

    def rule(self, name: str | None) -> RuleTrace | None:
        """Return what a rule found."""
        return next((trace for trace in self.rules if trace.rule == name), None)

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
