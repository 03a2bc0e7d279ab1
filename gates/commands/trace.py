"""What `gates trace` does: read criteria with their code and tests, what has none, and the gaps, and run nothing."""

import ast
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import TypeVar

from gates import store
from gates.check import writable
from gates.code.sources import Sources
from gates.code.symbols import Resolver
from gates.code.syntax import SourceModule, Unparsed
from gates.config import Project
from gates.evidence.lines.executed_lines import FunctionLines, functions_of
from gates.evidence.tests.marked import WrittenTest, written_in
from gates.model import Level, Location, Model, Outcome, TaskIdentity
from gates.project.policy import TEMPLATES
from gates.project.revision import web_of
from gates.project.what_was_read import led_nowhere
from gates.report import Trace
from gates.task import loading as spec
from gates.task.measurement import CodeBinding
from gates.task.task import Criterion, EntryPoint, Task
from gates.words import counted, grouped, meant, visible

T = TypeVar("T")


class Row(Model):
    """A criterion with its code, the tests that stand for it by path, node id or marker, and what else does."""

    task: str
    id: str
    text: str
    level: Level
    code: tuple[Trace, ...] = ()
    tests: tuple[WrittenTest, ...] = ()
    others: tuple[Trace, ...] = ()


class Kind(StrEnum):
    """What a gap is: a reference to nothing, a place that could not be read, or something nobody has bound."""

    DEAD = "dead reference"
    UNREAD = "not checked"
    MISSING = "missing"


class Gap(Model):
    """Something that the matrix lacks, where, and what to do."""

    kind: Kind
    criterion: str = ""
    message: str
    location: Location | None = None
    remediation: str = ""


class Matrix(Model):
    """Everything that can be said of some tasks without running anything."""

    tasks: tuple[TaskIdentity, ...]
    rows: tuple[Row, ...]
    gaps: tuple[Gap, ...]
    loose_tests: tuple[WrittenTest, ...] = ()
    loose_code: tuple[FunctionLines, ...] = ()
    tests: int = 0
    functions: int = 0
    unread_tasks: int = 0


def collect(project: Project, wanted: str | None) -> tuple[Matrix, list[str]]:
    """Trace a task, or all; return what is wrong with files, and raise it of the task that was asked for."""
    known, broken = spec.load_all(project)
    broken = [] if wanted else broken
    tasks = [spec.of_project(wanted, project)] if wanted else [*{task.id: task for task in known}.values()]
    criteria = {f"{task.id}/{criterion.id}" for task in (*known, *tasks) for criterion in task.criteria}
    sources = Sources(project.root)
    tests, unread = _read(sources, [path for task in tasks for path in task.every_test], written_in)
    by = defaultdict[PurePosixPath | str, list[WrittenTest]](list)  # path and folders, names in markers
    for test in sorted(tests, key=lambda test: test.id):
        for folder in (_place(test.id), *_place(test.id).parents):
            by[folder].append(test)
        for marker in test.markers:
            by[marker.names or ""].append(test)
    found, more = _read(sources, [path for task in tasks for path in task.implementation], functions_of)
    functions = [function for function in found if function.public]
    traced = [found for task in tasks for found in _traced(task, Resolver(task, sources), by, sources)]
    rows = tuple(row for row, _ in traced)
    gaps = [*_loose_names(tasks, project), *(gap for _, gaps in traced for gap in gaps)]
    bound = {test.id for row in rows for test in row.tests}
    matrix = Matrix(
        tasks=tuple(task.identity for task in tasks),
        rows=rows,
        gaps=(*gaps, *_loose_markers(tests, criteria), *dict.fromkeys([*unread, *more])),
        loose_tests=tuple(test for test in tests if test.id not in bound and not test.markers),
        loose_code=tuple(_without_criterion(functions, rows)),
        tests=len(tests),
        functions=len(functions),
        unread_tasks=len(broken),
    )
    return matrix, broken


def _read(sources: Sources, paths: list[str], look: Callable[[SourceModule], Iterable[T]]) -> tuple[list[T], list[Gap]]:
    """Return what there is in the Python files under some paths, and the files that could not be read."""
    found, gaps = list[T](), list[Gap]()
    for path in [path for path in sources.files(tuple(dict.fromkeys(paths))) if path.suffix == ".py"]:
        name = sources.shown(path)
        try:
            found += look(sources.module(path, ".".join(Path(name).parent.parts)))
        except Unparsed as error:
            at, _, message = str(error).removeprefix(f"{name}:").partition(": ")
            gaps.append(_gap(Kind.UNREAD, message, "Fix the file.", Location(path=name, line=int(at.split(":")[0]))))
        except RecursionError:
            gaps.append(_gap(Kind.UNREAD, "nested too deeply to be read", "Fix the file.", Location(path=name, line=1)))
    return found, gaps


