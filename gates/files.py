"""The files that a task speaks of."""

from pathlib import Path


def files_of(paths: tuple[str, ...], root: Path) -> list[Path]:
    """Return the files under the paths of a task, caches and hidden files left out, in the order of their names."""
    found: set[Path] = set()
    for path in paths:
        base = root / path.split("::")[0]
        if base.is_file():
            found.add(base)
        elif base.is_dir():
            found |= {file for file in base.rglob("*") if file.is_file() and not _is_byproduct(file.relative_to(base))}
    return sorted(found)


def _is_byproduct(path: Path) -> bool:
    return any(part == "__pycache__" or part.startswith(".") for part in path.parts) or path.suffix == ".pyc"
