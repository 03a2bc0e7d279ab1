"""Collects the matrix of a project from task files, tests and implementation."""

from dataclasses import dataclass
from pathlib import Path

from gates import garbage_collection
from gates.code.sources import Sources
from gates.code.syntax import Unparsed
from gates.config import Settings
from gates.errors import UsageError
from gates.task import loading as spec
from gates.tracing.file_facts import FileFacts, facts_of
from gates.tracing.inherited import Heirs
from gates.tracing.loose_names import loose_names
from gates.tracing.matrix import Matrix, join
from gates.tracing.task_trace import TaskTrace, trace


@dataclass(frozen=True)
class Collected:
    """The matrix, and what is wrong with the task files that could not be read."""

    matrix: Matrix
    broken: tuple[str, ...]


def collect(root: Path, settings: Settings, wanted: Path | None) -> Collected:
    """Trace the task in a file, or all tasks of the project; raise `UsageError` where the one asked for is broken."""
    with garbage_collection.put_off():
        return _collect(root, settings, wanted, _Collector(root))


def _collect(root: Path, settings: Settings, wanted: Path | None, collector: "_Collector") -> Collected:
    traces: dict[Path, TaskTrace] = {}
    files: dict[str, list[str]] = {}
    broken: list[str] = []
    for path in dict.fromkeys([*spec.task_files(root / settings.tasks), *([wanted] if wanted else [])]):
        try:
            found = collector.task(path)
        except UsageError as error:
            if path == wanted:
                raise
            broken.append(str(error))
        else:
            files.setdefault(found.id, []).append(found.path)
            if len(files[found.id]) == 1 or path == wanted:
                traces[path] = found
    broken += [spec.twins(name, paths) for name, paths in files.items() if len(paths) > 1]
    asked = tuple(traces.values()) if wanted is None else (traces[wanted],)
    criteria = {f"{task.id}/{criterion.id}" for task in traces.values() for criterion in task.criteria}
    heirs = Heirs(collector.facts(tuple(dict.fromkeys(path for task in asked for path in task.tests))), collector.file)
    tests = heirs.with_inherited()
    code = collector.facts(tuple(dict.fromkeys(path for task in asked for path in task.implementation)))
    told = tuple(broken) if wanted is None else ()
    matrix = join(asked, tests, code, criteria, heirs.foreign)
    gaps = (*loose_names(asked, root, root / settings.rules), *matrix.gaps)
    return Collected(matrix=matrix.model_copy(update={"unread_tasks": len(told), "gaps": gaps}), broken=told)


class _Collector:
    """Reads each file once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._sources = Sources(root)
        self._files: dict[str, FileFacts] = {}

    def task(self, path: Path) -> TaskTrace:
        """Return a task's trace; raise `UsageError` for a file that holds none."""
        return trace(spec.load(path, self._root), self._sources)

    def facts(self, paths: tuple[str, ...]) -> dict[str, FileFacts]:
        """Return the facts of each Python file under some paths."""
        files = {self._sources.shown(path): path for path in self._sources.files(paths) if path.suffix == ".py"}
        return {name: self._of(name, path) for name, path in files.items()}

    def file(self, name: str) -> FileFacts | None:
        """Return the facts of one file of the project, nothing where it is not there."""
        path = self._root / name
        return self._of(name, path) if self._sources.is_file(path) else None

    def _of(self, name: str, path: Path) -> FileFacts:
        if name not in self._files:
            try:
                self._files[name] = facts_of(self._sources.module(path, ".".join(Path(name).parent.parts)))
            except Unparsed as error:
                self._files[name] = FileFacts(problem=str(error))
            except RecursionError:
                self._files[name] = FileFacts(problem=f"{name}:1: nested too deeply to be read")
        return self._files[name]
