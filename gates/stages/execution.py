"""Stage 2, execution: did the tests run to their end and pass, and does the production code run?"""

from gates.check import discover
from gates.evidence.entry_points import EntryPointRuns
from gates.evidence.executed_lines import ExecutedLines
from gates.evidence.pytest_run import PytestRun
from gates.evidence.source_tree import SourceTree
from gates.model import Basis, Row
from gates.stages import _coverage, _entries, _suite
from gates.stages._part import in_order, part
from gates.stages.gate import Gate

NAME = "execution"
PARTS = (
    part(NAME, 10, _suite, PytestRun),
    part(NAME, 20, _entries, EntryPointRuns, row=Row.TEST, label="entry point"),
    # what was executed is read after the run
    part(NAME, 30, _coverage, SourceTree, ExecutedLines, basis=Basis.READ, row=Row.CODE),
)

GATE = Gate(
    name=NAME, title="Execution Verification", stage=2, weight=40, code="EX",
    checks=in_order(NAME, PARTS, discover()),
)  # fmt: skip
