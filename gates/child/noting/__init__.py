"""What processes noted of themselves: the project's functions that they did not run, and what leaves that in doubt."""

import ast
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self

from pydantic import Field

from gates.child.asking import NETWORK
from gates.code.units import Units
from gates.model import Model


class Noting(NamedTuple):
    """The folder in which processes note what they run, and those that were begun meanwhile."""

    folder: Path
    begun: list[int]


_noting: list[Noting] = []


@contextmanager
def noting(folder: Path) -> Iterator[Noting]:
    """Let every process that is started meanwhile note which functions it runs."""
    _noting.append(Noting(folder, []))
    try:
        yield _noting[-1]
    finally:
        _noting.pop()


@contextmanager
def unnoted() -> Iterator[None]:
    """Let processes that are started meanwhile note nothing."""
    held = _noting[:]
    _noting.clear()
    try:
        yield
    finally:
        _noting[:] = held


def noting_env(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which a Python process notes what it runs, if it is to."""
    if not _noting:
        return {**env}
    paths = filter(None, [str(Path(__file__).parent), env.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))])
    return {**env, "GATES_NOTED": str(_noting[-1].folder), "PYTHONPATH": os.pathsep.join(paths)}


def begun(pid: int) -> None:
    """Say that a process was begun."""
    for each in _noting[-1:]:
        each.begun.append(pid)


class Noted(Model):
    """What some processes rest on of Python files, by path: in `doubt` on any.

    `idle` are for each file that they imported the functions that none of them ran, `read` the files that were read as
    text. `raw` are the raw files of the evidence that they are of.
    """

    doubt: str = ""
    idle: dict[str, tuple[str, ...]] = Field(default={})
    read: tuple[str, ...] = ()
    raw: tuple[str, ...] = ()

    @classmethod
    def of(cls, noting: Noting, raw: Iterable[str]) -> Self:
        """Read the notes of processes, and of what these started."""
        doubts, idle, read, awaited = list[str](), dict[str, set[str]](), set[str](), len(noting.begun)
        pids = set[int]()
        for path in sorted(noting.folder.iterdir()):
            try:
                lines = [ast.literal_eval(line) for line in path.read_text(encoding="ascii").splitlines()]
            except (ValueError, SyntaxError):  # of a full disk
                lines = [("doubt", "notes cannot be read")]
            words = [word for word, _ in lines]
            awaited += words.count("started") - words.count("begun")
            pids |= {what for word, what in lines if word == "begun"}
            doubts += [str(what) for word, what in lines if word == "doubt"]
            doubts += [] if "end" in words else ["a process was not seen to end"]
            read |= {what for word, what in lines if word == "read"}
            for file, *names in (what for word, what in lines if word == "idle"):
                idle[file] = idle.get(file, {*names}) & {*names}
        if awaited > 0 or not pids >= {*noting.begun}:
            doubts.append("a process told nothing of what it ran")
        doubts.sort(key=lambda doubt: doubt not in NETWORK)
        found = {file: tuple(sorted(names)) for file, names in idle.items()}
        return cls(doubt=next(iter(doubts), ""), idle=found, read=tuple(sorted(read)), raw=tuple(sorted(raw)))

    def rests_on(self, path: str, before: Units, now: Units) -> bool:
        """Return whether what changed in a file of the project may be what a process ran or read, in a copy, too."""
        if self.doubt or any(_is(file, path) for file in self.read):
            return True
        changed = before.changed(now)
        names = {before.functions[each] for each in changed or ()}
        return any(changed is None or not names <= {*idle} for file, idle in self.idle.items() if _is(file, path))


def _is(file: str, path: str) -> bool:
    return f"/{file}".endswith(f"/{path}")
