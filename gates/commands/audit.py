"""What `gates audit` does: read a report, look at what it speaks of, and say which of its claims hold."""

from dataclasses import dataclass
from pathlib import Path

from gates.child.guardian import guarded_folder
from gates.claims.audit import audit, markdown, text
from gates.config import Settings
from gates.context import Context
from gates.errors import UsageError
from gates.task import loading as spec


@dataclass(frozen=True)
class AuditRequest:
    """What was asked for on the command line, defaults filled in; `report` is an absolute path."""

    report: Path
    root: Path
    settings: Settings
    task: str | None
    out: Path | None
    timeout_s: float
    python: str


def perform(request: AuditRequest) -> tuple[str, int]:
    """Audit a report; return the summary and the exit code."""
    task = None
    if request.task is not None:
        task = spec.load(spec.find(request.task, request.root / request.settings.tasks, request.root), request.root)
    with guarded_folder() as folder:
        context = Context(root=request.root, evidence=folder, python=request.python, timeout_s=request.timeout_s)
        found = audit(request.report, root=request.root, task=task, context=context if task else None)
    if request.out is not None:
        try:
            request.out.write_text(markdown(found), encoding="utf-8")
        except OSError as error:
            reason = error.strerror or error
            raise UsageError(f"{str(request.out)!r} cannot be written: {reason}; choose another file") from error
    return text(found), found.exit_code