ALONE = {"object", "abc.ABC", "typing.Generic", "typing.Protocol"}
ALONE |= {"unittest.TestCase", "unittest.IsolatedAsyncioTestCase"}


def _place(test: str) -> PurePosixPath:
    """Return a node id as a path, as if a file were the folder of its classes, and these of their tests."""
    return PurePosixPath(test.split("[")[0].replace("::", "/"))


def _traced(
    task: Task, resolver: Resolver, by: Mapping[PurePosixPath | str, list[WrittenTest]], sources: Sources
) -> Iterator[tuple[Row, list[Gap]]]:
    for criterion in task.criteria:
        name, place = f"{task.id}/{criterion.id}", task.place(criterion)
        found = [*(test for path in criterion.tests for test in by[_place(path)]), *by[name]]
        code = [each for binding in criterion.code for each in _code(task, binding, resolver)]
        row = Row(
            task=task.id,
            **criterion.model_dump(include={"id", "text", "level"}),
            code=tuple(trace for trace, _ in code),
            tests=tuple({test.id: test for test in found}.values()),
            others=tuple(_others(task, criterion)),
        )
        gaps = [gap for _, gap in code if gap]
        gaps += [_gone(path, sources) for path in criterion.tests if not by[_place(path)]]
        if criterion.level is Level.MUST and not code:
            fix = "Name the symbols that implement it under 'code'."
            gaps.append(_gap(Kind.MISSING, "no code is bound to it", fix))
        if criterion.level is Level.MUST and not (found or criterion.tests or row.others):
            fix = f'Name tests under "tests", or mark them with @pytest.mark.criterion("{name}").'
            gaps.append(_gap(Kind.MISSING, "no test, measure or entry point verifies it", fix))
        yield row, [g.model_copy(update={"criterion": name, "location": g.location or place}) for g in gaps]


def _code(task: Task, binding: CodeBinding, resolver: Resolver) -> Iterator[tuple[Trace, Gap | None]]:
    name, places, checked = binding.name, list[Location | None](), True
    if binding.rule:
        yield Trace(name=name, outcome=Outcome.UNKNOWN, detail="applied by `gates run`"), None
        return
    if binding.pattern:
        from gates.evidence.source_tree import trace_patterns  # most tasks have none, and need not pay for the engine

        (found,) = trace_patterns([binding], resolver)
        places, problem, checked = [*found.places], found.problem, found.checked
    else:
        trace = resolver.trace(binding)
        missing = ", ".join(use.name for use in trace.uses if not use.lines)
        places, checked = [trace.location], trace.checked
        problem = trace.problem or (f"does not use {missing}" if missing else "")
    kind, fix = (Kind.DEAD, "Implement it, or fix the binding.") if checked else (Kind.UNREAD, "Fix the file.")
    for place in places or [None]:
        gap = _gap(kind, f"{name}: {problem}", fix, place or task.place(binding)) if problem else None
        yield Trace(name=name, location=place, outcome=Outcome.UNKNOWN, detail=problem), gap


def _others(task: Task, criterion: Criterion) -> Iterator[Trace]:
    names = [("measure", measure.name) for measure in criterion.measures]
    for part in task.shown_by(criterion):
        call = f"{part.key.replace('_', ' ')}: {getattr(part, 'name', '') or getattr(part, 'call', '')}"
        names.append(("entry", part.name) if isinstance(part, EntryPoint) else ("call", call))
    yield from (Trace(name=name, kind=kind, outcome=Outcome.UNKNOWN) for kind, name in names)


def _gone(path: str, sources: Sources) -> Gap:
    """Return what is wrong with a path that names no test, unless a class has it from another, which is not read."""
    file, *names = path.partition("[")[0].split("::")
    for module in _read(sources, [file], lambda module: [module])[0]:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and (not names or node.name in names):
                bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
                if any(module.dotted(base) not in ALONE for base in bases):
                    heir = f"unless {module.path}::{node.name} has it from a class that it extends"
                    return _gap(Kind.UNREAD, f"{path} names no test, {heir}", "See with `gates run`.")
    return _gap(Kind.DEAD, f"{path} names no test", "Write the test, or fix the reference.")


def _gap(kind: Kind, message: str, fix: str, location: Location | None = None, criterion: str = "") -> Gap:
    return Gap(kind=kind, criterion=criterion, message=message, location=location, remediation=fix)


