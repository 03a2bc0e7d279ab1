"""The files that a task speaks of; and bytecode that is not of its sources."""

import ast
import fcntl
import os
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from gates.config import Context
from gates.task.task import Task

SUPPORT = ("conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", "tox.ini", "setup.cfg")  # what bends every test


def files_of(paths: tuple[str, ...], root: Path) -> list[Path]:
    """Return the files under the paths of a task, caches and hidden files left out, in the order of their names."""
    bases = [root / path.split("::")[0] for path in paths]
    found = {base for base in bases if base.is_file()}.union(*(_below(base) for base in bases if base.is_dir()))
    return sorted(found, key=lambda path: path.parts)


def _below(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder; a cache or a hidden folder, a whole environment perhaps, is not entered."""
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_aside(name)]
        for name in names:
            if not is_aside(name) and os.path.isfile(os.path.join(here, name)):  # noqa: PTH113, PTH118  # of thousands
                yield Path(here, name)


def is_under(path: str, folder: str) -> bool:
    """Return whether a path or a node id is a file, folder, class or test, or lies in it."""
    folder = folder.rstrip("/")
    return folder in {".", path} or path.startswith((f"{folder}/", f"{folder}::", f"{folder}["))


def is_among(path: str, entries: Iterable[str]) -> bool:
    """Return whether a path is one of a task's entries, or lies in one."""
    return any(is_under(path, entry.split("::")[0]) for entry in entries)


def is_test_file(path: Path) -> bool:
    """Return whether pytest takes a file for one of tests by its name, where nothing else is configured."""
    return path.suffix == ".py" and (path.stem.startswith("test_") or path.stem.endswith("_test"))


def is_code(path: str, implementation: Iterable[str]) -> bool:
    """Return whether a file, which may lie among tests, is of the implementation and no test or help of tests."""
    file = PurePosixPath(path)
    is_test = is_test_file(Path(path)) or file.name in SUPPORT or {"tests", "test"}.intersection(file.parts)
    return is_among(path, implementation) and not is_test


def is_aside(name: str) -> bool:
    """Return whether a name is that of a cache, or hidden."""
    return name == "__pycache__" or name.startswith(".") or name.endswith(".pyc")


def near(path: Path) -> Path:
    """Return a path relative to the current folder, where it lies inside."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def import_roots(task: Task, context: Context) -> list[Path]:
    """Return the root, `src` where there is one, and the folders that hold the implementation's packages."""
    root = context.root
    packages = [package_root(root / entry) for entry in task.implementation]
    beside = [root / "src"] if (root / "src").is_dir() else []
    return [path for path in dict.fromkeys((root, *beside, *packages)) if path.is_relative_to(root)]


def package_root(path: Path) -> Path:
    """Return the folder above the outermost package that a file lies in, or that a folder is a part of."""
    folder = path if path.is_dir() else path.parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


def module_name(path: Path, root: Path | None = None) -> str:
    """Return the dotted name by which a file is imported from a folder: the one above its packages by default."""
    parts = path.relative_to(root or package_root(path)).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def tree_of(path: Path) -> ast.Module | None:
    """Return the syntax tree of a file, or `None` where it cannot be read: what runs it says so."""
    with suppress(OSError, SyntaxError, ValueError, RecursionError):
        return ast.parse(path.read_bytes())
    return None


def packages_of(path: Path) -> set[str]:
    """Return the packages that a module imports when it is imported, but for what its functions do."""
    tree, names = tree_of(path), list[str]()
    for node in tree.body if tree else ():
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.append(node.module)
    return {name.split(".")[0] for name in names}


def pyproject_of(root: Path) -> dict[str, Any] | None:
    """Return what pyproject.toml says: nothing where there is none, `None` where it cannot be read."""
    path = root / "pyproject.toml"
    with suppress(OSError, ValueError):
        return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return None


def append(path: Path, line: str) -> str:
    """Add a line to a file in a folder that git does not see; return why it is not written, where that is so."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError), path.with_name(".gitignore").open("x", encoding="utf-8") as ignored:
            ignored.write("*\n")
        with path.open("a", encoding="utf-8", newline="\n") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(f"{line}\n")
    except OSError as error:
        return f"{path} cannot be written: {error.strerror or error}"
    return ""


LEFT_OUT = {".git", "site-packages", "dist-packages", "node_modules"}


def of_its_sources(root: Path) -> None:
    """Remove bytecode whose source was changed later: Python tells the two apart by second and size alone."""
    for here, folders, names in os.walk(root):
        for path in (Path(here, name) for name in names if Path(here).name == "__pycache__" and name.endswith(".pyc")):
            source = path.parent.with_name(f"{path.name.partition('.')[0]}.py")
            with suppress(OSError):
                if source.stat().st_ctime_ns > path.stat().st_ctime_ns:
                    path.unlink(missing_ok=True)
        folders[:] = [name for name in folders if name not in LEFT_OUT]
