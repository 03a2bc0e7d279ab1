"""What a Python program wrote to stderr: its last traceback, and the warnings it was given."""

import re
from collections.abc import Iterator
from pathlib import Path

from gates.config import Context
from gates.evidence.tests.test_records import Warned
from gates.model import Location, Model
from gates.words import printable

HEAD = "Traceback (most recent call last):"
FRAME = re.compile(r'^[ \t+|]*File "(?P<path>[^"\n]+)", line (?P<line>\d+)(?:, in (?P<name>[^\n]*))?', re.MULTILINE)
ERROR = re.compile(r"^(?P<type>[^\W\d][\w.]*)(?:: (?P<message>.*))?$")
WARNING = re.compile(
    r"^(?P<path>[^\s:<][^:\n]*):(?P<line>\d+): (?P<category>[^\W\d]\w*Warning): (?P<message>.*)$", re.MULTILINE
)
LIMIT = 500
READ = 256 * 1024


class Crash(Model):
    """An uncaught exception: its type and message, and the innermost frame in the project, if there is one."""

    error: str
    message: str
    location: Location | None
    function: str = ""


def written(path: Path) -> str:
    """Return the end of what a process wrote into a file."""
    try:
        return printable(path.read_bytes()[-READ:].decode("utf-8", errors="backslashreplace"))
    except OSError:
        return ""


def crash_of(text: str, context: Context) -> Crash | None:
    """Return the crash that the last traceback of a text tells of, or `None` where there is none."""
    if HEAD not in text:
        return None
    last = text.rpartition(HEAD)[2]
    location, function = None, ""
    for match in reversed(list(FRAME.finditer(last))):
        path = Path(match["path"])
        absolute = path if path.is_absolute() else context.root / path
        if int(match["line"]) and is_ours(absolute, context):
            location = Location(path=context.shown(absolute), line=int(match["line"]))
            function = (match["name"] or "").strip()
            break
    error, message = _error(last)
    return Crash(error=error, message=message[:LIMIT], location=location, function=function)


def said(crash: Crash) -> str:
    """Return the exception of a crash in one line."""
    return ": ".join(part for part in (crash.error, crash.message) if part)


def _error(last: str) -> tuple[str, str]:
    """Return an exception's type and message: the first line that stands out, also in an exception group's frame."""
    plain = [line for line in last.splitlines() if line.strip() and not line[0].isspace()]
    framed = [line.strip().lstrip("|+- ") for line in last.splitlines() if line.strip().startswith("| ")]
    for line in (*plain, *framed):
        if told := ERROR.match(line.strip()):
            return told["type"], (told["message"] or "").strip()
    return "", ""


def warnings_of(text: str, context: Context) -> Iterator[Warned]:
    """Yield each warning that Python printed, once."""
    seen = set()
    for match in WARNING.finditer(text):
        path = Path(match["path"])
        where = Location(
            path=context.shown(path if path.is_absolute() else context.root / path), line=max(int(match["line"]), 1)
        )
        warned = Warned(category=match["category"], message=match["message"][:LIMIT], location=where)
        if warned not in seen:
            seen.add(warned)
            yield warned


def is_ours(path: Path, context: Context) -> bool:
    """Return whether a file is the project's own, not one that is installed inside its folder, nor `<string>`."""
    inside = path.is_relative_to(context.root) and not {"site-packages", "dist-packages"} & set(path.parts)
    return inside and not any(part.startswith("<") for part in path.relative_to(context.root).parts)


def advice_on(error: str) -> str:
    """Return what to do about a module that is not there, or nothing where an error says nothing of one."""
    if unknown := re.search(r"unrecognized arguments: (--[\w-]+)", error):
        plugin = "pytest-json-report" if "--json-report" in error else f"the pytest plugin that has {unknown[1]}"
        return f"Install {plugin} for the interpreter that runs the project's code, or name one by --python."
    found = re.search(r"No module named '?([^'.\s]+)", error)
    if found is None:
        return ""
    if found[1] == "pytest":
        return (
            "Install pytest and pytest-json-report for the interpreter that runs the project's code, or name another "
            "by --python."
        )
    return (
        f"The interpreter that runs the project's code has no {found[1]}: install it there (the project itself: "
        "`pip install -e .`), or name one that has it by --python. If there is no such module, fix the import."
    )
