"""Bytecode that lies stored in the project: what runs in a source's place must be what that source compiles to."""

import os
import secrets
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from gates.errors import EvidenceUnavailable
from gates.project.history import run_git
from gates.words import printable

PREFIX = "PYTHONPYCACHEPREFIX"
LEFT_OUT = {".git", "site-packages", "dist-packages", "node_modules"}
HEAD = struct.Struct("<4sLLL")  # PEP 552: magic number, flags, then time and size of the source, or its hash
CHECKED = 2  # the flag of bytecode that Python compares with the hash of its source


@contextmanager
def of_its_sources(root: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Let no process take bytecode for a source that was changed since it was compiled.

    Python tells by the whole second and the size. What it would mistake is removed from the caches. Where a cache
    cannot be written or is committed, no stored bytecode is used while this is open: all sources compile anew.
    """
    committed = _committed(root)
    left = PREFIX in os.environ or bool(committed) or not all(map(_removed, outdated(root)))
    if committed:
        say(f"note: {printable(committed[0])} is committed; no stored bytecode is used, so this takes longer")
    with _compiling_anew() if left else nullcontext():
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


def outdated(root: Path) -> Iterator[Path]:
    """Yield the bytecode that Python would load although its source was written later."""
    for here, folders, names in os.walk(root):
        if Path(here).name == "__pycache__":
            yield from (path for name in names if name.endswith(".pyc") and _is_outdated(path := Path(here, name)))
        folders[:] = [name for name in folders if name not in LEFT_OUT]


def _is_outdated(path: Path) -> bool:
    source = path.parent.with_name(f"{path.name.partition('.')[0]}.py")
    try:
        at, compiled = source.stat(), path.stat()
        with path.open("rb") as file:
            _, flags, *words = HEAD.unpack(file.read(HEAD.size))
    except (OSError, struct.error):
        return False
    same = words == [int(at.st_mtime) & 0xFFFFFFFF, at.st_size & 0xFFFFFFFF] if flags == 0 else not flags & CHECKED
    return same and at.st_ctime_ns > compiled.st_ctime_ns  # nobody can set the time at which a file was changed


def _removed(path: Path) -> bool:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _committed(root: Path) -> list[str]:
    """Return the bytecode that git holds: it came with its sources, and no time tells which was there first."""
    with suppress(EvidenceUnavailable):
        paths = run_git(root, ("ls-files", "-z")).stdout.split(b"\0")
        return [os.fsdecode(path) for path in paths if path.endswith(b".pyc") and b"__pycache__/" in path]
    return []
