"""The implementation as it stands: the lines of each criterion's symbols, and what code rules and patterns found."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

from gates.check import Evidence
from gates.code.sources import Sources
from gates.code.symbols import Resolver, SymbolTrace
from gates.code.syntax import Choice, SourceModule
from gates.config import Context
from gates.errors import EvidenceUnavailable, UsageError
from gates.model import Location, Model, Severity
from gates.project.files import files_of, is_under
from gates.scan.checking import Checked, check
from gates.scan.loading import load_rules, named, unknown
from gates.scan.rule import Rule, RuleForm, Site
from gates.task.measurement import CodeBinding
from gates.task.task import Task

MAX_SITES = 1000


class RuleTrace(Model):
    """What a code rule found in the implementation, what it says if it is known, and the ids and tags asking for it."""

    rule: str
    sites: tuple[Site, ...] = ()
    problem: str = ""
    severity: Severity | None = None
    problem_text: str = ""
    impact: str = ""
    fix: str = ""
    asked: tuple[str, ...] = ()


class PatternTrace(Model):
    """The places of live code that fit a pattern, or why it was not applied."""

    name: str
    at_least: int
    places: tuple[Location, ...] = ()
    problem: str = ""
    checked: bool = True


def rules_of(context: Context) -> dict[str, Rule]:
    """Return the shipped rules and those of the project; raise `EvidenceUnavailable` for broken ones."""
    try:
        return load_rules(context.rules, context.root)
    except UsageError as error:
        raise EvidenceUnavailable(" ".join(str(error).split())) from error


def python_files(task: Task, context: Context) -> list[Path]:
    """Return the Python files of the implementation; raise `EvidenceUnavailable` where there is none."""
    if not (found := [path for path in files_of(task.implementation, context.root) if path.suffix == ".py"]):
        raise EvidenceUnavailable(f"no Python file in {', '.join(task.implementation)} ({task.path})")
    return found


def _rules(task: Task, context: Context) -> Iterator[RuleTrace]:
    """Apply every rule that a task or its criteria name; keep broken places first where there are too many."""
    bound = sorted({binding.rule for criterion in task.criteria for binding in criterion.code if binding.rule})
    names = dict.fromkeys((*task.rules, *bound))
    try:
        known = rules_of(context) if names else {}
    except EvidenceUnavailable as error:
        yield from (RuleTrace(rule=name, problem=str(error), asked=(name,)) for name in names)
        return
    found = {name: named(name, known) if name in {*task.rules, *known} else [] for name in names}
    rules = {rule.id: rule for asked in found.values() for rule in asked}
    checked = check([*rules.values()], python_files(task, context), context.root) if rules else Checked()
    for rule in sorted(rules.values(), key=lambda rule: rule.id):
        form, sites = rule.form, checked.sites[rule.id]
        yield RuleTrace(
            rule=rule.id,
            sites=tuple(sites if len(sites) <= MAX_SITES else sorted(sites, key=lambda site: site.ok)[:MAX_SITES]),
            problem=checked.problems.get(rule.id, ""),
            problem_text=form.problem,
            **form.model_dump(include={"severity", "impact", "fix"}),
            asked=tuple(name for name, asked in found.items() if rule in asked),
        )
    yield from (RuleTrace(rule=n, problem=unknown(n, known), asked=(n,)) for n, asked in found.items() if not asked)


def trace_patterns(bindings: Iterable[CodeBinding], resolver: Resolver) -> tuple[PatternTrace, ...]:
    """Apply the patterns of a task to its implementation, all at once."""
    asked = {(binding.name, binding.at_least): binding for binding in bindings if binding.pattern}.values()
    rules = [_finding(i, binding.pattern or "") for i, binding in enumerate(asked)]
    checked = check(rules, resolver.python_files(), resolver.root) if rules else Checked()
    return tuple(_fitting(binding, rule, checked, resolver) for binding, rule in zip(asked, rules, strict=True))


def _finding(number: int, text: str) -> Rule:
    words = {"problem": "fits", "impact": "none", "fix": "none", "good": (), "bad": ()}
    form = RuleForm.model_validate({"id": f"pattern-{number}", "severity": Severity.LOW, "pattern": text, **words})
    return Rule(form, "the pattern", own=True)


def _fitting(binding: CodeBinding, rule: Rule, checked: Checked, resolver: Resolver) -> PatternTrace:
    places = tuple(dict.fromkeys(site.location for site in checked.sites[rule.id] if _is_in(site.path, binding.in_)))
    found = PatternTrace(name=binding.name, at_least=binding.at_least, places=places[:MAX_SITES])
    if not any(_is_in(resolver.shown(path), binding.in_) for path in resolver.python_files()):
        return found.model_copy(update={"problem": f"no Python file of the implementation is in {binding.in_}"})
    if len(places) >= binding.at_least:
        return found
    unread = [text for text in checked.unparsed if _is_in(text.partition(":")[0], binding.in_)]
    if why := checked.problems.get(rule.id) or next(iter(unread), ""):
        return found.model_copy(update={"problem": f"not checked, {why}", "checked": False})
    where, count = binding.in_ or "the implementation", len(places)
    few = f"{count} place{'s' if count > 1 else ''} of {where} fit it, not {binding.at_least}"
    return found.model_copy(update={"problem": few if count else f"no live code of {where} fits it"})


def _is_in(path: str, folder: str | None) -> bool:
    return folder is None or is_under(path, folder)


HARNESSES = frozenset({"pytest", "_pytest", "unittest", "nose", "coverage", "hypothesis"})
VARIABLES = frozenset({"PYTEST_CURRENT_TEST", "PYTEST_VERSION", "PYTEST_XDIST_WORKER", "GATES_WITNESS", "GATES_WORKER"})


class Watchful(Model):
    """A symbol that asks whether a test looks on: where, and how."""

    symbol: str
    location: Location
    asks: str


def watchful(symbol: str, place: Location, module: SourceModule) -> Watchful | None:
    """Return where a function or class chooses its way by whether a test looks on; nothing of a plugin of pytest."""
    first, last = place.line or 1, place.last_line or place.line or 1
    inside = [node for node in ast.walk(module.tree) if isinstance(node, Choice) and first <= node.lineno <= last]
    asking = next((choice for choice in inside if _asks(choice.test)), None)
    if asking is None or any(name.split(".")[0] in {"pytest", "_pytest"} for name in module.aliases.values()):
        return None
    line = Location(path=place.path, line=asking.lineno)
    return Watchful(symbol=symbol, location=line, asks=ast.unparse(asking.test))


def _asks(choice: ast.expr) -> bool:
    """Return whether an expression asks for a test: by a variable of pytest, or by what is imported."""
    words = {node.value for node in ast.walk(choice) if isinstance(node, ast.Constant)}
    imported = any(isinstance(node, ast.Attribute) and node.attr == "modules" for node in ast.walk(choice))
    return bool(words & VARIABLES or (imported and words & HARNESSES))


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
        """Parse the implementation, resolve every binding, and apply every rule that the task names."""
        paths = python_files(task, context)
        resolver = Resolver(task, Sources(context.root))
        modules, unparsed = resolver.read()
        bindings = [binding for criterion in task.criteria for binding in criterion.code]
        symbols = tuple(resolver.trace(binding) for binding in bindings if binding.symbol)
        live = [(one.symbol, one.location) for one in symbols if one.location and one.location.path in modules]
        return cls(
            how="the implementation's syntax trees",
            files=len(paths),
            symbols=symbols,
            rules=tuple(_rules(task, context)),
            patterns=trace_patterns(bindings, resolver),
            unparsed=unparsed,
            watchful=tuple(filter(None, (watchful(name, place, modules[place.path]) for name, place in live))),
        )

    def symbol(self, binding: CodeBinding) -> SymbolTrace | None:
        """Return the trace of a binding."""
        return next((t for t in self.symbols if (t.symbol, t.wanted) == (binding.symbol, binding.uses)), None)

    def pattern(self, binding: CodeBinding) -> PatternTrace | None:
        """Return the trace of a binding to a pattern."""
        return next((t for t in self.patterns if (t.name, t.at_least) == (binding.name, binding.at_least)), None)

    def rule(self, name: str | None) -> RuleTrace | None:
        """Return what a rule found."""
        return next((trace for trace in self.rules if trace.rule == name), None)

    def ways(self, binding: CodeBinding) -> tuple[Location, ...]:
        """Return the lines of the implementation that a binding comes to, in this run or in another."""
        if binding.symbol:
            return (*filter(None, [trace.location]), *trace.others) if (trace := self.symbol(binding)) else ()
        if binding.pattern:
            return found.places if (found := self.pattern(binding)) else ()
        return tuple(site.location for site in applied.sites if site.ok) if (applied := self.rule(binding.rule)) else ()
