"""The functions that a criterion is traced to, with what ran them: of each symbol all definitions that may count."""

from collections.abc import Iterable
from dataclasses import dataclass

from gates.check import EvidenceSet
from gates.evidence.lines.executed_lines import ExecutedLines, FunctionLines, named_tests
from gates.evidence.source_tree import SourceTree
from gates.model import Location
from gates.task.code_binding import CodeBinding
from gates.task.task import Criterion


@dataclass(frozen=True)
class TracedLines:
    """A function, the contexts that its traced lines ran in, and those in which it may only have been defined."""

    function: FunctionLines
    contexts: frozenset[str]
    unclear: frozenset[str]


def has_lines(binding: CodeBinding) -> bool:
    """Return whether a binding names lines."""
    return bool(binding.symbol or binding.pattern)


def code_of(criterion: Criterion, seen: ExecutedLines, evidence: EvidenceSet) -> tuple[list[TracedLines], str]:
    """Return the lines that a criterion is traced to, or why there are none to look for."""
    tree = evidence.get(SourceTree)
    if tree is None:
        return [], f"its code was not resolved ({evidence.why_missing(SourceTree)})"
    found: dict[tuple[str, int], TracedLines] = {}
    bindings = [binding for binding in criterion.code if has_lines(binding)]
    for one in (lines for binding in bindings for lines in lines_of(binding, tree, seen)):
        key = (one.function.location.path, one.function.location.line or 0)
        before = found.get(key, one)
        found[key] = TracedLines(one.function, one.contexts | before.contexts, one.unclear | before.unclear)
    if found:
        return [lines for _, lines in sorted(found.items(), key=lambda item: item[0])], ""
    missing = [binding.name for binding in bindings if not tree.places(binding)]
    if missing:
        return [], f"{missing[0]} was not found"
    return [], f"{bindings[0].name} has no code of its own that a call would run"


def lines_of(binding: CodeBinding, tree: SourceTree, seen: ExecutedLines) -> list[TracedLines]:
    """Return the lines of a symbol's functions, or of what fits a pattern; none where there is no function."""
    if binding.symbol:
        functions = [function for place in tree.ways(binding) for function in seen.within(place)]
        return [TracedLines(each, seen.contexts_of(each), seen.unclear_in(each)) for each in functions]
    around = [(place, seen.function_at(place)) for place in tree.places(binding)]
    return [_fitting(place, function, seen) for place, function in around if function is not None]


def may_be_called(code: Iterable[TracedLines], tests: Iterable[str]) -> bool:
    """Return whether one of some tests may have called code of which nobody can tell."""
    return not set(tests).isdisjoint(named_tests({name for lines in code for name in lines.unclear}))


def _fitting(place: Location, function: FunctionLines, seen: ExecutedLines) -> TracedLines:
    numbers = range(place.line or 1, (place.last_line or place.line or 1) + 1)
    ran = [seen.contexts_at(function, number) for number in numbers]
    unclear = [seen.unclear_at(function, number) for number in numbers]
    return TracedLines(function, frozenset().union(*ran), frozenset().union(*unclear))
