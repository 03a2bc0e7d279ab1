"""The implementation as it stands: the lines of each criterion's symbols, and what code rules and patterns found."""

import ast
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from gates.check import Evidence
from gates.code.sources import Sources
from gates.code.symbols import Resolver, SymbolTrace
from gates.code.syntax import SourceModule
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


class RuleSite(Model):
    """A place that a code rule speaks of; `trace` is the path of events that leads to it."""

    location: Location
    ok: bool
    message: str
    trace: tuple[str, ...] = ()
    undecided: bool = False


class RuleTrace(Model):
    """What a code rule found in the implementation, and what it says; a rule that nobody knows says nothing.

    `asked` are the ids and tags by which the task asks for it.
    """

    rule: str
    sites: tuple[RuleSite, ...]
    problem: str = ""
    severity: Severity | None = None
    problem_text: str = ""
    impact: str = ""
    fix: str = ""
    asked: tuple[str, ...] = ()


class CodeRules(Evidence):
    """The rules that the task asks for by id or by tag, applied to the whole implementation."""

    files: int
    applied: tuple[RuleTrace, ...]
    unknown: tuple[tuple[str, str], ...] = ()
    unparsed: tuple[str, ...] = ()

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Apply every rule that the task names."""
        if not task.rules:
            raise EvidenceUnavailable("the task names no code rules")
        known = rules_of(context)
        asked = {name: named(name, known) for name in task.rules}
        rules = list({rule.id: rule for found in asked.values() for rule in found}.values())
        files = python_files(task, context)
        checked = check(rules, files, context.root)  # no memory: tests may have written into it
        by = {rule.id: [name for name in task.rules if rule in asked[name]] for rule in rules}
        return cls(
            how="the implementation's syntax trees",
            files=checked.files,
            applied=tuple(_told(rule, checked, by[rule.id]) for rule in sorted(rules, key=lambda r: r.id)),
            unknown=tuple((name, unknown(name, known)) for name, found in asked.items() if not found),
            unparsed=tuple(checked.unparsed),
        )


def rules_of(context: Context) -> dict[str, Rule]:
    """Return the shipped rules and those of the project; raise `EvidenceUnavailable` for broken ones."""
    try:
        return load_rules(context.rules, context.root)
    except UsageError as error:
        raise EvidenceUnavailable(" ".join(str(error).split())) from error


def python_files(task: Task, context: Context) -> list[Path]:
    """Return the Python files of the implementation; raise `EvidenceUnavailable` where there is none."""
    found = [path for path in files_of(task.implementation, context.root) if path.suffix == ".py"]
    if not found:
        raise EvidenceUnavailable(f"no Python file in {', '.join(task.implementation)} ({task.path})")
    return found


def bound_rules(names: Sequence[str], task: Task, context: Context) -> tuple[RuleTrace, ...]:
    """Apply the rules that criteria are bound to."""
    if not names:
        return ()
    try:
        known = rules_of(context)
    except EvidenceUnavailable as error:
        return tuple(RuleTrace(rule=name, sites=(), problem=str(error)) for name in names)
    rules = [known[name] for name in names if name in known]
    checked = check(rules, python_files(task, context), context.root)
    return tuple(
        _told(known[name], checked) if name in known else RuleTrace(rule=name, sites=(), problem=unknown(name, known))
        for name in names
    )


def _told(rule: Rule, checked: Checked, asked: Iterable[str] = ()) -> RuleTrace:
    """Return what a rule says and what it found, broken places first where there are too many to keep."""
    form, found = rule.form, checked.sites[rule.id]
    kept = found if len(found) <= MAX_SITES else sorted(found, key=lambda s: s.ok)[:MAX_SITES]
    return RuleTrace(
        rule=rule.id,
        sites=tuple(map(_site, kept)),
        problem=checked.problems.get(rule.id, ""),
        severity=form.severity,
        problem_text=form.problem,
        impact=form.impact,
        fix=form.fix,
        asked=tuple(asked),
    )


def _site(site: Site) -> RuleSite:
    return RuleSite(location=_place(site), ok=site.ok, message=site.message, trace=site.trace, undecided=site.undecided)


def _place(site: Site) -> Location:
    return Location(path=site.path, line=site.line, last_line=site.last_line)


MAX_PLACES = 1000


class PatternTrace(Model):
    """The places of live code that fit a pattern, or why it was not applied."""

    pattern: str
    within: str | None
    at_least: int
    places: tuple[Location, ...] = ()
    problem: str = ""
    checked: bool = True


def trace_patterns(bindings: Iterable[CodeBinding], resolver: Resolver) -> tuple[PatternTrace, ...]:
    """Apply the patterns of a task to its implementation, all at once."""
    asked = list({(one.pattern, one.in_, one.at_least): one for one in bindings if one.pattern}.values())
    if not asked:
        return ()
    files = resolver.python_files()
    rules = {text: _finding(str(i), text) for i, text in enumerate(dict.fromkeys(b.pattern or "" for b in asked))}
    checked = check(list(rules.values()), files, resolver.root)
    return tuple(_traced(binding, rules[binding.pattern or ""], checked, resolver) for binding in asked)


def _finding(name: str, text: str) -> Rule:
    """Return a rule that finds a pattern."""
    words = {"problem": "fits", "impact": "none", "fix": "none", "good": (), "bad": ()}
    form = RuleForm.model_validate({"id": f"pattern-{name}", "severity": Severity.LOW, "pattern": text, **words})
    return Rule(form, "the pattern", own=True)


def _traced(binding: CodeBinding, rule: Rule, checked: Checked, resolver: Resolver) -> PatternTrace:
    found = PatternTrace(pattern=binding.pattern or "", within=binding.in_, at_least=binding.at_least)
    if binding.in_ and not any(_is_in(resolver.shown(path), binding.in_) for path in resolver.python_files()):
        return found.model_copy(update={"problem": f"no Python file of the implementation is in {binding.in_}"})
    sites = [site for site in checked.sites[rule.id] if _is_in(site.path, binding.in_)]
    lines = dict.fromkeys(map(_place, sites))
    places = tuple(lines)[:MAX_PLACES]
    if len(lines) >= binding.at_least:
        return found.model_copy(update={"places": places})
    unread = [text for text in checked.unparsed if _is_in(text.partition(":")[0], binding.in_)]
    if why := checked.problems.get(rule.id) or next(iter(unread), ""):
        return found.model_copy(update={"places": places, "problem": f"not checked, {why}", "checked": False})
    where, count = binding.in_ or "the implementation", len(lines)
    few = f"{count} place{'s' if count > 1 else ''} of {where} fit it, not {binding.at_least}"
    problem = few if count else f"no live code of {where} fits it"
    return found.model_copy(update={"places": places, "problem": problem})


def _is_in(path: str, folder: str | None) -> bool:
    return folder is None or is_under(path, folder)


HARNESSES = frozenset({"pytest", "_pytest", "unittest", "nose", "coverage", "hypothesis"})
VARIABLES = frozenset({"PYTEST_CURRENT_TEST", "PYTEST_VERSION", "PYTEST_XDIST_WORKER", "GATES_WITNESS", "GATES_WORKER"})
PYTEST = frozenset({"pytest", "_pytest"})
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
    if asking is None or any(name.split(".")[0] in PYTEST for name in module.aliases.values()):
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
        """Parse the implementation and resolve every binding."""
        paths = python_files(task, context)
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
