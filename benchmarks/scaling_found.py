"""Measure steps that grow as a square and sound ones: was each found?

`python -m benchmarks.scaling_found` writes benchmarks/results/scaling_found.md; 1 if a square does not fail, or a
sound step does. `--only WORD` runs those whose name holds a word, and writes nothing.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.table import Row, tabulate
from gates.check import EvidenceSet
from gates.checks.scaling import CHECK, Scaling
from gates.config import Context
from gates.model import Level, Outcome
from gates.task.task import Criterion, task_model

CASES = Path(__file__).parent / "cases" / "scaled"
TIME, MEMORY, CALLS = "step_cpu_time_s", "peak_memory_bytes", "python_calls"
FEW, SOME, MANY = [100, 200, 400, 800], [128, 256, 512, 1024], [1000, 2000, 4000, 8000, 16000]
LISTS = [500, 1000, 2000, 4000]
PLANTED = (
    ("duplicates", TIME, FEW), ("searched", TIME, LISTS), ("joined", TIME, LISTS), ("overhead_hides_it", TIME, FEW),
    ("in_a_helper", TIME, FEW), ("all_pairs", MEMORY, SOME), ("calls_of_calls", CALLS, FEW),
)  # fmt: skip
SOUND = (
    ("linear", TIME, MANY), ("with_overhead", TIME, MANY), ("constant", TIME, MANY), ("ordered", TIME, MANY),
    ("counted", TIME, MANY), ("held", MEMORY, SOME), ("linear", CALLS, MANY), ("called", CALLS, MANY),
    ("ordered", CALLS, MANY), ("constant", MEMORY, SOME),
)  # fmt: skip


def main() -> int:
    """Print and write the table."""
    steps = [
        (f"{module}:{name}", of, sizes, module == "planted_steps")
        for module, cases in (("planted_steps", PLANTED), ("sound_steps", SOUND)) for name, of, sizes in cases
    ]  # fmt: skip
    return tabulate(
        "scaling_found", __doc__ or "", "Scaling", ((step[0], partial(judged, *step)) for step in steps), what="steps",
        columns=("step", "of", "said", "kept", "exponent"), note="; asked is an exponent of 1.3 at most",
    )  # fmt: skip


def judged(call: str, of: str, sizes: list[int], planted: bool) -> Row:
    """Measure one step; return what is said of it."""
    asked: dict[str, Any] = {
        "call": call, "of": of, "over": {"batch": sizes}, "exponent": {"at_most": 1.3}, "budget_s": 10
    }  # fmt: skip
    criterion = Criterion(id="AC1", text="Linear", level=Level.MUST)
    told = {"id": "S1", "title": "Sizes", "implementation": ["."], "criteria": [criterion], "scaling": [asked]}
    task = task_model().model_validate(told)
    with tempfile.TemporaryDirectory() as folder:
        context = Context(root=CASES, evidence=Path(folder), python=sys.executable, timeout_s=200)
        finding, *_ = CHECK.judge(task, EvidenceSet({Scaling: Scaling.collect(task, context)}))
    failed = finding.outcome is Outcome.FAILED
    return call, of, finding.outcome.value, failed is planted, finding.actual


if __name__ == "__main__":
    sys.exit(main())
