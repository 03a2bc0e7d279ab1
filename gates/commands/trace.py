"""What `gates trace` does, and the matrix as text and as a Markdown page."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from gates import store
from gates.check import writable
from gates.config import Project
from gates.project.policy import TEMPLATES
from gates.project.revision import web_of
from gates.tracing import Kind, Matrix, Row, collect
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
        if whole:
            lines += [f"{task.id}  {task.title}  [{task.path}]", *(line for row in rows[task.id] for line in _row(row))]
        else:
            own = rows[task.id]
            traced, stood = (
                sum(any(c.location for c in r.code) for r in own),
                sum(bool(r.tests or r.others) for r in own),
            )
            many = f"{counted(len(own), 'criterion', 'criteria')}, {traced} with code, {stood} with evidence"
            lines.append(f"{task.id}  {many}, {counted(gaps[task.id], 'gap')}  {task.title}")
    lines += ["", *_totals(matrix), *_gaps(matrix)]
    return "\n".join(visible(line) for line in lines) + "\n"


def _row(row: Row) -> Iterator[str]:
    yield f"  {row.id:<6} {row.level.value:<9} {row.text}"
    for code in row.code:
        yield f"    code     {code.location or '-'!s:<44} {code.name}{f': {code.problem}' if code.problem else ''}"
    for test in row.tests[:LISTED]:
        yield f"    test     {test.location!s:<44} {test.id.partition('::')[2]}"
    if len(row.tests) > LISTED:
        yield f"    test     ... and {len(row.tests) - LISTED} more (--format markdown or json has all)"
    yield from (f"    {kind:<8} {name}" for kind, name in row.others)


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
            where = f"{gap.location}: " if gap.location else ""
            yield f"{kind.value}: {where}{f'{gap.criterion}: ' if gap.criterion else ''}{gap.message}"
        if len(found) > LISTED:
            yield f"{kind.value}: ... and {len(found) - LISTED} more (--format json has all)"


def perform(project: Project, task: str | None, *, form: str, out: Path | None) -> tuple[str, list[str], int]:
    """Trace; return what goes to stdout, what is wrong with task files or that there are none, and the exit code."""
    found, broken = collect(project, task)
    matrix = writable(found)
    if form == "json":
        page = matrix.model_dump_json(indent=1) + "\n"
    elif form == "markdown":
        from gates.render.markdown import page as rendered  # a matrix for a terminal need not pay for templates

        values = {"matrix": matrix, "web": web_of(project.root), "totals": _totals(matrix)}
        page = rendered("matrix.md.j2", project.root / TEMPLATES, **values)
    else:
        page = text(matrix, whole=task is not None)
    page = "" if store.write_page(out, page) else page
    where = project.settings.tasks
    nothing = [] if matrix.tasks else [f"no task file (*.yaml) in {where!r}; write {where}/ID.yaml"]
    return page, broken or nothing, 2 if broken else _exit_code(matrix)


def _exit_code(matrix: Matrix) -> int:
    """Return 0 for a matrix without gaps, 1 where a reference leads nowhere, 3 where something is missing or unread."""
    kinds = {gap.kind for gap in matrix.gaps}
    return 1 if Kind.DEAD in kinds else 3 if kinds or not matrix.rows else 0
