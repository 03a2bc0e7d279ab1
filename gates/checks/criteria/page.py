"""What the report tells of criteria: the code they are traced to, their tests, and what belongs to none of them."""

from collections.abc import Iterator, Sequence

from gates.check import EvidenceSet
from gates.code.symbols import SymbolTrace
from gates.evidence.code_rules import RuleTrace
from gates.evidence.lines.executed_lines import ExecutedLines
from gates.evidence.patterns import PatternTrace
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.bound_tests import tests_of
from gates.evidence.tests.pytest_run import PytestRun
from gates.model import Location
from gates.report import Section
from gates.task.task import Task

LISTED, FEW, SHOWN = 200, 20, 5
NOT_CHECKED = "not checked"


def page(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell what was traced: symbols with their lines, tests bound to each criterion, and what is bound to none."""
    tree, run = evidence.get(SourceTree), evidence.get(PytestRun)
    if tree is None:
        yield Section(title="Files Read", text=f"None: {evidence.why_missing(SourceTree)}.")
    else:
        yield Section(
            title="Expected and Actual Architecture",
            text="What the code that criteria are bound to must be and use, and what it does.",
            columns=("Code", "Expected", "Actual", "Kept"),
            rows=(
                *map(_symbol_row, dict.fromkeys(tree.symbols)),
                *map(_pattern_row, tree.patterns),
                *map(_rule_row, tree.rules),
            ),
        )
        yield Section(title="Metrics of this Verification", facts=tuple(_metrics(task, tree)))
    bound = [(c.id, t.id, t.outcome.value) for c in task.criteria for t in tests_of(task, c, run)]
    more = f"The first {LISTED} of {len(bound)}; all of them are in evidence/PytestRun.json."
    yield Section(
        title="Tests by Criterion", text=more if len(bound) > LISTED else "",
        columns=("Criterion", "Test", "Outcome"), rows=tuple(bound[:LISTED]),
    )  # fmt: skip
    if not task.only:  # else they may belong to a criterion that was not asked for
        yield from _loose_tests(task, run)
        yield from _loose_code(task, evidence.get(ExecutedLines), tree)


def _metrics(task: Task, tree: SourceTree) -> Iterator[tuple[str, str]]:
    yield "Files analysed", str(tree.files)
    yield "Files not parsed", "; ".join(tree.unparsed) or "none"
    yield "Requirements traced", str(len(task.criteria))
    yield "Symbols resolved", f"{sum(t.location is not None for t in tree.symbols)} of {len(tree.symbols)}"
    yield "Code rules applied", str(len(tree.rules))
    if tree.patterns:
        yield "Patterns applied", str(len(tree.patterns))


def _loose_tests(task: Task, run: PytestRun | None) -> Iterator[Section]:
    if run is not None:
        bound = {test.id for criterion in task.criteria for test in tests_of(task, criterion, run)}
        loose = [test for test in run.tests if test.id not in bound]
        yield Section(
            title="Tests Without a Criterion",
            text=f"{len(loose)} of {len(run.tests)} tests belong to no criterion of {task.id}.{_first(task.id, loose)}",
            columns=("Test", "Place"),
            rows=tuple((test.id, str(test.location)) for test in loose[:FEW]),
        )


def _loose_code(task: Task, seen: ExecutedLines | None, tree: SourceTree | None) -> Iterator[Section]:
    if seen is not None and tree is not None:
        public = [function for function in seen.functions if function.counts]
        places = [place for c in task.criteria for binding in c.code for place in tree.places(binding)]
        spare = [function for function in public if not any(function.location.meets(place) for place in places)]
        yield Section(
            title="Public Code Without a Criterion",
            text=f"{len(spare)} of {len(public)} public functions belong to no criterion of {task.id}."
            f"{_first(task.id, spare)}",
            columns=("Function", "Place"),
            rows=tuple((function.name, str(function.location)) for function in spare[:FEW]),
        )


def _first(task: str, found: Sequence[object]) -> str:
    return f" The first {FEW}; `gates trace {task} --format json` has all:" if len(found) > FEW else ""


def _symbol_row(trace: SymbolTrace) -> tuple[str, ...]:
    """Return a symbol with what it must use and the lines that do."""
    expected = f"uses {', '.join(trace.wanted)}" if trace.wanted else "exists"
    if trace.location is None:
        return trace.symbol, expected, trace.problem, "no" if trace.checked else NOT_CHECKED
    used = [f"{use.name} in {', '.join(map(str, use.lines)) or 'no line'}" for use in trace.uses]
    kept = all(use.lines for use in trace.uses)
    return trace.symbol, expected, "; ".join([str(trace.location), *used]), "yes" if kept else "no"


def _pattern_row(trace: PatternTrace) -> tuple[str, ...]:
    where = f" in {trace.within}" if trace.within else ""
    expected = f"{trace.at_least} place{'s' if trace.at_least > 1 else ''} of live code"
    kept = "yes" if not trace.problem else "no" if trace.checked else NOT_CHECKED
    return f"pattern {trace.pattern}{where}", expected, trace.problem or _places(trace.places), kept


def _rule_row(trace: RuleTrace) -> tuple[str, ...]:
    name, expected = f"rule {trace.rule}", "finds its subject, and finds it kept"
    broken = [site for site in trace.sites if not site.ok]
    if trace.problem:
        return name, expected, trace.problem, NOT_CHECKED
    if broken:
        told = f"{broken[0].location}: {' -> '.join(broken[0].trace) or broken[0].message}"
        return name, expected, told, NOT_CHECKED if all(site.undecided for site in broken) else "no"
    if not trace.sites:
        return name, expected, "no code that it speaks of", NOT_CHECKED
    return name, expected, f"kept in {_places([site.location for site in trace.sites])}", "yes"


def _places(places: Sequence[Location]) -> str:
    more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
    return ", ".join(map(str, places[:SHOWN])) + more
