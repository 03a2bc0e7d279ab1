"""How far a run is: live on a terminal, in lines elsewhere; always on stderr."""

import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from gates.check import Evidence
from gates.heartbeat import every
from gates.model import Decision
from gates.pipeline import Progress
from gates.report import GateReport, Report
from gates.stages.gate import Gate

HEARTBEAT_S = 30.0
WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


@contextmanager
def shown(
    say: Callable[[str], None], gates: Sequence[Gate], before: Report | None, *, quiet: bool = False
) -> Iterator[Progress]:
    """Show each step: on a terminal in a live line, elsewhere at the start, gate by gate and now and then; or nothing.

    `before` is the report of the last run, for what it took.
    """
    if quiet:
        yield Progress(step=lambda *_: None, ended=lambda _: None)
        return
    begun, at = time.monotonic(), ["starting"]
    took = {gate.name: f", last time {gate.duration_s:g} s" for gate in before.gates} if before else {}

    def step(gate: Gate, number: int, kind: type[Evidence]) -> None:
        what = WORDS.sub(" ", kind.__name__).lower()
        at[0] = f"[stage {gate.stage}] {gate.name}: {what}, {number} of {len(gate.uses)}{took.get(gate.name, '')}"

    def now() -> str:
        return f"{at[0]}; {time.monotonic() - begun:.0f} s so far"

    if not sys.stderr.isatty():
        last = f"; the last run took {before.duration_s:g} s" if before else ""
        say(f"run of {', '.join(gate.name for gate in gates)}{last}")
        with every(HEARTBEAT_S, lambda: say(now())):
            yield Progress(step, ended=lambda report: say(_line(report)))
        return
    from rich.console import Console

    console = Console(stderr=True, highlight=False, markup=False)
    with console.status("starting") as status, every(1, lambda: status.update(now())):
        yield Progress(step, ended=lambda report: console.print(_line(report)))


def _line(report: GateReport) -> str:
    head = f"[stage {report.stage}] {report.name}:"
    if not report.ran:
        return f"{head} NOT RUN: {report.not_run_because}"
    so_far = " so far" if report.decision is Decision.PASS else ""  # what later gates see may take it back
    return f"{head} {report.decision.value}{so_far} ({report.duration_s:g} s)"
