"""Patterns that criteria are bound to, resolved to the places of live code in the implementation that fit."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from gates.code.meanings import deleted_after, replaced_by
from gates.code.symbols import Resolver
from gates.code.syntax import Definition, Unparsed, live_nodes
from gates.model import Location, Model, Severity
from gates.project.files import is_under
from gates.scan.checking import Checked, check
from gates.scan.pattern import Pattern
from gates.scan.rule import Rule, RuleForm, Site
from gates.task.measurement import CodeBinding

ALSO: dict[type[ast.AST], type[ast.AST]] = {
    ast.With: ast.AsyncWith,
    ast.For: ast.AsyncFor,
    ast.FunctionDef: ast.AsyncFunctionDef,
    ast.Attribute: ast.Name,
    ast.Name: ast.Attribute,
}


class Written:
    """Looks for code of a pattern's kind in lines of files; each file is read once."""

    def __init__(self, pattern: Pattern, resolver: Resolver) -> None:
        kind = type(pattern.body)
        self._kinds = (kind, ALSO.get(kind, kind))
        self._words = pattern.words
        self._resolver = resolver
        self._files: dict[str, tuple[dict[int, list[ast.AST]], frozenset[ast.AST]]] = {}

    def may_run(self, place: Location) -> bool:
        """Return whether some code of the kind that begins in a line can run, or none is found there."""
        if place.path not in self._files:
            self._files[place.path] = self._read(place.path)
        by_line, live = self._files[place.path]
        here = by_line.get(place.line or 1, [])
        return not here or any(node in live for node in here)

    def dead(self, path: str) -> list[Location]:
        """Return where code with all names of the pattern stands in a file that never runs."""
        if path not in self._files:
            self._files[path] = self._read(path)
        by_line, live = self._files[path]
        return [
            Location(path=path, line=line, last_line=getattr(node, "end_lineno", None) or line)
            for line, nodes in sorted(by_line.items())
            for node in nodes[:1]
            if node not in live and self._words <= _names_in(node)
        ]

    def _read(self, path: str) -> tuple[dict[int, list[ast.AST]], frozenset[ast.AST]]:
        found: dict[int, list[ast.AST]] = defaultdict(list)
        try:
            tree = self._resolver.module(self._resolver.root / path).tree
        except Unparsed:
            return found, frozenset()
        for node in ast.walk(tree):
            if isinstance(node, self._kinds):
                found[getattr(node, "lineno", 1)].append(node)
        return found, frozenset(live_nodes(tree))


MAX_PLACES = 1000
MAX_DEAD = 10


class PatternTrace(Model):
    """The places of live code that fit a pattern, and those that fit and never run; or why it was not applied."""

    pattern: str
    within: str | None
    at_least: int
    places: tuple[Location, ...] = ()
    idle: tuple[str, ...] = ()
    problem: str = ""
    checked: bool = True


def trace_patterns(bindings: Iterable[CodeBinding], resolver: Resolver) -> tuple[PatternTrace, ...]:
    """Apply the patterns of a task to its implementation, all at once."""
    asked = list({(one.pattern, one.in_, one.at_least): one for one in bindings if one.pattern}.values())
    if not asked:
        return ()
    files = resolver.python_files()
    rules = {text: _rule(str(i), text) for i, text in enumerate(dict.fromkeys(b.pattern or "" for b in asked))}
    checked = check(list(rules.values()), files, resolver.root)
    return tuple(_traced(binding, rules[binding.pattern or ""], checked, resolver) for binding in asked)


def _rule(name: str, text: str) -> Rule:
    """Return a rule that finds a pattern."""
    words = dict.fromkeys(("problem", "impact", "fix"), "none")
    form = {"id": f"pattern-{name}", "severity": Severity.LOW, "pattern": text, "good": (), "bad": (), **words}
    return Rule(RuleForm.model_validate(form), "the pattern", own=True)


