"""Look for leaks in callables that leak and in sound ones: was each found, with its line?

`python -m benchmarks.leaks` writes benchmarks/results/leaks.md; 1 if a leak is missed or named at another line, or a
sound callable is anything but passed. `--only WORD` runs those whose name holds a word, and writes nothing.
"""

import argparse
import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gates.context import Context
from gates.evidence.kind import EvidenceSet
from gates.evidence.leaks import Leaks
from gates.leak import Leak
from gates.model import Finding, Level, Outcome
from gates.stages import _leaks
from gates.task import Criterion, Task

HERE = Path(__file__).parent
CASES = HERE.parent / "tests" / "leaked"
RESULTS = HERE / "results" / "leaks.md"
CALLABLE = re.compile(r"^(?:async )?def (\w+)\(.*\n(?:    .*\n|\n)*", re.MULTILINE)
UNKNOWN = {"memory_of_a_library"}  # what only the vague rungs see


@dataclass(frozen=True)
class Case:
    """A callable, the lines of its file that may be named for a leak, and what must be said of it."""

    module: str
    name: str
    lines: frozenset[int]
    expected: Outcome

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


def look(case: Case, folder: Path) -> tuple[Finding, int, float]:
    """Run one case; return what is said of it, after how many epochs and seconds."""
    criterion = Criterion(id="AC1", text="No leak", level=Level.MUST)
    task = Task(
        id="L1", title="Leaks", implementation=(".",), criteria=(criterion,),
        leaks=(Leak(call=f"{case.module}:{case.name}"),),
    )  # fmt: skip
    began = time.monotonic()
    leaks = Leaks.collect(task, Context(root=CASES, evidence=folder, python=sys.executable, timeout_s=300))
    (finding,) = _leaks.judge(task, EvidenceSet({Leaks: leaks}))
    (run,) = leaks.runs
    return finding, run.last.epochs, time.monotonic() - began


def main() -> int:
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="WORD")
    only = parser.parse_args().only
    rows, wrong = ["| callable | said | kept | line | epochs | seconds | growth |", "|---|---|---|---|---|---|---|"], 0
    for case in cases():
        if only not in f"{case.module}:{case.name}":
            continue
        with tempfile.TemporaryDirectory() as folder:
            finding, epochs, seconds = look(case, Path(folder))
        kept = case.kept(finding)
        wrong += not kept
        line = str(finding.location) if finding.outcome is Outcome.FAILED else "-"
        growth = finding.actual if finding.outcome is Outcome.FAILED else "-"
        rows.append(
            f"| {case.module}:{case.name} | {finding.outcome.value} | {'yes' if kept else '**no**'} | {line} "
            f"| {epochs} | {seconds:.0f} | {growth} |"
        )
        print(rows[-1], flush=True)
    said = f"{len(rows) - 2} callables, {wrong} of them judged wrongly."
    print(said)
    if not only:
        machine = f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
        text = "\n".join(["# Leaks", "", "`python -m benchmarks.leaks`", "", f"{said} {machine}.", "", *rows, ""])
        RESULTS.write_text(text, encoding="utf-8")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
