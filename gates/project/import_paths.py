"""The folders that the modules of a task's implementation are imported from."""

import ast
from collections.abc import Iterator
from pathlib import Path

from gates.context import Context
from gates.task.task import Task


def import_roots(task: Task, context: Context) -> list[Path]:
    """Return the root, `src` where there is one, and the folders that hold the implementation's packages."""
    return [path for path in dict.fromkeys(_roots(task, context)) if path.is_relative_to(context.root)]


def package_root(path: Path) -> Path:
    """Return the folder above the outermost package that a file lies in."""
    folder = path.parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


def module_name(path: Path, root: Path | None = None) -> str:
    """Return the dotted name by which a file is imported from a folder: the one above its packages by default."""
    parts = path.relative_to(root or package_root(path)).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def packages_of(path: Path) -> set[str]:
    """Return the packages that a module imports when it is imported, but for what its functions do."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return set()  # its import will tell
    names: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.append(node.module)
    return {name.split(".")[0] for name in names}


def _roots(task: Task, context: Context) -> Iterator[Path]:
    yield context.root
    if (context.root / "src").is_dir():
        yield context.root / "src"
    for entry in task.implementation:
        path = context.root / entry
        yield package_root(path / "__init__.py" if path.is_dir() else path)