def _traced(binding: CodeBinding, rule: Rule, checked: Checked, resolver: Resolver) -> PatternTrace:
    found = PatternTrace(pattern=binding.pattern or "", within=binding.in_, at_least=binding.at_least)
    shown = [resolver.shown(path) for path in resolver.python_files()]
    if binding.in_ and not any(_is_in(path, binding.in_) for path in shown):
        problem = f"no Python file of the implementation is in {binding.in_}"
        return found.model_copy(update={"problem": problem})
    sites = [site for site in checked.sites[rule.id] if _is_in(site.path, binding.in_)]
    places, idle = _live(sites, Pattern.parse(binding.pattern or ""), resolver)
    seen = {"places": places[:MAX_PLACES], "idle": idle}
    if len(places) >= binding.at_least:
        return found.model_copy(update=seen)
    unread = [text for text in checked.unparsed if _is_in(text.partition(":")[0], binding.in_)]
    if why := checked.problems.get(rule.id) or next(iter(unread), ""):
        return found.model_copy(update={**seen, "problem": f"not checked, {why}", "checked": False})
    idle = idle or _dead(binding, shown, resolver)
    return found.model_copy(update={**seen, "idle": idle, "problem": _missing(binding, places, idle)})


def _dead(binding: CodeBinding, paths: Iterable[str], resolver: Resolver) -> tuple[str, ...]:
    """Say where code with the names of a pattern stands in lines that no run comes to: a search sees live code only."""
    pattern = Pattern.parse(binding.pattern or "")
    written = Written(pattern, resolver)
    found = [place for path in paths if pattern.words and _is_in(path, binding.in_) for place in written.dead(path)]
    return tuple(f"{place}: nothing runs it" for place in found[:MAX_DEAD])


def _missing(binding: CodeBinding, places: Sequence[Location], idle: Sequence[str]) -> str:
    where = binding.in_ or "the implementation"
    never = f" ({idle[0]})" if idle else ""
    if not places:
        return f"no live code of {where} fits it{never}"
    return f"{len(places)} place{'s' if len(places) > 1 else ''} of {where} fit it, not {binding.at_least}{never}"


def _is_in(path: str, folder: str | None) -> bool:
    return folder is None or is_under(path, folder)


def _live(sites: Iterable[Site], pattern: Pattern, resolver: Resolver) -> tuple[tuple[Location, ...], tuple[str, ...]]:
    """Part the places in those that may run and, in words, those in code that nothing uses or that is replaced."""
    places: dict[Location, None] = {}
    idle: dict[str, None] = {}
    written = Written(pattern, resolver)
    for site in sites:
        place = Location(path=site.path, line=site.line, last_line=site.last_line)
        why = _never_run(place, resolver) if written.may_run(place) else "nothing runs it"
        if why:
            idle[f"{place}: {why}"] = None
        else:
            places[place] = None
    return tuple(places), tuple(idle)


def _never_run(place: Location, resolver: Resolver) -> str:
    """Return why the definition that a place stands in is never run, or nothing."""
    try:
        module = resolver.module(resolver.root / place.path)
    except Unparsed:
        return ""
    body, names = module.tree.body, []
    for node in _around(body, place.line or 1):
        names.append(node.name)
        later = [n for n in body if isinstance(n, Definition) and n.name == node.name and n.lineno > node.lineno]
        if node in body and any(not other.decorator_list for other in later) and not node.decorator_list:
            return f"{'.'.join(names)} is defined again in line {later[-1].lineno}"
        if node in body and (gone := deleted_after(body, node)):
            return f"{'.'.join(names)} is deleted in line {gone.lineno}"
        if node in body and (other := replaced_by(body, node.name, node.lineno)):
            return f"{'.'.join(names)} is given another value in line {other.lineno}"
        if not isinstance(node, ast.ClassDef):
            return ""
        body = node.body
    return ""


def _around(body: Sequence[ast.stmt], line: int) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Yield the definitions that a line stands in, from the outside in."""
    for node in body:
        if not node.lineno <= line <= (node.end_lineno or line):
            continue
        if isinstance(node, Definition):
            yield node
        blocks = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
        blocks += [part.body for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ()))]
        for block in blocks:
            yield from _around(block if isinstance(block, list) else [], line)


def _names_in(node: ast.AST) -> set[str]:
    found = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return found | {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
