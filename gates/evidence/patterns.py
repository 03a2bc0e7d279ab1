"""Patterns that criteria are bound to, resolved to the places of live code in the implementation that fit."""

from collections.abc import Iterable

from gates.code.symbols import Resolver
from gates.model import Location, Model, Severity
from gates.project.files import is_under
from gates.scan.checking import Checked, check
from gates.scan.form import RuleForm
from gates.scan.pattern import Pattern
from gates.scan.rule import Piece, Rule
from gates.task.measurement import CodeBinding

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
    rules = {text: _rule(str(i), text) for i, text in enumerate(dict.fromkeys(b.pattern or "" for b in asked))}
    checked = check(list(rules.values()), files, resolver.root)
    return tuple(_traced(binding, rules[binding.pattern or ""], checked, resolver) for binding in asked)


def _rule(name: str, text: str) -> Rule:
    """Return a rule that finds a pattern."""
    words = {"problem": "fits", "impact": "none", "fix": "none", "good": (), "bad": ()}
    form = RuleForm.model_validate({"id": f"pattern-{name}", "severity": Severity.LOW, "pattern": text, **words})
    return Rule(form, "the pattern", piece=Piece((Pattern.parse(text),), (), (), (), (), (), (), {}), own=True)


def _traced(binding: CodeBinding, rule: Rule, checked: Checked, resolver: Resolver) -> PatternTrace:
    found = PatternTrace(pattern=binding.pattern or "", within=binding.in_, at_least=binding.at_least)
    if binding.in_ and not any(_is_in(resolver.shown(path), binding.in_) for path in resolver.python_files()):
        return found.model_copy(update={"problem": f"no Python file of the implementation is in {binding.in_}"})
    sites = [site for site in checked.sites[rule.id] if _is_in(site.path, binding.in_)]
    lines = dict.fromkeys(Location(path=site.path, line=site.line, last_line=site.last_line) for site in sites)
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
