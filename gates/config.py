"""The configuration: `[tool.gates]` in the nearest pyproject.toml upwards; and where collectors look and write."""

import os
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails

from gates.errors import UsageError
from gates.model import Model, PolicyRevision
from gates.words import did_you_mean

if TYPE_CHECKING:
    from gates.child.forks import Warm

DEFAULT_TIMEOUT_S = 900.0
SIGNER = r"^\S+ +(\S+ +)?\S+ +\S+[^\r\n]*$"  # a line of an allowed_signers file: who, options, kind of key, key


class Settings(Model, title="tool.gates"):
    """What `[tool.gates]` may say; paths are relative to the folder of its pyproject.toml."""

    tasks: str = "tasks"
    reports: str = "reports"
    rules: str = "gates-rules"
    python: str | None = None
    timeout_s: Annotated[float, Field(gt=0)] = DEFAULT_TIMEOUT_S
    keep_going: bool = False
    goalposts: Literal["bar", "all", "list"] = "bar"
    evidence: str = "evidence"
    evidence_signers: tuple[Annotated[str, Field(pattern=SIGNER)], ...] = ()


@dataclass(frozen=True)
class Context:
    """The world as the collectors see it; `evidence` is a fresh folder for raw files, outside of the project's `root`.

    `timeout_s` is the limit of a command that sets none of its own, `today` the day by which waivers end, `base` what
    the bar is compared with (found where it is `None`), `goalposts` what a lowered bar does (as the base says where it
    is `None`), `policy` where the task file was taken from, `signers` who must have signed evidence from elsewhere.
    `copied` makes the copy of the project that programs run in, once, and `warm` what forks them, if anything does;
    code that pytest rewrote is kept in `rewritten`.
    """

    root: Path
    evidence: Path
    python: str
    timeout_s: float
    repeat: int = 1
    today: date | None = None
    rules: Path | None = None
    base: str | None = None
    goalposts: str | None = None
    policy: PolicyRevision | None = None
    signers: tuple[str, ...] = ()
    copied: Callable[[], Path] | None = None
    warm: "Callable[[], Warm | None] | None" = None
    rewritten: Path | None = None

    def apart(self) -> "Context":
        """Return the same in the copy of the project, if one is made: what programs write there changes no project."""
        return replace(self, root=self.copied()) if self.copied else self

    def argv(self, words: Sequence[str], **filled: str) -> list[str]:
        """Return a command of a task file with its placeholders filled in and `python` made the interpreter."""
        result = [re.sub(r"\{(\w+)\}", lambda found: filled.get(found[1], found[0]), word) for word in words]
        return [self.python, *result[1:]] if result[0] in {"python", "python3"} else result

    def folder(self, name: str) -> "Context":
        """Return the same context with a folder of its own for raw files."""
        path = self.evidence / name
        path.mkdir(parents=True, exist_ok=True)
        return replace(self, evidence=path)

    def shown(self, path: Path) -> str:
        """Return a raw file's path as reports name it, or a project's path relative to its root."""
        around = next((base for base in (self.root, self.evidence) if path.is_relative_to(base)), None)
        return (path.relative_to(around) if around else path).as_posix()


@dataclass(frozen=True)
class Project:
    """A project as it lies on disk: its folder, what its settings say, its interpreter, and the limit of a command."""

    root: Path
    settings: Settings
    python: str = sys.executable
    timeout_s: float = DEFAULT_TIMEOUT_S

    @property
    def tasks(self) -> Path:
        """Return the folder of the task files."""
        return self.root / self.settings.tasks

    @property
    def reports(self) -> Path:
        """Return the folder of the reports."""
        return self.root / self.settings.reports

    @property
    def rules(self) -> Path:
        """Return the folder of the project's own code rules."""
        return self.root / self.settings.rules

    def running(self, python: str | None, timeout_s: float | None) -> Self:
        """Return the same with its interpreter, as a path that holds in every folder, and the limit of a command."""
        found = interpreter(python, Path.cwd()) or interpreter(self.settings.python, self.root) or sys.executable
        return replace(self, python=found, timeout_s=timeout_s or self.settings.timeout_s)

    def context(self, folder: Path) -> Context:
        """Return what collectors see of it, with a folder for raw files."""
        return Context(self.root, folder, self.python, self.timeout_s, rules=self.rules)


def find_root(start: Path) -> Path:
    """Return the folder of a repository's nearest pyproject.toml with `[tool.gates]`, else of any, else `start`."""
    above = (start, *start.parents)
    top = next((i for i, folder in enumerate(above) if (folder / ".git").exists()), len(above))
    files = [file for folder in above[: top + 1] if (file := folder / "pyproject.toml").is_file()]
    own = next((file for file in files if "gates" in tool_tables(file)), next(iter(files), start / "pyproject.toml"))
    return own.parent


def interpreter(named: str | None, folder: Path) -> str | None:
    """Return an interpreter named by a path as one that holds in every folder; a bare word must be on the PATH."""
    if not named:
        return named
    if not {"/", os.sep} & set(named):
        if shutil.which(named) is None:
            raise UsageError(f"no interpreter {named!r}: no program of that name is on the PATH; name one by its path")
        return named
    path = Path(os.path.abspath(folder / Path(named).expanduser()))  # noqa: PTH100  # the link is the environment
    if not path.is_file():
        raise UsageError(f"no interpreter {named!r}: there is no file {path}; name that of the project's environment")
    return str(path)


def load(root: Path) -> Settings:
    """Load the settings of a project; raise `UsageError` with file and line for what is wrong in them."""
    if not (file := root / "pyproject.toml").is_file():
        return Settings()
    try:
        return Settings.model_validate(tool_tables(file).get("gates", {}), strict=False)
    except ValidationError as error:
        raise UsageError("\nerror: ".join(_complaint(file, item) for item in error.errors())) from error


def tool_tables(file: Path) -> dict[str, Any]:
    """Return the `[tool]` tables of a pyproject.toml; raise `UsageError` where it cannot be read."""
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        where = f":{found[1]}:{found[2]}" if found else ":1:1"
        raise UsageError(f"{file}{where}: not valid TOML: {str(error).split(' (at')[0]}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}:1:1: cannot be read: {error}") from error
    tool = data.get("tool", {})
    return tool if isinstance(tool, dict) else {}


def _complaint(file: Path, error: ErrorDetails) -> str:
    key = str(error["loc"][0]) if error["loc"] else "gates"
    line, column = _place(file, key)
    if error["type"] == "extra_forbidden":
        return f"{file}:{line}:{column}: unknown key {key!r} in [tool.gates]{did_you_mean(key, Settings.model_fields)}"
    message = error["msg"].replace("Input should be", "expected")
    return f"{file}:{line}:{column}: {key}: {message[0].lower()}{message[1:]}, found {error['input']!r:.80}"


def _place(file: Path, key: str) -> tuple[int, int]:
    """Return where a key of `[tool.gates]` stands; TOML's reader keeps no places."""
    inside = False
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip().startswith("["):
            inside = line.strip().replace(" ", "") == "[tool.gates]"
        elif inside and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line):
            return number, len(line) - len(line.lstrip()) + 1
    return 1, 1
