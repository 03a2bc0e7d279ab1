"""What nobody read: paths of a task that lead nowhere, files that are no Python."""

import re
from collections.abc import Iterator
from pathlib import Path

from gates.check import About
from gates.evidence.source_tree import SourceTree
from gates.model import Finding, Level, Location
from gates.project.files import files_of, is_aside
from gates.task.task import Task
from gates.words import first_of, meant


def leads_nowhere(path: str, root: Path) -> str:
    """Return why a path leads to no file, with what may have been meant; nothing where it leads to one."""
    head = path.split("::")[0]
    if files_of((head,), root):
        return ""
    if (root / head).is_dir():
        return "that folder has no file"
    hint = "; patterns are not followed: name files or folders" if {*"*?["} & {*head} else _near(root / head, root)
    return f"there is no {head!r} in the project{hint}"


def _near(path: Path, root: Path) -> str:
    """Return `; did you mean 'pkg/more.py'?` where something beside a path, or beside its folder, is called like it."""
    wanted = next(each for each in (path, *path.parents) if each.parent.is_dir())
    beside = [each.name for each in wanted.parent.iterdir() if not is_aside(each.name)]
    hint = meant(wanted.name, beside)
    if not hint or not wanted.is_relative_to(root):
        return ""
    name = next(name for name in beside if repr(name) in hint)
    return f"; did you mean {(wanted.with_name(name) / path.relative_to(wanted)).relative_to(root).as_posix()!r}?"


NAMED = 5
BOOK = ".ipynb"
OF_UNREAD = (
    "Fix it. If it is not meant to be read, name under 'implementation' the files and folders beside it. "
    "If it is for a newer Python, let that one run gates."
)
PLACE = re.compile(r"(?P<path>.+?):(?P<line>[1-9][0-9]*)(?::[0-9]+)?: (?P<why>.*)", re.DOTALL)


def led_nowhere(task: Task, root: Path) -> Iterator[Finding]:
    """Say of each path under `implementation` and `tests` that leads to no file that nothing of it was seen."""
    about = About(rule="GT006", check="paths", expected="a file, or a folder with files")
    for key, path, line, column in task.spots:
        if key in {"implementation", "tests"} and (why := leads_nowhere(path, root)):
            place = Location(path=task.path, line=line)
            message = f"{key!r} names {path!r} ({place}:{column}), and {why}."
            own = about.but(location=place, subject=path, impact="Nothing of what it means was looked at.")
            yield own.unknown(message, "Fix the path, write the file, or take the path out.", actual=why)


def not_read(tree: SourceTree | None, task: Task, root: Path) -> Iterator[Finding]:
    """Say of each file of the implementation that could not be read that no check knows what it does."""
    unparsed = tree.unparsed if tree else ()
    about = About(rule="GT007", check="read", expected="Python that can be read")
    about = about.but(impact="What it does was seen by no check that reads code.")
    paths = [path.relative_to(root).as_posix() for path in files_of(task.implementation, root)]
    if books := [path for path in paths if path.endswith(BOOK)]:
        message = f"Notebooks of the implementation are read by no check: {first_of(books, NAMED)}."
        yield about.unknown(message, "Move what a criterion needs into a module.", level=Level.ADVISORY, subject=BOOK)
    for number, text in enumerate(unparsed[:NAMED], 1):
        found = PLACE.fullmatch(text)
        path, why = (found["path"], found["why"]) if found else (text, text)
        place = Location(path=path, line=int(found["line"])) if found else None
        more = f" {len(unparsed) - NAMED} more were not." if number == NAMED < len(unparsed) else ""
        message = f"{path} is part of the implementation and could not be read: {why}.{more}"
        yield about.unknown(message, OF_UNREAD, location=place, subject=path, actual=why)
