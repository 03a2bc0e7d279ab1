"""What the report of the business logic gate tells beside its findings."""

from collections.abc import Iterator

from gates.check import EvidenceSet
from gates.evidence.bound_tests import tests_of
from gates.evidence.calculations import Calculations
from gates.evidence.pytest_run import PytestRun
from gates.evidence.recording import Recording
from gates.evidence.source_tree import SourceTree
from gates.evidence.symbols import SymbolTrace
from gates.report import Section
from gates.stages import _own_lines
from gates.stages._architecture import architecture_rows
from gates.stages._execution_sections import LISTED, listed
from gates.task.task import Task


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell what was traced: files read, symbols with their lines, tests bound to each criterion."""
    tree, run = evidence.get(SourceTree), evidence.get(PytestRun)
    if tree is None:
        yield Section(title="Files Read", text=f"None: {evidence.why_missing(SourceTree)}.")
    else:
        yield Section(
            title="Expected and Actual Architecture",
            text="What the code that criteria are bound to must be, use and be called from, and what it does.",
            columns=("Code", "Expected", "Actual", "Kept"),
            rows=(*map(_symbol_row, dict.fromkeys(tree.symbols)), *architecture_rows(tree)),
        )
        yield Section(
            title="Metrics of this Verification",
            facts=(
                ("Files analysed", str(tree.files)),
                ("Files not parsed", "; ".join(tree.unparsed) or "none"),
                ("Requirements traced", str(len(task.criteria))),
                (
                    "Symbols resolved",
                    f"{sum(t.location is not None for t in tree.symbols)} of {len(tree.symbols)}",
                ),
                ("Code rules applied", str(len(tree.rules))),
                *_more_metrics(task, tree, evidence),
            ),
        )
    yield from _own_lines.describe(task, evidence)
    bound = [(c.id, t.id, t.outcome.value) for c in task.criteria for t in tests_of(task, c, run)]
    yield Section(
        title="Tests by Criterion",
        text=listed(len(bound)),
        columns=("Criterion", "Test", "Outcome"),
        rows=tuple(bound[:LISTED]),
    )


def _more_metrics(task: Task, tree: SourceTree, evidence: EvidenceSet) -> Iterator[tuple[str, str]]:
    """Yield what else was tried, as far as the task asks for it."""
    if tree.patterns:
        yield "Patterns applied", str(len(tree.patterns))
    if tree.reaches:
        yield "Calls followed to an entry", str(len(tree.reaches))
    called, steps = evidence.get(Calculations), evidence.get(Recording)
    for title, parts in (
        ("Calculations tried", task.calculations),
        ("Edge cases tried", task.edge_cases),
        ("Properties tried", task.properties),
    ):
        if parts:
            yield title, str(len(parts)) if called else f"0 of {len(parts)}"
    if task.training_steps:
        yield "Training steps recorded", f"{len(steps.steps) if steps else 0} of {len(task.training_steps)}"


def _symbol_row(trace: SymbolTrace) -> tuple[str, ...]:
    """Return a symbol with what it must use and the lines that do."""
    expected = f"uses {', '.join(trace.wanted)}" if trace.wanted else "exists"
    if trace.location is None:
        return trace.symbol, expected, trace.problem, "not checked" if not trace.checked else "no"
    used = [f"{use.name} in {', '.join(map(str, use.lines)) or 'no line'}" for use in trace.uses]
    kept = all(use.lines for use in trace.uses)
    return trace.symbol, expected, "; ".join([str(trace.location), *used]), "yes" if kept else "no"
