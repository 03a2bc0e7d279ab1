"""Notes which functions of the project's modules a process runs, and what else it rests on.

Python imports it before anything else where this folder is on its path. Nothing is traced: CPython 3.11 itself counts
the first runs of each code object, and later ones tell of a first run once (`sys.monitoring`). A process that does not
come to its end has not told what it ran. As every process waits for this, it imports next to nothing.
"""

from __future__ import annotations

import atexit
import os
import sys
from types import CodeType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

STARTS = {"subprocess.Popen", "pty.spawn", *(f"os.{name}" for name in ("system", "exec", "forkpty", "posix_spawn"))}
NETWORK = {"socket.connect", "socket.sendto", "socket.getaddrinfo"}
ANSWERS = {
    "uname",
    "hostname",
    "ldconfig",
    "gcc",
    "cc",
    "lscpu",
    "ps",
    "file",
    "which",
}  # they read nothing of a project
COPIES = "code.__new__"  # of a function's code: each is counted by itself
GENERATES = 0x2A0  # flags of generators and coroutines: a call that only makes one runs nothing
WARMUP, FRESH = 52, -8  # where CPython 3.11 counts the runs of a code object, and what it holds before the first
TOOL = 4
IMPORTING = "<frozen importlib._bootstrap_external>"
SHOWING = ("traceback.py", "warnings.py")


class Notes:
    """The notes of this process, and of each fork of it, in a file of its own."""

    def __init__(self, folder: str) -> None:
        self._folder, self.ours = folder, False
        self._modules: list[CodeType] = []
        self._ran: set[CodeType] | None = None
        self._begin("begun")
        if sys.version_info >= (3, 12):
            self._ran, events = set(), sys.monitoring.events
            sys.monitoring.use_tool_id(TOOL, "gates")
            sys.monitoring.register_callback(TOOL, events.PY_START, self._start)
            sys.monitoring.set_events(TOOL, events.PY_START)
        sys.addaudithook(self._hear)
        os.register_at_fork(after_in_child=lambda: self._begin("forked"))
        atexit.register(self.end)

    def _begin(self, how: str) -> None:
        self._owner, self._told = os.getpid(), set[tuple[str, object]]()
        self._path = os.path.join(self._folder, f"{self._owner}-{os.urandom(4).hex()}")  # noqa: PTH118
        self._note(how, self._owner)

    def _note(self, word: str, what: object) -> None:
        if (word, what) not in self._told:
            self._told.add((word, what))
            try:
                with open(self._path, "a", encoding="ascii") as file:  # noqa: PTH123
                    file.write(ascii((word, what)) + "\n")
            except OSError:  # then it has not told
                self._owner = 0

    def _start(self, code: CodeType, _: int) -> object:
        assert self._ran is not None
        self._ran.add(code)
        return sys.monitoring.DISABLE  # type: ignore[attr-defined,unused-ignore]  # of 3.12

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "exec":
            code = args[0]
            if isinstance(code, CodeType) and code.co_name == "<module>" and _is_own(code.co_filename):
                self._modules.append(code)
        elif event == "open":
            path = args[0]
            if isinstance(path, str) and path.endswith(".py") and _is_own(path) and not (self.ours or _in_passing()):
                self._note("read", os.path.abspath(path))  # noqa: PTH100
        elif event in STARTS:
            name = os.path.basename(str(args[0]).partition(" ")[0])  # noqa: PTH119
            if event == "subprocess.Popen" and name.rstrip("0123456789.") == "python":  # that notes for itself
                self._note("started", os.urandom(4).hex())
            elif name not in ANSWERS:
                self._note("doubt", f"it started {name:.200}")
        elif event in NETWORK or (event == COPIES and _is_own(str(args[1]))):
            self._note("doubt", event)

    def end(self) -> None:
        """Note which functions of each module did not run, and that this process came to its end."""
        if os.getpid() != self._owner:
            return
        if getattr(sys.modules.get("torch._dynamo.utils"), "compilation_time_metrics", None):
            self._note("doubt", "torch.compile ran code that nobody counts")
        has_run, idle = self._counted(), dict[str, set[str]]()
        for module in self._modules:
            ran = dict[str, bool]()
            for code in _within(module):
                ran[code.co_qualname] = ran.get(code.co_qualname, False) or has_run(code)
            path = os.path.abspath(module.co_filename)  # noqa: PTH100
            names = {name for name, so in ran.items() if not so}
            idle[path] = idle.get(path, names) & names
        if script := getattr(sys.modules.get("__main__"), "__file__", None):
            idle.setdefault(os.path.abspath(script), set())  # noqa: PTH100
        for path, names in idle.items():
            self._note("idle", (path, *sorted(names)))
        self._note("end", "")

    def _counted(self) -> Callable[[CodeType], bool]:
        """Return what says of a code object whether it has run."""
        if (ran := self._ran) is not None:
            return lambda code: code in ran or bool(code.co_flags & GENERATES)
        import ctypes

        def has_run(code: CodeType) -> bool:
            return ctypes.c_short.from_address(id(code) + WARMUP).value != FRESH or bool(code.co_flags & GENERATES)

        made: dict[str, Any] = {}
        exec("def ran(): pass\ndef idle(): pass\nran()", made)  # noqa: S102
        if not has_run(made["ran"].__code__) or has_run(made["idle"].__code__):
            self._note("doubt", "this Python does not tell what ran")
        return has_run


def _within(code: CodeType) -> list[CodeType]:
    """Return the code of all functions and classes in some code."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return inner + [deeper for each in inner for deeper in _within(each)]


def _is_own(path: str) -> bool:
    """Return whether a file may be of a project: it is none that is installed, and none without a file."""
    return not (path.startswith(("<", LIBRARY)) or "-packages" in path)


def _in_passing() -> bool:
    """Return whether a file is opened to import it, to run it, or to show a line of it in a message."""
    frame = sys._getframe(1).f_back  # noqa: SLF001  # what called the hook; nothing where the interpreter did
    if frame is None or frame.f_code.co_filename == IMPORTING:
        return True
    while frame is not None and frame.f_code.co_filename.startswith(LIBRARY):
        if frame.f_code.co_filename.endswith(SHOWING) or frame.f_code.co_name == "getframeinfo":
            return True
        frame = frame.f_back
    return False


LIBRARY = os.path.join(os.path.dirname(os.__file__), "")  # noqa: PTH118, PTH120
HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
own = sys.modules.pop(__name__, None)
if HERE in sys.path:
    sys.path.remove(HERE)
try:  # noqa: SIM105  # contextlib would take longer than all of this
    __import__(__name__)
except ImportError:  # there is no other, which this one would hide
    pass
if own is not None:
    sys.modules.setdefault(__name__, own)
    sys.modules["gates_noting"] = own
folder = os.environ.get("GATES_NOTED")
notes = Notes(folder) if folder and sys.version_info >= (3, 11) and sys.implementation.name == "cpython" else None
