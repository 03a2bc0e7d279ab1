"""What ends a run before its time: Ctrl-C and SIGTERM, wherever they come, and being killed.

What is called back from C (validators of modules that are loaded, `__set_name__`, finalizers) turns the exception of a
signal into another, or drops it: it is noted, too. Where `gates` is killed, a child cleans up. It is run by the path of
this file, and imports what it needs only when it is needed: starting it costs a run next to nothing.
"""

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

_come: list[int] = []  # which of the two have come
_holding: list[bool] = []  # one for each part of the work that neither may break off


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM. Not `KeyboardInterrupt` itself, after which Python would end itself by that signal."""


def listen() -> None:
    """Take up both signals; one that the shell wants ignored stays so."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it was ignored, every child would seem to end with code 0
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def end() -> None:
    """Take no notice of either signal any more: the run is ending as they ask."""
    _holding.append(True)


def interrupted() -> bool:
    """Return whether a signal has come, even if what it interrupted took no notice."""
    return bool(_come)


def stop_if_interrupted() -> None:
    """Raise `Interrupted` where a signal has come."""
    if _come and not _holding:
        raise Interrupted


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold both signals back while something must be done as a whole; they come after it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _holding.append(True)
    try:
        yield
    finally:
        _holding.pop()
    stop_if_interrupted()


def _interrupt(number: int, _frame: FrameType | None) -> None:
    _come.append(number)
    stop_if_interrupted()


MARK = "GATES_RUN_ID"
DONE = b"done\n"
_guarded: list[Path] = []  # the folder of this process that a guardian watches


@contextmanager
def guarded_folder() -> Iterator[Path]:
    """Yield a fresh folder that is gone afterwards, with every process started meanwhile, even if this one is killed.

    The guardian reads a pipe: its end without a last word means that this process is dead. Processes are told by a mark
    in their environment. A folder within a folder lies beside it, and needs no guardian of its own.
    """
    import subprocess
    import tempfile

    token = os.urandom(16).hex()
    if _guarded:
        with _fresh(Path(f"{_guarded[0]}-{token[:12]}")) as folder:
            yield folder
        return
    before = os.environ.get(MARK)
    folder = Path(tempfile.gettempdir()).resolve() / f"gates-{token[:12]}"
    with uninterrupted():
        guardian = subprocess.Popen(
            [sys.executable, "-I", __file__, token, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # what kills the group of this process leaves it alone
        )
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
                guardian.communicate(b"" if _come else DONE)  # an interrupt may have left a thread that starts more


@contextmanager
def _fresh(folder: Path) -> Iterator[Path]:
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        with uninterrupted():
            remove(folder)


def remove(folder: Path) -> None:
    """Remove a folder, also where tests have taken away the right to write in it."""
    for path in (folder, *(each for each in folder.rglob("*") if each.is_dir() and not each.is_symlink())):
        with suppress(OSError):
            path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _watch() -> None:
    if sys.stdin.buffer.read() == DONE:
        return
    token, folder = sys.argv[1], Path(sys.argv[2])
    kill_all(token)
    for path in folder.parent.glob(f"{folder.name}*"):
        remove(path)


def kill_all(token: str) -> None:
    """Kill the processes that carry a mark, and those that they start while they are looked for."""
    import psutil  # the guardian needs it only where somebody was killed

    def carries(process: psutil.Process) -> bool:
        with suppress(Exception):  # it is gone, or somebody else's: psutil has many words for that
            if sys.platform == "linux" and token.encode() not in Path(f"/proc/{process.pid}/environ").read_bytes():
                return False  # as nearly all processes of the machine, whose environment need not be parsed then
            return token in process.environ().get(MARK, "") and process.status() != "zombie"
        return False

    limit = time.monotonic() + 60
    while (found := [each for each in psutil.process_iter() if carries(each)]) and time.monotonic() < limit:
        for process in found:
            with suppress(psutil.Error):
                process.kill()
        time.sleep(0.005)


@contextmanager
def every(seconds: float, beat: Callable[[], None]) -> Iterator[None]:
    """Do something every so many seconds while this is open; it is not under way any more afterwards."""
    ended = threading.Event()

    def beats() -> None:
        while not ended.wait(seconds):
            beat()

    thread = threading.Thread(target=beats, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


if __name__ == "__main__":
    _watch()
