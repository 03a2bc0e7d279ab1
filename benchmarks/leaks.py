"""Look for leaks in callables that leak and in sound ones: was each found, with its line?

`python -m benchmarks.leaks` writes benchmarks/results/leaks.md; 1 if a leak is missed or named at another line, or a
sound callable is anything but passed. `--only WORD` runs those whose name holds a word, and writes nothing.
"""

import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.table import Row, tabulate
from gates.check import EvidenceSet
from gates.checks.leaks import CHECK, Leak, Leaks
from gates.config import Context
from gates.model import Finding, Level, Outcome
from gates.task.task import Criterion, task_model

CASES = Path(__file__).parent / "cases" / "leaked"
CALLABLE = re.compile(r"^(?:async )?def (\w+)\(.*\n(?:    .*\n|\n)*", re.MULTILINE)
UNKNOWN = {"memory_of_a_library"}  # what only the vague rungs see


@dataclass(frozen=True)
class Case:
    """A callable, the lines of its file that may be named for a leak, and what must be said of it."""

    module: str
    name: str
    lines: frozenset[int]
    expected: Outcome

    @property
    def shown(self) -> str:
        """Return the path of the callable."""
        return f"{self.module}:{self.name}"

    def kept(self, finding: Finding) -> bool:
        """Return whether what was found is what must be said."""
        place = finding.location
        right = place is not None and place.path == f"{self.module}.py" and place.line in self.lines
        return finding.outcome is self.expected and (finding.outcome is not Outcome.FAILED or right)


def cases() -> Iterator[Case]:
    """Yield each case of the files: a function that its file does not use itself."""
    for path in sorted(CASES.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines = frozenset(n for n, line in enumerate(text.splitlines(), 1) if "# <- here" in line)
        for name in CALLABLE.findall(text):
            if len(re.findall(rf"\b{name}\(", text)) > 1:
                continue
            leaks = Outcome.UNKNOWN if name in UNKNOWN else Outcome.FAILED
            yield Case(path.stem, name, lines, leaks if path.stem.startswith("planted") else Outcome.PASSED)


def judged(case: Case) -> Row:
    """Run one case; return what is said of it."""
    criterion = Criterion(id="AC1", text="No leak", level=Level.MUST)
    task = task_model()(
        id="L1", title="Leaks", implementation=(".",), criteria=(criterion,),
        leaks=(Leak(call=case.shown),),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        context = Context(root=CASES, evidence=Path(folder), python=sys.executable, timeout_s=300)
        leaks = Leaks.collect(task, context)
    (finding,) = CHECK.judge(task, EvidenceSet({Leaks: leaks}))
    failed = finding.outcome is Outcome.FAILED
    return (
        case.shown, finding.outcome.value, case.kept(finding), str(finding.location) if failed else "-",
        finding.actual if failed else "-", str(leaks.seen[0].epochs),
    )  # fmt: skip


def main() -> int:
    """Print and write the table."""
    return tabulate(
        "leaks", __doc__ or "", "Leaks", ((case.shown, partial(judged, case)) for case in cases()), what="callables",
        columns=("callable", "said", "kept", "line", "growth", "epochs"),
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
