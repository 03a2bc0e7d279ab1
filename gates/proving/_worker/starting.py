"""Runs one pytest session in a process group of its own: forked from this warm process, or started afresh."""

import contextlib
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

Told = dict[str, Any]
PAGE = 4096


def warm_up(packages: Iterable[str], modules: Iterable[str]) -> bool:
    """Import what every session needs and the faults do not touch; return whether forking is safe after it."""
    if not hasattr(os, "fork") or sys.platform == "darwin":
        return False
    own = {name.split(".")[0] for name in modules}
    left = own | {"pytest", "_pytest", "conftest"}
    before = list(sys.path)
    with _as_pytest_imports():
        for name in packages:
            if name.split(".")[0] not in left and not name.startswith(("__editable__", "test")):
                with contextlib.suppress(Exception):
                    importlib.import_module(name)
    sys.path[:] = before
    gc.collect()
    gc.freeze()  # no fork needs to look at what was there before it
    return not own & set(sys.modules) and threading.active_count() == 1


@contextlib.contextmanager
def _as_pytest_imports() -> Iterator[None]:
    """Import plugins as pytest does, with their assertions rewritten: of one that it finds otherwise, it warns."""
    import pytest
    from _pytest.assertion import install_importhook
    from _pytest.config import get_config

    config = get_config()
    install_importhook(config)
    pytest.register_assert_rewrite(*_with_plugins())
    try:
        yield
    finally:
        config._ensure_unconfigure()  # noqa: SLF001  # no public name takes the hook away


def run(told: Told, *, forked: bool, log: Path, limit_s: float, limit_bytes: int) -> Told:
    """Run a session to its end or its limits; return its events and how its process ended."""
    events = Path(told["events"])
    events.unlink(missing_ok=True)
    begun = time.monotonic()
    pid, ended = (_fork if forked else _spawn)(told, log)
    why = _watch(pid, ended, begun + limit_s, limit_bytes)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    code = ended()
    while code is None:
        time.sleep(0.005)
        code = ended()
    return {"events": _read(events), "why": why, "code": code, "seconds": time.monotonic() - begun}


def _fork(told: Told, log: Path) -> tuple[int, Callable[[], int | None]]:
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if not pid:
        _in_child(told, log)
    state: list[int] = []

    def ended() -> int | None:
        if not state:
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                state.append(os.waitstatus_to_exitcode(status))
        return state[0] if state else None

    return pid, ended


def _in_child(told: Told, log: Path) -> None:
    """Be the session, and never return."""
    code = 70
    try:
        os.setsid()
        number = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for stream in (1, 2):
            os.dup2(number, stream)
        sys.argv = ["pytest"]
        from . import session

        code = session.run(told)
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001  # whatever it is, this process must not go on as its parent
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def _spawn(told: Told, log: Path) -> tuple[int, Callable[[], int | None]]:
    asked = Path(told["events"]).with_suffix(".told.json")
    asked.write_text(json.dumps(told), encoding="utf-8")
    with log.open("wb") as written:
        argv = [sys.executable, "-m", f"{__package__}.session", str(asked)]
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=written, stderr=written, start_new_session=True)
    return child.pid, child.poll


def _watch(pid: int, ended: Callable[[], int | None], limit: float, limit_bytes: int) -> str:
    """Wait for the end; return why it was not waited for any longer, or nothing."""
    delay = 0.002
    while ended() is None:
        if time.monotonic() > limit:
            return "timeout"
        if _resident(pid) > limit_bytes:
            return "memory"
        time.sleep(delay)
        delay = min(delay * 1.5, 0.02)
    return ""


def _resident(pid: int) -> int:
    """Return the memory that a process holds, where the system tells."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * PAGE
    except (OSError, ValueError, IndexError):
        return 0


def _read(events: Path) -> list[Told]:
    found = []
    with contextlib.suppress(OSError):
        for line in events.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
    return found


@cache
def _with_plugins() -> set[str]:
    """Return the top-level packages of the distributions that bring pytest plugins."""
    found: set[str] = set()
    for distribution in metadata.distributions():
        if any(entry.group == "pytest11" for entry in distribution.entry_points):
            found |= {str(file).split("/")[0].removesuffix(".py") for file in distribution.files or ()}
    return found
