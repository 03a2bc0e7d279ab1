"""Which files of the project the test run imported, beside those that the commit has."""

import ast
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

from gates.check import Evidence
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.lines.traced import FOLDER, Traced
from gates.project.history import Blob, History
from gates.task.task import Task
from gates.words import printable

INSTALLED = {"site-packages", "dist-packages"}
COMPILED = (".so", ".pyd", ".dll", ".dylib")
VERSION_FILE = re.compile(r"_*version(_info)?_*\.py")
CODE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Call)


class ImportedCode(Evidence):
    """Files that the tests imported and that the commit does not have."""

    strays: tuple[str, ...]

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:  # noqa: ARG003  # what every kind is given
        """Read what the plugin left beside the test run, which must have been collected before."""
        traced = Traced.read(context.evidence / "pytest" / FOLDER)
        files = map(Path, sorted({*traced.told("modules")}))
        own = [file for file in files if file.suffix not in COMPILED and not _is_installed(file, context.root)]
        return cls(
            how="the modules that were loaded at the end of the test run",
            strays=tuple(_shown(not_committed(own, context.root), context.root)),
        )


def _is_installed(file: Path, root: Path) -> bool:
    """Return whether a file is of an installed package, or lies outside of the project."""
    return not file.is_relative_to(root) or bool(INSTALLED & {*file.relative_to(root).parts})


def not_committed(files: Iterable[Path], root: Path) -> Iterator[Path]:
    """Yield the files that HEAD does not have; without a commit there is nothing for them to belong to."""
    try:
        history = History(root)
        commit = history.commit("HEAD")
        tree = history.whole_tree(commit) if commit else None
    except EvidenceUnavailable:
        return
    for file in files if tree is not None else ():
        real = Path(os.path.realpath(file))
        inside = real.relative_to(history.top).as_posix() if real.is_relative_to(history.top) else None
        if inside and not _has(tree or {}, inside) and not is_version_file(real):
            yield file


def _has(tree: dict[str, Blob], path: str) -> bool:
    """Return whether a commit has a file, or a submodule that it lies in: of that it has a commit of its own."""
    steps = path.split("/")
    above = ("/".join(steps[: n + 1]) for n in range(len(steps) - 1))
    return path in tree or any(step in tree and not tree[step].link for step in above)


def is_version_file(path: Path) -> bool:
    """Return whether a file has the name of one that says which version the project is, and does nothing."""
    if not VERSION_FILE.fullmatch(path.name):
        return False
    try:
        return not any(isinstance(node, CODE) for node in ast.walk(ast.parse(path.read_bytes())))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return False


def _shown(files: Iterable[Path], root: Path) -> list[str]:
    return sorted(printable(file.relative_to(root).as_posix()) for file in files)
