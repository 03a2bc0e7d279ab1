"""What a console script makes of the value that its function returns: it hands it to `sys.exit`."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

TABLES = (("project", "scripts"), ("project", "gui-scripts"), ("tool", "poetry", "scripts"))
CALLED = "main"


def exit_code_of(call: str, status: int, root: Path, *, is_number: bool) -> int | None:
    """Return what the process of a console script would end with; `None` for a callable that need not be one.

    A function that is called `main` and returns a whole number returns an exit code by convention; of one that
    `pyproject.toml` names as a script, `sys.exit` takes 0, `None` and `False` for success, and nothing else.
    """
    if call in scripts_of(root):
        return status
    return status if is_number and call.partition(":")[2] == CALLED else None


def scripts_of(root: Path) -> set[str]:
    """Return the functions that `pyproject.toml` makes commands of, as `package.module:name`."""
    try:
        said = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    return {"".join(text.partition("[")[0].split()) for table in TABLES for text in _values(said, table)}


def _values(said: object, table: tuple[str, ...]) -> Iterator[str]:
    for name in table:
        said = said.get(name) if isinstance(said, dict) else None
    yield from (text for text in said.values() if isinstance(text, str)) if isinstance(said, dict) else ()
