"""Take hot paths apart, planted and sound: was each wait found, with its line, and nothing in sound training?

`python -m benchmarks.hot_path` writes benchmarks/results/hot_path.md; 1 if what is planted is missed or named at
another line, or anything is found in sound training. `--only WORD` runs those whose name holds it, and writes nothing.
"""

import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.table import Row, tabulate
from gates.check import EvidenceSet
from gates.checks.hot_path import CHECK, HotPath, HotPaths, Limits
from gates.config import Context
from gates.model import Finding, Level, Outcome
from gates.task.task import Criterion, task_model

CASES = Path(__file__).parent / "cases" / "hot"
LIMITS = Limits(host_reads=0, synchronisations=0, stall_share=0.1)
SOUND = (
    "mlp", "cnn", "lstm", "transformer", "gan", "with_workers", "evaluates", "averaged", "autoencoder", "framework",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A callable, and for each aspect that must fail the marks of the lines that may be named."""

    module: str
    name: str
    faults: tuple[tuple[str, str], ...] = ()
    args: tuple[int, ...] = ()

    @property
    def shown(self) -> str:
        """Return what the table calls it."""
        return f"{self.module}:{self.name}({', '.join(map(str, self.args))})"

    def right(self, findings: list[Finding]) -> bool:
        """Return whether what fails is what was planted, at its line, and all else passed."""
        expected = {(aspect, place) for aspect, mark in self.faults for place in self._marked(mark)}
        failed = {(aspect_of(f), str(f.location)) for f in findings if f.outcome is Outcome.FAILED}
        aspects = {aspect for aspect, _ in self.faults}
        rest = {f.outcome for f in findings if aspect_of(f) not in aspects}
        return failed <= expected and {aspect for aspect, _ in failed} == aspects and rest <= {Outcome.PASSED}

    def _marked(self, mark: str) -> set[str]:
        lines = (CASES / f"{self.module}.py").read_text(encoding="utf-8").splitlines()
        return {f"{self.module}.py:{n}" for n, line in enumerate(lines, 1) if line.endswith(f"# <- {mark}")}


PLANTED = (
    Case("planted", "reads_each_step", (("host-reads", "here"),)),
    Case("planted", "branches_on_a_tensor", (("host-reads", "here"),)),
    Case("planted", "reads_in_a_meter", (("host-reads", "here"),)),
    Case("planted", "reads_in_turn", (("host-reads", "here"),)),
    Case("planted", "empties_the_cache", (("empty-cache", "here"),)),
    Case("planted", "slow_dataset", (("stall", "without workers"),)),
    Case("planted", "slow_dataset", (("stall", "with workers"),), (1,)),
    Case("planted", "slow_generator", (("stall", "generator"),)),
    Case("planted", "slow_function", (("stall", "function"),)),
    Case(
        "planted",
        "everything",
        (("host-reads", "reads"), ("empty-cache", "empties"), ("synchronisations", "waits"), ("stall", "function")),
    ),
)


def aspect_of(finding: Finding) -> str:
    """Return which aspect a finding is about."""
    return finding.check.split(":")[2]


def judged(case: Case) -> Row:
    """Run one case; return what is said of it."""
    path = HotPath(call=f"{case.module}:{case.name}", args=case.args, limits=LIMITS)
    criterion = Criterion(id="AC1", text="No wait", level=Level.MUST)
    task = task_model()(id="H1", title="Hot paths", implementation=(".",), criteria=(criterion,), hot_paths=(path,))
    with tempfile.TemporaryDirectory() as folder:
        context = Context(root=CASES, evidence=Path(folder), python=sys.executable, timeout_s=300)
        paths = HotPaths.collect(task, context)
    findings = list(CHECK.judge(task, EvidenceSet({HotPaths: paths})))
    seen = paths.seen[0]
    bad = [f"{aspect_of(f)} {f.outcome.value} at {f.location}" for f in findings if f.outcome is not Outcome.PASSED]
    return (
        case.shown, "; ".join(bad) or "all passed", case.right(findings), str(seen.stall()) if seen.steps else "-",
        str(len(seen.steps)),
    )  # fmt: skip


def main() -> int:
    """Print and write the table."""
    cases = (*PLANTED, *(Case("sound", name) for name in SOUND))
    return tabulate(
        "hot_path", __doc__ or "", "Hot paths", ((case.shown, partial(judged, case)) for case in cases),
        what="callables", columns=("callable", "findings", "right", "waiting for batches", "steps"),
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
