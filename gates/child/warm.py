"""Imports what other programs need, once, and forks each of them from that, as if its own command had started it."""

import ctypes
import gc
import importlib
import importlib.util
import json
import os
import runpy
import signal
import socket
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from .asking import HERE, Places, can_fork, import_from

MOST, MOST_FILES, PID = 2**20, 250, 16  # bytes of an order, files given with it, and bytes of the id of a process
NOTES = "gates_noting"
SUBREAPER = 36  # of prctl(2)
THREADS = "OMP_NUM_THREADS"  # libraries read it as they are loaded
forked = False  # whether this is the process of a program that was forked from here
given: dict[int, int] = {}  # the files that it was given, by the numbers that they have for who gave them


def main() -> None:
    """Load what is ordered, and answer whether forks are safe after it; run each program that is ordered in a fork."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    first, *others = sys.path
    named = {os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path}  # noqa: PTH100
    lasting = [path for path in others if path not in named]
    while True:
        message, files, *_ = socket.recv_fds(connection, MOST, MOST_FILES)
        if not message:
            os._exit(0)
        order: dict[str, Any] = json.loads(message)
        if "load" in order:
            connection.send(b"1" if _named(order["load"])(*order["args"]) and not _hides(order["roots"]) else b"0")
        elif _is_fork(connection, files):
            given.update(zip(order["files"], files[3:], strict=True))
            _become(order, first, lasting)
            _named(order["argv"][0])()
            return


def _is_fork(connection: socket.socket, files: list[int]) -> bool:
    """Fork twice, and return whether this is the last: the process between waits for it, and tells how it ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    if os.fork():
        for number in files:
            os.close(number)
        return False
    connection.close()
    if pid := os.fork():
        _wait_for(pid, *files)
    os.setsid()
    for number, stream in zip(files, (1, 2), strict=False):
        os.dup2(number, stream)
    for number in files[:3]:
        os.close(number)
    return True


def _wait_for(pid: int, out: int, err: int, answers: int, *others: int) -> NoReturn:
    """Tell how a fork ended, once all that it started has ended with it: that is handed to this process."""
    for number in (out, err, *others):
        os.close(number)
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    with suppress(OSError):
        os.write(answers, f"{pid:{PID}}".encode())
        _, status, usage = os.wait4(pid, 0)
        while left := children():
            for each in left:
                os.kill(int(each), signal.SIGKILL)
            os.waitpid(-1, 0)
        os.write(answers, f"{status} {usage.ru_maxrss}".encode())
    os._exit(0)


def children() -> list[str]:
    """Return the ids of the processes that this one has started or was handed; raise `OSError` where nothing tells."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()


def _become(order: dict[str, Any], first: str, lasting: list[str]) -> None:
    """Take on folder, environment, path and arguments of the command, and note what is run from now on, if it is to."""
    global forked
    forked, env, root = True, order["env"], order["cwd"]
    threads = env.get(THREADS, "").partition(",")[0]
    if (torch := sys.modules.get("torch")) and env.get(THREADS) != os.environ.get(THREADS):
        torch.set_num_threads(int(threads) if threads.isdigit() else os.cpu_count() or 1)
    os.chdir(root)
    os.environ.clear()
    os.environ.update(env)
    notes = f"{HERE}noting"
    paths = (os.path.join(root, path) for path in filter(None, env.get("PYTHONPATH", "").split(os.pathsep)))  # noqa: PTH118
    sys.path[:] = dict.fromkeys([first, *(path for path in paths if path != notes), *lasting])
    sys.argv = ["-c", *order["argv"][1:]]
    tempfile.tempdir = None
    importlib.invalidate_caches()
    if "GATES_NOTED" in env:
        made = importlib.util.spec_from_file_location(NOTES, f"{notes}/sitecustomize.py")
        sys.modules[NOTES] = importlib.util.module_from_spec(made)  # type: ignore[arg-type]  # it is there
        made.loader.exec_module(sys.modules[NOTES])  # type: ignore[union-attr]


def _named(program: str) -> Any:  # noqa: ANN401  # whatever is called by it
    name, _, what = program.partition(":")
    return getattr(importlib.import_module(f"gates_probe.{name}"), what or "main")


def run() -> None:
    """Run a script, or `-m` and a module, as Python does."""
    del sys.argv[0]
    is_module = sys.argv[0] == "-m"
    import_from([os.getcwd() if is_module else os.path.dirname(os.path.realpath(sys.argv[0]))])  # noqa: PTH109, PTH120
    if is_module:
        runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(os.path.abspath(sys.argv[0]), run_name="__main__")  # noqa: PTH100


def load(modules: list[str]) -> bool:
    """Import modules of libraries; return whether forks are safe after it."""
    try:
        for name in modules:
            importlib.import_module(name)
    except BaseException:  # noqa: BLE001  # each program says so for itself
        return False
    gc.freeze()  # no fork needs to look for garbage in it, which would copy all of it
    return can_fork()


def _hides(roots: list[str]) -> bool:
    """Return whether a module that was loaded is of a project, or would be found there by its name."""
    loaded = {name: str(getattr(module, "__file__", None) or "") for name, module in [*sys.modules.items()]}
    places = [Places(root) for root in roots]
    own = any(place.shown(file) for file in loaded.values() if os.path.isabs(file) for place in places)  # noqa: PTH117
    names = {name.partition(".")[0] for name in loaded} - {"__main__"}
    inside = (f"{root}/{name}{end}" for root in roots for name in names for end in (".py", "/__init__.py"))
    return own or any(map(os.path.exists, inside))
