"""The task as the base has it: by its id wherever it lay, else by its path, and the folder that the project was in."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gates.errors import UsageError
from gates.project.history import History
from gates.project.two_states import TwoStates
from gates.task import loading as spec
from gates.task.task import Task
from gates.words import printable


@dataclass
class Earlier:
    """The base beside the work tree, the task as it was there and in which file, and what could not be read."""

    states: TwoStates
    task: Task | None = None
    path: str = ""
    unread: list[str] = field(default_factory=list)


def find(task: Task, history: History, commit: str, root: Path, kept: Path) -> Earlier:
    """Find the task of the same id, in the project or where it was before it moved; then one of the same path."""
    earlier = Earlier(TwoStates(history, commit, root))
    states = earlier.states
    inside = {**states.led(states.before_settings().tasks, spec.SUFFIXES), **states.led(task.path, spec.SUFFIXES)}
    order = sorted(inside, key=lambda path: (path != task.path, path not in states.gone(), path))
    ordered = {path: inside[path] for path in order}
    earlier.task, earlier.path = next(_of_id(task, ordered, kept, earlier.unread), (None, ""))
    if earlier.task is None:
        _look_elsewhere(earlier, task, history, commit, root, kept)
    if earlier.task is None and task.path in inside and not earlier.unread:
        earlier.task = _read(task.path, inside[task.path], kept, earlier.unread)
    if earlier.task is None and task.path not in inside and states.lies(task.path):
        earlier.unread.append(f"{task.path} (at the base: no file, or a link or submodule that is not followed)")
    return earlier


def _look_elsewhere(earlier: Earlier, task: Task, history: History, commit: str, root: Path, kept: Path) -> None:
    """Look among the files of the repository that are gone: the project may have been in another folder."""
    gone = earlier.states.elsewhere(spec.SUFFIXES)
    ordered = {
        path: gone[path] for path in sorted(gone, key=lambda path: (not f"/{path}".endswith(f"/{task.path}"), path))
    }
    for found, path in _of_id(task, ordered, kept, earlier.unread):
        earlier.task = found
        if f"/{path}".endswith(f"/{task.path}"):
            earlier.states = TwoStates(history, commit, root, path.removesuffix(task.path))
        return


def _of_id(task: Task, files: Mapping[str, bytes], kept: Path, unread: list[str]) -> Iterator[tuple[Task, str]]:
    """Yield the tasks of an id, each with its path."""
    for path, content in files.items():
        if task.id.encode() not in content:
            continue
        said: list[str] = []
        found = _read(path, content, kept, said)
        if found is not None and found.id == task.id:
            yield found, path
        elif found is None and (path == task.path or _claims(task.id, content)):
            unread += said


def _claims(task_id: str, content: bytes) -> bool:
    """Return whether a file that cannot be read says all the same that it is a task's."""
    pattern = rf"^id:\s*[\"']?{re.escape(task_id)}[\"']?\s*(#.*)?\r?$"
    return re.search(pattern.encode(), content, re.MULTILINE) is not None


def _read(path: str, content: bytes, kept: Path, unread: list[str]) -> Task | None:
    file = kept / Path(printable(path)).name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    try:
        return spec.load(file, kept)
    except UsageError as error:
        unread.append(f"{str(error).splitlines()[0]} (at the base)")
        return None
