"""Notes which functions of the project's modules a process runs, and what else it rests on.

Python imports it before anything else where this folder is on its path. Nothing is traced: CPython 3.11 itself counts
the first runs of each code object, and later ones tell of a first run once (`sys.monitoring`). A process that does not
come to its end has not told what it ran. As every process waits for this, it imports next to nothing.
"""

from __future__ import annotations

import atexit
import os
import sys
from types import CodeType, FrameType, ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

STARTS = {"subprocess.Popen", "pty.spawn", *(f"os.{name}" for name in ("system", "exec", "forkpty", "posix_spawn"))}
NETWORK = {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname"}
ANSWERS = {"uname", "hostname", "ldconfig", "gcc", "cc", "lscpu", "ps", "file", "which", "wandb-core"}
COPIES, LOADS = "code.__new__", "marshal.loads"  # copies of a function's code: each is counted by itself
GENERATES = 0x2A0  # flags of generators and coroutines: a call that only makes one runs nothing
WARMUP, FRESH = 52, -8  # where CPython 3.11 counts the runs of a code object, and what it holds before the first
TOOL = 4
IMPORTING = "<frozen importlib._bootstrap"
opened = open  # before a test puts another in its place


class Notes:
    """The notes of this process, and of each fork of it, in a file of its own."""

    def __init__(self, folder: str) -> None:
        self._folder, self._ran = folder, set[CodeType]()
        self._modules: list[tuple[str, CodeType]] = []
        spawned = any("multiprocessing" in word for word in sys.orig_argv)  # which starts them unheard
        self._begin("spawned" if spawned else "begun")
        if sys.version_info >= (3, 12):
            events = sys.monitoring.events
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
                with opened(self._path, "a", encoding="ascii") as file:
                    file.write(ascii((word, what)) + "\n")
            except Exception:  # noqa: BLE001  # then it has not told; the project may refuse to open a file
                self._owner = 0

    def _start(self, code: CodeType, _: int) -> object:
        self._ran.add(code)
        return sys.monitoring.DISABLE  # type: ignore[attr-defined,unused-ignore]  # of 3.12

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "exec":
            code = args[0]
            if isinstance(code, CodeType) and code.co_name == "<module>" and _is_own(code.co_filename):
                self._modules.append((os.path.realpath(code.co_filename), code))
        elif event == "open":
            path = os.fsdecode(args[0]) if isinstance(args[0], str | bytes) else ""
            if path.endswith(".py") and _is_own(path) and not _imports():
                self._note("read", os.path.realpath(path))
        elif event == "object.__getattr__" and args[1] == "__code__":  # as a compiler does, to run what comes of it
            if not sys._getframe(1).f_code.co_filename.endswith(("/inspect.py", "/sitecustomize.py")):  # noqa: SLF001
                self._ran.add(args[0].__code__)
        elif event in STARTS:
            self._note(*_of_start(event, os.path.basename(str(args[0]).partition(" ")[0])))  # noqa: PTH119
        elif _is_dubious(event, args):
            self._note("doubt", event if event not in NETWORK or isinstance(args[-1], int | tuple) else "a socket")

    def end(self) -> None:
        """Note which functions of each module did not run, and that this process came to its end."""
        if os.getpid() != self._owner:
            return
        if getattr(sys.modules.get("torch._dynamo.utils"), "compilation_time_metrics", None):
            self._note("doubt", "torch.compile ran code that nobody counts")
        has_run, idle = self._counted(), dict[str, set[str]]()
        for path, whole in self._modules:
            ran = dict[str, bool]()
            for code in _within(whole):
                ran[code.co_qualname] = ran.get(code.co_qualname, False) or has_run(code)
                if code.co_name == "__del__":
                    self._note("doubt", "an object may be deleted after the end")
            idle[path] = idle.get(path, {*ran}) & {name for name, so in ran.items() if not so}
        for path in _imported():  # a script, and what was imported before this
            idle.setdefault(path, set())
        for path, names in idle.items():
            self._note("idle", (path, *sorted(names)))
        self._note("end", "")

    def _counted(self) -> Callable[[CodeType], bool]:
        """Return what says of a code object whether it has run."""
        ran = self._ran
        if sys.version_info >= (3, 12):
            return lambda code: code in ran or bool(code.co_flags & GENERATES)
        import ctypes

        def has_run(code: CodeType) -> bool:
            began = ctypes.c_short.from_address(id(code) + WARMUP).value != FRESH
            return began or code in ran or bool(code.co_flags & GENERATES)

        made: dict[str, Any] = {}
        exec("def ran(): pass\ndef idle(): pass\nran()", made)  # noqa: S102
        if not has_run(made["ran"].__code__) or has_run(made["idle"].__code__):
            self._note("doubt", "this Python does not tell what ran")
        return has_run


def _of_start(event: str, name: str) -> tuple[str, str]:
    """Return what to note of a program: a Python notes for itself, and some read nothing of a project."""
    if event == "subprocess.Popen" and name.rstrip("0123456789.") == "python":
        return "started", os.urandom(4).hex()
    return ("heard", "") if name in ANSWERS else ("doubt", f"it started {name:.200}")


def _is_dubious(event: str, args: tuple[Any, ...]) -> bool:
    """Return whether an event brings what nobody follows: W&B's service, which a process starts, only takes records."""
    if event in NETWORK:
        return f"/wandb-{os.getpid()}-" not in str(args[-1])
    return (event == COPIES and _is_own(str(args[1]))) or (event == LOADS and not _imports())


def _within(code: CodeType) -> list[CodeType]:
    """Return the code of all functions and classes in some code."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return inner + [deeper for each in inner for deeper in _within(each)]


def _imported() -> Iterator[str]:
    """Yield the files of the project's modules."""
    for module in [*sys.modules.values()]:
        file = vars(module).get("__file__") if isinstance(module, ModuleType) else None
        if isinstance(file, str) and _is_own(file):
            yield os.path.realpath(file)


def _is_own(path: str) -> bool:
    """Return whether a file may be of a project: it is none that is installed, and none without a file."""
    return not (path.startswith(("<", LIBRARY)) or "/site-packages/" in path or "/dist-packages/" in path)


def _imports() -> bool:
    """Return whether a file is opened, or its code loaded, to import or to run it."""
    frame: FrameType | None = sys._getframe()  # noqa: SLF001
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    if frame is None or not frame.f_code.co_filename.startswith(IMPORTING):
        return frame is None  # then the interpreter did it
    return frame.f_back is not None and frame.f_back.f_code.co_name in {"get_code", "exec_module"}  # not `get_source`


LIBRARY = os.path.join(os.path.dirname(os.__file__), "")  # noqa: PTH118, PTH120
HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
tells = sys.version_info >= (3, 11) and sys.implementation.name == "cpython"
notes = Notes(os.environ["GATES_NOTED"]) if tells and "GATES_NOTED" in os.environ else None
if __name__ == "sitecustomize":
    own = sys.modules["gates_noting"] = sys.modules.pop(__name__)
    if HERE in sys.path:
        sys.path.remove(HERE)
    try:
        __import__(__name__)
    except ImportError as error:  # there is no other, which this one would hide
        if error.name != __name__:
            raise
    finally:
        sys.modules.setdefault(__name__, own)
