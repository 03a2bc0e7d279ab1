"""What `gates trace` does, and the matrix as text and as a Markdown page."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from gates import store
from gates.check import writable
from gates.config import Project
from gates.project.policy import TEMPLATES
from gates.project.revision import web_of
from gates.task import loading as spec
from gates.tracing import Gap, Kind, Matrix, Row, TaskTrace, collect
from gates.words import counted, visible

LISTED = 20


def text(matrix: Matrix, *, whole: bool) -> str:
    """Return the matrix for a terminal: each criterion with its lines, or of many tasks one line each."""
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in matrix.rows:
        rows[row.task].append(row)
    gaps = Counter(gap.criterion.split("/")[0] for gap in matrix.gaps)
    lines: list[str] = []
    for task in matrix.tasks:
        lines += _task(task, rows[task.id]) if whole else [_summary(task, rows[task.id], gaps[task.id])]
    lines += ["", *_totals(matrix), *_gaps(matrix)]
    return "\n".join(visible(line) for line in lines) + "\n"


def markdown(matrix: Matrix, web: str | None, templates: Path | None = None) -> str:
    """Return the matrix as a Markdown page; `web` is where the files of this revision can be read."""
    from gates.render.markdown import page  # a matrix for a terminal need not pay for templates

    return page("matrix.md.j2", templates, matrix=matrix, web=web, totals=_totals(matrix))


def _task(task: TaskTrace, rows: list[Row]) -> Iterator[str]:
    yield f"{task.id}  {task.title}  [{task.path}]"
    for row in rows:
        yield from _row(row)


def _row(row: Row) -> Iterator[str]:
    criterion = row.criterion
    yield f"  {criterion.id:<6} {criterion.level.value:<9} {criterion.text}"
    for binding in criterion.code:
        place = str(binding.location or "-")
        yield f"    code     {place:<44} {binding.name}{f': {binding.problem}' if binding.problem else ''}"
    for test in row.tests[:LISTED]:
        yield f"    test     {test.location!s:<44} {test.id.partition('::')[2]}"
    if len(row.tests) > LISTED:
        yield f"    test     ... and {len(row.tests) - LISTED} more (--format markdown or json has all)"
    for measure in criterion.measures:
        yield f"    measure  {measure}"
    for entry in criterion.entry_points:
        yield f"    entry    {entry}"
    for call in criterion.calls:
        yield f"    call     {call}"


def _summary(task: TaskTrace, rows: list[Row], gaps: int) -> str:
    traced = sum(any(binding.location for binding in row.criterion.code) for row in rows)
    stood = sum(bool(row.tests or row.criterion.shown_otherwise) for row in rows)
    many = f"{counted(len(rows), 'criterion', 'criteria')}, {traced} with code, {stood} with evidence"
    return f"{task.id}  {many}, {counted(gaps, 'gap')}  {task.title}"


def _totals(matrix: Matrix) -> list[str]:
    files = counted(matrix.unread_tasks, "task file")
    unread = f" ({files} could not be read)" if matrix.unread_tasks else ""
    criteria, tasks = counted(len(matrix.rows), "criterion", "criteria"), counted(len(matrix.tasks), "task")
    return [
        f"{criteria} of {tasks}{unread}; {counted(len(matrix.gaps), 'gap')}",
        f"{len(matrix.loose_tests)} of {counted(matrix.tests, 'test')} bound to no criterion",
        f"{len(matrix.loose_code)} of {counted(matrix.functions, 'public function')} outside of every criterion",
    ]


def _gaps(matrix: Matrix) -> Iterator[str]:
    for kind in Kind:
        found = [gap for gap in matrix.gaps if gap.kind is kind]
        for gap in found[:LISTED]:
            yield _gap(gap)
        if len(found) > LISTED:
            yield f"{kind.value}: ... and {len(found) - LISTED} more (--format json has all)"


def _gap(gap: Gap) -> str:
    where = f"{gap.location}: " if gap.location else ""
    return f"{gap.kind.value}: {where}{f'{gap.criterion}: ' if gap.criterion else ''}{gap.message}"


def perform(project: Project, task: str | None, *, form: str, out: Path | None) -> tuple[str, list[str], int]:
    """Trace; return what goes to stdout, what is wrong with task files or that there are none, and the exit code."""
    path = spec.find(task, project.tasks, project.root) if task else None
    found, broken = collect(project.root, project.settings, path)
    matrix = writable(found)
    if form == "json":
        page = matrix.model_dump_json(indent=1) + "\n"
    elif form == "markdown":
        page = markdown(matrix, web_of(project.root), project.root / TEMPLATES)
    else:
        page = text(matrix, whole=task is not None)
    page = "" if store.write_page(out, page) else page
    said = broken or _nothing(matrix, project.settings.tasks)
    return page, said, 2 if broken else _exit_code(matrix)


def _nothing(matrix: Matrix, where: str) -> list[str]:
    """Say why a matrix has no rows."""
    return [] if matrix.tasks else [f"no task file (*.yaml) in {where!r}; write {where}/ID.yaml"]


def _exit_code(matrix: Matrix) -> int:
    """Return 0 for a matrix without gaps, 1 where a reference leads nowhere, 3 where something is missing or unread."""
    kinds = {gap.kind for gap in matrix.gaps}
    return 1 if Kind.DEAD in kinds else 3 if kinds or not matrix.rows else 0