def _loose_markers(tests: Iterable[WrittenTest], criteria: set[str]) -> Iterator[Gap]:
    for test, marker in ((each, marker) for each in tests for marker in each.markers):
        where, such = Location(path=test.location.path, line=marker.line), "the criterion, such as 'T035/AC3'."
        if marker.names is None:
            yield _gap(Kind.UNREAD, f"a marker of {test.id} is not written as plain text", f"Write {such}", where)
        elif not marker.names:
            yield _gap(Kind.DEAD, f"a marker of {test.id} names no criterion", f"Name {such}", where)
        elif marker.names not in criteria:
            message = f"{test.id} is marked for {marker.names!r}, which does not exist{meant(marker.names, criteria)}"
            yield _gap(Kind.DEAD, message, "Fix the marker's id.", where)


def _without_criterion(functions: list[FunctionLines], rows: tuple[Row, ...]) -> Iterator[FunctionLines]:
    """Return the functions of which no criterion's code holds a line."""
    places = (binding.location for row in rows for binding in row.code)
    bound = grouped((place for place in places if place and place.line), lambda place: place.path)
    return (one for one in functions if not any(one.location.meets(place) for place in bound[one.location.path]))


def _loose_names(tasks: list[Task], project: Project) -> Iterator[Gap]:
    """Yield a dead reference for each path and each code rule of some tasks that leads nowhere."""
    asked: list[tuple[str, str, Location]] = []
    for task in tasks:
        for loose in led_nowhere(task, project.root):
            yield _gap(Kind.DEAD, loose.message.removesuffix("."), loose.remediation, loose.location, task.id)
        said = [(name, line) for key, name, line, _ in task.spots if key == "rules"]
        asked += [(name, task.id, Location(path=task.path, line=line)) for name, line in said]
        bound = [(criterion, binding) for criterion in task.criteria for binding in criterion.code]
        asked += [(one.rule, f"{task.id}/{each.id}", task.place(one)) for each, one in bound if one.rule]
    if not asked:
        return
    from gates.scan.loading import SHIPPED, load_folder, named, unknown  # most tasks need not pay for the engine

    known = load_folder(SHIPPED, SHIPPED.parent.parent)  # examples are tried when a rule is applied
    known |= load_folder(project.rules, project.root) if project.rules.is_dir() else {}
    for name, asks, place in asked:
        there = name in known if "/" in asks else named(name, known)  # a criterion is bound to a rule, never to a tag
        if not there:
            problem = unknown(name, known).partition("; known: ")[0]
            yield _gap(Kind.DEAD, problem, "Fix the name; `gates explain` shows a rule.", place, asks)


LISTED = 20


def text(matrix: Matrix, *, whole: bool) -> str:
    """Return the matrix for a terminal: each criterion with its lines, or of many tasks one line each."""
    rows = grouped(matrix.rows, lambda row: row.task)
    gaps = Counter(gap.criterion.split("/")[0] for gap in matrix.gaps)
    lines: list[str] = []
    for task in matrix.tasks:
        own = rows[task.id]
        coded, shown = sum(any(c.location for c in r.code) for r in own), sum(bool(r.tests or r.others) for r in own)
        many = f"{counted(len(own), 'criterion', 'criteria')}, {coded} with code, {shown} with evidence"
        if whole:
            lines += [f"{task.id}  {task.title}  [{task.path}]", *(line for row in own for line in _row(row))]
        else:
            lines.append(f"{task.id}  {many}, {counted(gaps[task.id], 'gap')}  {task.title}")
    lines += ["", *_totals(matrix), *_gaps(matrix)]
    return "\n".join(visible(line) for line in lines) + "\n"


def _row(row: Row) -> Iterator[str]:
    yield f"  {row.id:<6} {row.level.value:<9} {row.text}"
    for code in row.code:
        yield f"    code     {code.location or '-'!s:<44} {code.name}{f': {code.detail}' if code.detail else ''}"
    yield from (f"    test     {test.location!s:<44} {test.id.partition('::')[2]}" for test in row.tests[:LISTED])
    if len(row.tests) > LISTED:
        yield f"    test     ... and {len(row.tests) - LISTED} more (--format markdown or json has all)"
    yield from (f"    {other.kind:<8} {other.name}" for other in row.others)


def _totals(matrix: Matrix) -> list[str]:
    unread = f" ({counted(matrix.unread_tasks, 'task file')} could not be read)" if matrix.unread_tasks else ""
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
    if out:
        store.write_page(out, page)
    where = project.settings.tasks
    nothing = [] if matrix.tasks else [f"no task file (*.yaml) in {where!r}; write {where}/ID.yaml"]
    kinds = {gap.kind for gap in matrix.gaps}
    code = 2 if broken else 1 if Kind.DEAD in kinds else 3 if kinds or not matrix.rows else 0
    return "" if out else page, broken or nothing, code
