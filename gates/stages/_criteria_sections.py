"""What the report of the business logic gate tells beside its findings."""

from collections.abc import Iterator

from gates.evidence.kind import EvidenceSet
from gates.evidence.pytest_run import PytestRun
from gates.evidence.source_tree import SourceTree
from gates.model import Section
from gates.stages._execution_sections import LISTED, listed
from gates.stages.bound_tests import tests_of
from gates.task import Task


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell what was traced: files read, symbols with their lines, tests bound to each criterion."""
    tree, run = evidence.get(SourceTree), evidence.get(PytestRun)
    if tree is None:
        yield Section(title="Files Read", text=f"None: {evidence.why_missing(SourceTree)}.")
    else:
        yield Section(
            title="Symbols",
            columns=("Symbol", "Place", "Uses"),
            rows=tuple(
                (
                    t.symbol,
                    str(t.location or t.problem),
                    "; ".join(f"{u.name}: {len(u.lines)}" for u in t.uses),
                )
                for t in dict.fromkeys(tree.symbols)
            ),
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
            ),
        )
    bound = [(c.id, t.id, t.outcome.value) for c in task.criteria for t in tests_of(task, c, run)]
    yield Section(
        title="Tests by Criterion",
        text=listed(len(bound)),
        columns=("Criterion", "Test", "Outcome"),
        rows=tuple(bound[:LISTED]),
    )
