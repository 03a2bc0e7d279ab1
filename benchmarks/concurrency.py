"""Do things at once that come to something else then, and sound ones: was each found?

`python -m benchmarks.concurrency` writes benchmarks/results/concurrency.md; 1 if a planted one is missed,
or a sound one is anything but passed. `--only WORD` runs those whose name holds a word.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.table import Row, tabulate
from gates.check import EvidenceSet
from gates.checks.concurrency import CHECK, Concurrency
from gates.config import Context
from gates.model import Level, Outcome
from gates.task.task import Criterion, task_model

CASES = Path(__file__).parent / "cases" / "together"
BAD, GOOD = "planted_together", "sound_together"
Asked = dict[str, Any]


def used(module: str, name: str, read: str = "counted") -> Asked:
    """Return a tracker that two threads use 1,000 times each."""
    return {"shared": f"{module}:{name}", "use": f"{module}:{name}.log", "read": f"{module}:{read}"}


def called(module: str, name: str, *each: object) -> Asked:
    """Return a function that each of two calls with an argument of its own."""
    return {"call": f"{module}:{name}", "each": [[one] for one in each] if each else [[], []]}


PLANTED = (
    used(BAD, "CountingTracker"), used(BAD, "StepTracker"), used(BAD, "BatchedTracker", "flushed"),
    called(BAD, "configured", 0.1, 0.2), called(BAD, "seeded", 1, 2), called(BAD, "buffered", 40, 50),
    called(BAD, "iterated", 20, 20), called(BAD, "crossed"),
)  # fmt: skip
FUNCTIONS = ("own_generator", "own_thread_state", "cached", "pooled", "logged", "nested")
SOUND = (
    *(used(GOOD, f"{name}Tracker") for name in ("Locked", "Appending", "Queue", "Database", "Numbering")),
    *(called(GOOD, name, 20, 30) for name in FUNCTIONS),
)


def main() -> int:
    """Print and write the table."""
    cases = [*((asked, Outcome.FAILED) for asked in PLANTED), *((asked, Outcome.PASSED) for asked in SOUND)]
    return tabulate(
        "concurrency", __doc__ or "", "Concurrency", ((name(case[0]), partial(judged, *case)) for case in cases),
        what="things", columns=("done at once", "said", "kept", "what was seen"),
    )  # fmt: skip


def name(asked: Asked) -> str:
    """Return what is done at once."""
    return str(asked.get("call") or asked["shared"])


def judged(asked: Asked, expected: Outcome) -> Row:
    """Do one thing at once; return what is said of it."""
    criterion = Criterion(id="AC1", text="The same at once", level=Level.MUST)
    told = {"id": "C1", "title": "At once", "implementation": ["."], "criteria": [criterion], "concurrency": [asked]}
    task = task_model().model_validate(told)
    with tempfile.TemporaryDirectory() as folder:
        context = Context(root=CASES, evidence=Path(folder), python=sys.executable, timeout_s=120)
        finding, *_ = CHECK.judge(task, EvidenceSet({Concurrency: Concurrency.collect(task, context)}))
    kept = finding.outcome is expected
    seen = finding.actual if len(finding.actual) < 100 else f"{finding.actual[:96]} ..."
    return name(asked), finding.outcome.value, kept, seen


if __name__ == "__main__":
    sys.exit(main())
