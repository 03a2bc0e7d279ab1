"""How far a run is: live on a terminal, one line a gate elsewhere; always on stderr."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gates.model import Decision
from gates.pipeline import Progress
from gates.report import GateReport
from gates.stages.gate import Gate


@contextmanager
def shown(say: Callable[[str], None], *, quiet: bool = False) -> Iterator[Progress]:
    """Show progress with a live line on a terminal, without one elsewhere, and none where it is to be quiet."""
    if quiet or not sys.stderr.isatty():
        yield Progress(started=lambda _gate: None, ended=lambda report: None if quiet else say(_line(report)))
        return
    from rich.console import Console

    console = Console(stderr=True, highlight=False, markup=False)
    with console.status("loading") as status:

        def started(gate: Gate) -> None:
            status.update(f"stage {gate.stage}: {gate.title} is collecting evidence ...")

        yield Progress(started=started, ended=lambda report: console.print(_line(report)))


def _line(report: GateReport) -> str:
    head = f"[stage {report.stage}] {report.name}:"
    if not report.ran:
        return f"{head} NOT RUN: {report.not_run_because}"
    so_far = " so far" if report.decision is Decision.PASS else ""  # what later gates see may take it back
    return f"{head} {report.decision.value}{so_far} ({report.duration_s:g} s)"
