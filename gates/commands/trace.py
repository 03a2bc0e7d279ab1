"""What `gates trace` does: the traceability matrix from task files and sources, without running anything."""

from dataclasses import dataclass
from pathlib import Path

from gates import store
from gates.check import writable
from gates.config import Project
from gates.project.revision import web_of
from gates.task import loading as spec
from gates.tracing.collecting import collect
from gates.tracing.matrix import Kind, Matrix
from gates.tracing.pages import markdown, text


@dataclass(frozen=True)
class TraceRequest:
    """What was asked for on the command line; no task means all."""

    project: Project
    task: str | None
    form: str
    out: Path | None


def perform(request: TraceRequest) -> tuple[str, list[str], int]:
    """Trace; return what goes to stdout, what is wrong with task files or that there are none, and the exit code."""
    path = spec.find(request.task, request.project.tasks, request.project.root) if request.task else None
    found = collect(request.project.root, request.project.settings, path)
    matrix = writable(found.matrix)
    if request.form == "json":
        page = matrix.model_dump_json(indent=1) + "\n"
    elif request.form == "markdown":
        page = markdown(matrix, web_of(request.project.root))
    else:
        page = text(matrix, whole=request.task is not None)
    page = "" if store.write_page(request.out, page) else page
    said = list(found.broken) or _nothing(matrix, request)
    return page, said, 2 if found.broken else _exit_code(matrix)


def _nothing(matrix: Matrix, request: TraceRequest) -> list[str]:
    """Say why a matrix has no rows."""
    where = request.project.settings.tasks
    return [] if matrix.tasks else [f"no task file (*.yaml) in {where!r}; write {where}/ID.yaml"]


def _exit_code(matrix: Matrix) -> int:
    """Return 0 for a matrix without gaps, 1 where a reference leads nowhere, 3 where something is missing or unread."""
    kinds = {gap.kind for gap in matrix.gaps}
    return 1 if Kind.DEAD in kinds else 3 if kinds or not matrix.rows else 0
