"""The paths that a task file writes out: where each stands in it, and those that lead nowhere."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from gates.model import Location, Model
from gates.project.files import holds_a_file, is_byproduct
from gates.task.task import Spot
from gates.task.yaml_source import did_you_mean

KEYS = ("implementation", "tests")
GLOB = frozenset("*?[")


class LoosePath(Model):
    """A path that leads to no file: under which key, where that stands, why, and what may have been meant."""

    key: str
    path: str
    location: Location
    column: int
    why: str
    hint: str = ""

    @property
    def said(self) -> str:
        """Return it in words, with its place."""
        return f"{self.key!r} names {self.path!r} ({self.location}:{self.column}), and {self.why}{self.hint}"


def loose_paths(spots: Iterable[Spot], task_file: str, root: Path) -> Iterator[LoosePath]:
    """Yield the paths under `implementation` and `tests` that lead to no file of the project."""
    for key, path, line, column in spots:
        head = path.split("::")[0]
        if key not in KEYS or holds_a_file(root / head):
            continue
        hint = ""
        if (root / head).is_dir():
            why = "that folder has no file"
        elif GLOB & set(head):
            why = "patterns are not followed: name files or folders"
        else:
            why, hint = "there is no such file or folder", _near(root / head, root)
        yield LoosePath(
            key=key, path=path, location=Location(path=task_file, line=line), column=column, why=why, hint=hint
        )


def _near(path: Path, root: Path) -> str:
    """Return `; did you mean 'pkg/more.py'?` where something beside a path, or beside its folder, is called like it."""
    wanted = next(each for each in (path, *path.parents) if each.parent.is_dir())
    beside = [each.name for each in wanted.parent.iterdir() if not is_byproduct(Path(each.name))]
    hint = did_you_mean(wanted.name, beside)
    if not hint.startswith("; did") or not wanted.is_relative_to(root):
        return ""
    name = next(name for name in beside if repr(name) in hint)
    meant = wanted.with_name(name) / path.relative_to(wanted)
    return f"; did you mean {meant.relative_to(root).as_posix()!r}?"
