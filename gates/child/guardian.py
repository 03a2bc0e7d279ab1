"""A child that outlives `gates` by a moment: where that is killed and cannot clean up, the child does.

It is run by its path, and imports what it needs only when it is needed: starting it costs a run next to nothing.
"""

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

MARK = "GATES_RUN_ID"
DONE = b"done\n"
_guarded: list[Path] = []  # the folder of this process that a guardian watches


@contextmanager
def guarded_folder() -> Iterator[Path]:
    """Yield a fresh folder that is gone afterwards, with every process started meanwhile, even if this one is killed.

    The guardian reads a pipe that only this process can write to. Its end without a last word means that this process
    is dead. Processes are told by a mark in their environment, which they inherit. A folder within a folder lies beside
    it, and needs no guardian of its own.
    """
    from gates.child.interrupts import uninterrupted

    token = secrets.token_hex(16)
    if _guarded:
        with _fresh(Path(f"{_guarded[0]}-{token[:12]}")) as folder:
            yield folder
        return
    before = os.environ.get(MARK)
    folder = Path(tempfile.gettempdir()).resolve() / f"gates-{token[:12]}"
    with uninterrupted():
        guardian = _start(token, folder)
        _guarded.append(folder)
    os.environ[MARK] = f"{before or ''}:{token}"
    try:
        with _fresh(folder):
            yield folder
    finally:
        with uninterrupted():
            os.environ.pop(MARK) if before is None else os.environ.update({MARK: before})
            _guarded.clear()
            with suppress(OSError):  # killed, too: there is nothing left for it to do
                guardian.communicate(DONE)


@contextmanager
def _fresh(folder: Path) -> Iterator[Path]:
    from gates.child.interrupts import uninterrupted

    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        with uninterrupted():
            remove(folder)


def _start(token: str, folder: Path) -> subprocess.Popen[bytes]:
    guardian = subprocess.Popen(
        [sys.executable, "-I", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # what kills the group of this process leaves it alone
    )
    assert guardian.stdin is not None
    guardian.stdin.write(json.dumps({"token": token, "folder": str(folder)}).encode() + b"\n")
    guardian.stdin.flush()
    return guardian


def remove(folder: Path) -> None:
    """Remove a folder, also where tests have taken away the right to write in it."""
    for path in (folder, *(each for each in folder.rglob("*") if each.is_dir() and not each.is_symlink())):
        with suppress(OSError):
            path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _watch() -> None:
    """Read what there is to guard, wait for the end of the pipe, and clean up unless that was done."""
    first, last = sys.stdin.buffer.readline(), sys.stdin.buffer.read()
    if not first or last == DONE:
        return
    told = json.loads(first)
    _kill(told["token"])
    folder = Path(told["folder"])
    for path in folder.parent.glob(f"{folder.name}*"):
        remove(path)


def _kill(token: str) -> None:
    """Kill the processes that carry the mark, and those that they start while they are looked for."""
    import psutil  # only where somebody was killed

    for _ in range(5):
        found = [process for process in psutil.process_iter() if _carries(process, token)]
        if not found:
            return
        for process in found:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(found, timeout=1.0)


def _carries(process: "psutil.Process", token: str) -> bool:
    try:
        return token in process.environ().get(MARK, "") and process.status() != "zombie"
    except Exception:  # noqa: BLE001  # it is gone, or somebody else's: psutil has many words for that
        return False


if __name__ == "__main__":
    _watch()
