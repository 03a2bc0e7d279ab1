"""Bytecode that lies stored in the project: what runs in a source's place must be what that source compiles to."""

import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gates.terminal import printable

PREFIX = "PYTHONPYCACHEPREFIX"
CHECK = Path(__file__).with_name("_compiled_anew.py")
LEFT_OUT = {".git", "site-packages", "dist-packages", "node_modules"}
LIMIT_S = 60.0


@contextmanager
def of_its_sources(root: Path, python: str, say: Callable[[str], None]) -> Iterator[None]:
    """Have processes compile all sources anew while this is open, unless what is stored is what they compile to."""
    doubtful = PREFIX if PREFIX in os.environ else in_doubt(root, python)
    if not doubtful:
        yield
        return
    if doubtful != PREFIX:
        why = f"{printable(doubtful)} is not what its source compiles to"
        say(f"note: {why}; no stored bytecode is used, so this takes longer")
    with _compiling_anew():
        yield


@contextmanager
def _compiling_anew() -> Iterator[None]:
    before = os.environ.get(PREFIX)
    empty = Path(tempfile.gettempdir()).resolve() / f"gates-bytecode-{secrets.token_hex(6)}"
    os.environ[PREFIX] = str(empty)
    try:
        yield
    finally:
        os.environ.pop(PREFIX) if before is None else os.environ.update({PREFIX: before})
        shutil.rmtree(empty, ignore_errors=True)  # of a process that writes bytecode all the same


def in_doubt(root: Path, python: str) -> str:
    """Return the first stored file that is not known to be what its source compiles to; nothing where all are."""
    folders = [*map(str, stored(root))]
    if not folders:
        return ""
    given = b"\0".join(map(os.fsencode, folders))
    try:
        argv = [python, "-I", "-B", str(CHECK)]
        done = subprocess.run(argv, input=given, capture_output=True, check=False, timeout=LIMIT_S)
    except (OSError, subprocess.SubprocessError):
        return os.path.relpath(folders[0], root)
    *files, last = done.stdout.split(b"\0")
    if last != b"done":
        return os.path.relpath(folders[0], root)
    return os.path.relpath(os.fsdecode(files[0]), root) if files else ""


def stored(root: Path) -> Iterator[Path]:
    """Yield the folders of the project that hold bytecode; those of installed packages are not the project's."""
    for here, folders, _ in os.walk(root):
        if Path(here).name == "__pycache__":
            yield Path(here)
        folders[:] = [name for name in folders if name not in LEFT_OUT]
