"""How a project says that it is built, and a copy of it to build in."""

import os
import re
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path

from gates.project.own_reports import is_report

LEFT_OUT = {".gates", ".git", ".hg", ".tox", ".nox", ".venv", "node_modules", "__pycache__"}
LEFT_OUT_ABOVE = {"build", "dist", "venv", "wandb"}  # a package may have folders of these names
COMPILED = {".c", ".cc", ".cpp", ".cu", ".pyx", ".rs", ".f90", ".go"}
MOST_BYTES = 200 * 1024 * 1024
MOST_FILES = 20_000
LEGACY = ("setuptools.build_meta:__legacy__", ("setuptools",))


@dataclass(frozen=True)
class BuildPlan:
    """The backend's hook, what must be installed for it, and the folders that it may lie in."""

    backend: str
    requires: tuple[str, ...]
    paths: tuple[str, ...]


class NotBuildable(Exception):
    """A project that is not built here, and why."""


def build_plan(root: Path) -> BuildPlan | None:
    """Return how a project is built, or `None` where it says nothing of it."""
    path = root / "pyproject.toml"
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (OSError, ValueError) as error:
        raise NotBuildable(f"pyproject.toml cannot be read: {error!r:.200}") from error
    system = said.get("build-system")
    if system is None and "project" not in said and not (root / "setup.py").is_file():
        return None
    system = system if isinstance(system, dict) else {}
    backend = system.get("build-backend")
    if not isinstance(backend, str):
        return BuildPlan(LEGACY[0], _texts(system.get("requires")) or LEGACY[1], ())
    return BuildPlan(backend, _texts(system.get("requires")), _texts(system.get("backend-path")))


def required_names(root: Path) -> set[str] | None:
    """Return the normalised names of what the project requires in order to run, or `None` where it does not say."""
    path = root / "pyproject.toml"
    try:
        project = tomllib.loads(path.read_text(encoding="utf-8")).get("project") if path.is_file() else None
    except (OSError, ValueError):
        return None
    if not isinstance(project, dict) or "dependencies" in project.get("dynamic", ()):
        return None
    plain = [text for text in _texts(project.get("dependencies")) if ";" not in text]  # a marker may not hold here
    return {normalised(match[0]) for text in plain if (match := re.match(r"[A-Za-z0-9._-]+", text))}


def normalised(name: str) -> str:
    """Return a distribution's or module's name as both can be compared."""
    return re.sub(r"[-_.]+", "", name).lower()


def copy_tree(root: Path, target: Path) -> bool:
    """Copy a project, without what is not its source, to be built there; return whether it has sources to compile.

    Reports of this tool are left out: a backend that looks for packages would take their folder for one.
    """
    count = size = 0
    compiled = False
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not _is_left_out(Path(folder, name), root)]
        for name in names:
            source = Path(folder, name)
            if source.is_symlink() or not source.is_file():
                continue
            count, size = count + 1, size + source.stat().st_size
            if count > MOST_FILES or size > MOST_BYTES:
                raise NotBuildable(f"the project holds more than {MOST_FILES} files or {MOST_BYTES} bytes")
            compiled = compiled or source.suffix in COMPILED
            copy = target / source.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
    return compiled


def _is_left_out(folder: Path, root: Path) -> bool:
    return (
        folder.name in LEFT_OUT
        or (folder.name in LEFT_OUT_ABOVE and folder.parent == root)
        or folder.name.endswith((".egg-info", "_cache"))
        or folder.is_symlink()
        or (folder / "pyvenv.cfg").is_file()
        or is_report(folder)
    )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, list) else ()
