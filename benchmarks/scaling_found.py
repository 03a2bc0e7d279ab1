"""Measure steps that grow as a square and sound ones: was each found, with its line?

`python -m benchmarks.scaling_found` writes benchmarks/results/scaling_found.md; 1 if a square passes, or fails without
its line, or a sound step fails. `--only WORD` runs those whose name holds a word, and writes nothing.
"""

import argparse
import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gates.context import Context
from gates.evidence.kind import EvidenceSet
from gates.evidence.scaling import Scaling
from gates.model import Level, Outcome
from gates.stages import _scaling
from gates.task import Criterion, Task

HERE = Path(__file__).parent
CASES = HERE.parent / "tests" / "scaled"
RESULTS = HERE / "results" / "scaling_found.md"
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="WORD")
    only = parser.parse_args().only
    rows, wrong = ["| step | of | said | kept | exponent | line | seconds |", "|---|---|---|---|---|---|---|"], 0
    for module, cases in (("planted_steps", PLANTED), ("sound_steps", SOUND)):
        for name, of, sizes in cases:
            if only not in name:
                continue
            row, kept = look(f"{module}:{name}", of, sizes, planted=module == "planted_steps")
            wrong += not kept
            rows.append(row)
            print(row, flush=True)
    said = f"{len(rows) - 2} steps, {wrong} of them judged wrongly; asked is an exponent of 1.3 at most."
    print(said)
    if not only:
        machine = f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
        text = "\n".join(
            ["# Scaling", "", "`python -m benchmarks.scaling_found`", "", f"{said} {machine}.", "", *rows, ""]
        )
        RESULTS.write_text(text, encoding="utf-8")
    return int(wrong > 0)


def look(call: str, of: str, sizes: list[int], *, planted: bool) -> tuple[str, bool]:
    """Measure one step; return its row, and whether what is said of it is right."""
    asked: dict[str, Any] = {
        "call": call,
        "of": of,
        "over": {"batch": sizes},
        "exponent": {"at_most": 1.3},
        "budget_s": 10,
    }
    criterion = Criterion(id="AC1", text="Linear", level=Level.MUST)
    told = {"id": "S1", "title": "Sizes", "implementation": ["."], "criteria": [criterion], "scaling": [asked]}
    task, began = Task.model_validate(told), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        context = Context(root=CASES, evidence=Path(folder), python=sys.executable, timeout_s=200)
        finding, *_ = _scaling.judge(task, EvidenceSet({Scaling: Scaling.collect(task, context)}))
    failed, place = finding.outcome is Outcome.FAILED, finding.location
    kept = failed and bool(place and place.line and _marked(place.path, place.line)) if planted else not failed
    row = (f"| {call} | {of} | {finding.outcome.value} | {'yes' if kept else '**no**'} | {finding.actual} "
           f"| {place if failed else '-'} | {time.monotonic() - began:.0f} |")  # fmt: skip
    return row, kept


def _marked(path: str, line: int) -> bool:
    file = CASES / path
    return file.is_file() and "# <- here" in file.read_text(encoding="utf-8").splitlines()[line - 1]


if __name__ == "__main__":
    sys.exit(main())
