"""A run as the log keeps it: from its report and the evidence that it left."""

from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from gates.check import Evidence
from gates.checks.measures.base.collect import Regressions
from gates.checks.measures.past_runs import numbers_of, this_machine
from gates.evidence.measurements import Measurements
from gates.project.run_log import LoggedRun
from gates.report import Report

E = TypeVar("E", bound=Evidence)


def logged(report: Report, evidence: Path, only: str | None = None) -> LoggedRun:
    """Return what the log keeps of a run whose evidence lies in a folder."""
    return LoggedRun(
        task=report.task.id, at=report.started_at, commit=report.revision.commit, dirty=report.revision.dirty,
        digest=report.revision.digest, machine=this_machine(), decision=report.verdict.decision,
        score=report.score.total, gates=tuple(gate.name for gate in report.gates if gate.ran), only=only,
        duration_s=report.duration_s,
        numbers=tuple(numbers_of(_saved(evidence, Measurements), _saved(evidence, Regressions))),
    )  # fmt: skip


def _saved(folder: Path, kind: type[E]) -> E | None:
    try:
        return kind.model_validate_json((folder / f"{kind.__name__}.json").read_bytes())
    except (OSError, ValidationError):
        return None
