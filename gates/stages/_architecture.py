"""What patterns, rules and entries say of the architecture, beside what the code does."""

from collections.abc import Iterator

from gates.evidence.code_rules import RuleTrace
from gates.evidence.patterns import PatternTrace
from gates.evidence.reach import Reached, ReachTrace
from gates.evidence.source_tree import SourceTree
from gates.model import Location

SHOWN = 5
Row = tuple[str, str, str, str]
NOT_CHECKED = "not checked"


def architecture_rows(tree: SourceTree) -> Iterator[Row]:
    """Yield a row for each pattern, each bound rule, and each entry that must call what a criterion is bound to."""
    yield from map(_pattern_row, tree.patterns)
    yield from map(_rule_row, tree.rules)
    yield from map(_reach_row, tree.reaches)


def _pattern_row(trace: PatternTrace) -> Row:
    where = f" in {trace.within}" if trace.within else ""
    expected = f"{trace.at_least} place{'s' if trace.at_least > 1 else ''} of live code"
    kept = "yes" if not trace.problem else "no" if trace.checked else NOT_CHECKED
    return f"pattern {trace.pattern}{where}", expected, trace.problem or _places(trace.places), kept


def _rule_row(trace: RuleTrace) -> Row:
    name, expected = f"rule {trace.rule}", "finds its subject, and finds it kept"
    if trace.problem:
        return name, expected, trace.problem, NOT_CHECKED
    broken = [site for site in trace.sites if not site.ok]
    if not broken:
        kept = [site.location for site in trace.sites]
        return (
            name,
            expected,
            f"kept in {_places(kept)}" if kept else "no code that it speaks of",
            "yes" if kept else "no",
        )
    first = broken[0]
    told = f"{first.location}: {' -> '.join(first.trace) or first.message}"
    return name, expected, told, NOT_CHECKED if all(site.undecided for site in broken) else "no"


def _reach_row(trace: ReachTrace) -> Row:
    expected = f"called from {trace.entry}"
    if trace.reached is Reached.YES:
        return trace.name, expected, " -> ".join(trace.way) or "is the entry", "yes"
    called = f"called by {'; '.join(trace.callers)}" if trace.callers else "nothing calls it"
    actual = trace.problem if trace.problem and not trace.callers else f"{trace.problem}; {called}".lstrip("; ")
    return trace.name, expected, actual, "no" if trace.reached is Reached.NO else NOT_CHECKED


def _places(places: list[Location] | tuple[Location, ...]) -> str:
    more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
    return ", ".join(map(str, places[:SHOWN])) + more
