"""Folders that this tool wrote reports into: no part of the project that it looks at."""

from pathlib import Path

HEADS = {"result.json": b'"schema": "gates.result/', "proof.json": b'"schema": "gates.proof/'}
HEAD = 64


def is_report(folder: Path) -> bool:
    """Return whether a folder holds the reports of a task, wherever `reports` or `--out` put them, and no code."""
    return any(_begins(folder / name, head) for name, head in HEADS.items()) and not any(folder.glob("*.py"))


def _begins(path: Path, head: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return head in file.read(HEAD)
    except OSError:
        return False
