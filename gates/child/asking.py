"""What a program of ours is asked in the project's interpreter, what it tells in a journal, and the project's files."""

import dataclasses
import importlib.util
import inspect
import io
import json
import os
import signal
import sys
import traceback
import warnings
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Sized
from contextlib import suppress
from functools import partial
from hmac import digest
from itertools import islice
from json import dumps
from os import O_APPEND, O_CREAT, O_WRONLY, close, getpid, write
from os import open as opened
from types import FrameType, TracebackType
from typing import Any, NoReturn

DEEPEST = 400
FOREIGN = {"site-packages", "dist-packages"}
HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep  # noqa: PTH100, PTH120
Place = tuple[str, int]
# our programs by a name of their own, wherever they lie; while they begin, nothing of the project comes before
# the standard library
BOOTSTRAP = """
import sys
here = sys.argv.pop(1)
sys.path[: sys.path[:1] == [""]] = [here]
from importlib import import_module, util
made = util.spec_from_file_location("gates_probe", f"{here}/__init__.py", submodule_search_locations=[here])
sys.modules["gates_probe"] = util.module_from_spec(made)
name, _, what = sys.argv.pop(1).partition(":")
getattr(import_module(f"gates_probe.{name}"), what or "main")()
"""
NETWORK = {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname"}
DONE = 77  # how a fork ends that did all of its work


class Places:
    """The files under the project's root, less what is installed there, and less our own."""

    def __init__(self, root: str) -> None:
        self._root = os.path.abspath(root) + os.sep  # noqa: PTH100
        self._known: dict[str, str | None] = {}

    def shown(self, filename: str) -> str | None:
        """Return a file's path in the project, or none where it lies outside."""
        if filename not in self._known:
            path = os.path.abspath(filename)  # noqa: PTH100  # a link of the project leads to its own, too
            inside = path.startswith(self._root) and not path.startswith(HERE) and not filename.startswith("<")
            shown = path[len(self._root) :].replace(os.sep, "/")
            self._known[filename] = shown if inside and not FOREIGN & set(shown.split("/")) else None
        return self._known[filename]

    def of(self, frame: FrameType | None) -> Place | None:
        """Return path and line of the innermost frame that lies in the project."""
        for _ in range(DEEPEST):
            if frame is None:
                break
            if path := self.shown(frame.f_code.co_filename):
                return path, frame.f_lineno
            frame = frame.f_back
        return None

    def innermost(self, trace: TracebackType | None) -> dict[str, object] | None:
        """Return the innermost line of the project in a traceback, as the evidence has it."""
        frames = [(self.shown(frame.f_code.co_filename), line) for frame, line in traceback.walk_tb(trace)]
        return as_location(next(((path, line) for path, line in reversed(frames) if path), None))


def as_location(place: Place | None) -> dict[str, object] | None:
    """Return a place as the evidence has it."""
    return {"path": place[0], "line": place[1]} if place else None


class Unreachable(Exception):
    """What was asked for cannot be called as it was asked; the message says why."""


def append(path: str, line: bytes, more: int = 0) -> None:
    """Write a line at the end of a file, as a whole; one that was removed is not begun anew."""
    file = opened(path, O_WRONLY | O_APPEND | more, 0o600)
    write(file, line)
    close(file)


class Teller:
    """Tells of what was seen, each line sealed with a secret; needs nothing that the project may replace or close.

    A line holds all that is told at once: sealed alone, seven events of a quick test cost a tenth of its time.
    """

    def __init__(self, path: str, secret: str) -> None:
        self._owner = getpid()
        self._path = os.path.abspath(path)  # noqa: PTH100  # the project may leave the folder
        self._secret = secret.encode()
        append(self._path, b"", O_CREAT)

    def __call__(self, word: str, **facts: object) -> None:
        """Write a line; a child that the project forked, and that came back here, ends instead."""
        if getpid() != self._owner:
            os._exit(1)
        self.note({"word": word, **facts})

    def note(self, *events: dict[str, object]) -> None:
        """Write a line as a whole; a process that the project forked says nothing, nor does a journal begin anew."""
        if getpid() != self._owner:
            return
        with suppress(OSError):  # the project removed it, or opens no more files: then nothing was heard
            text = dumps(events, default=repr, skipkeys=True).encode()
            append(self._path, b"=" + digest(self._secret, text, "sha256").hex().encode() + b" " + text + b"\n")

    def forked(self) -> None:
        """Go on telling in a fork of ours."""
        self._owner = getpid()


def question_at(path: str) -> dict[str, Any]:
    """Return what a file asks, and remove it: its secret is not the project's."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        question: dict[str, Any] = json.load(file)
    os.remove(path)  # noqa: PTH107
    return question


def asked() -> tuple[dict[str, Any], Teller]:
    """Return what this program is asked for, and what tells of it; the project's folders are on the path then."""
    question = question_at(sys.argv[1])
    sys.argv = [question.get("call") or question.get("shared") or "gates"]
    import_from(question["paths"])
    return question, Teller(question["journal"], question["secret"])


def program(work: Callable[[dict[str, Any], Teller], None]) -> Callable[[], None]:
    """Return what does the work that is asked for, tells of the exception that ends it, and leaves when it was told."""

    def main() -> None:
        question, tell = asked()
        tell("start")
        code = carried_out(lambda: work(question, tell), tell, question["root"])
        if not code:
            tell("end")
        leave(code)

    return main


def carried_out(work: Callable[[], None], tell: Teller, root: str) -> int:
    """Do some work and tell of the exception that ends it; return the exit code that comes of it."""
    try:
        work()
    except Unreachable as error:
        tell("problem", what=str(error), place=None)
        return 2
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001  # whatever the project raises
        print_without_us(type(error), error, error.__traceback__)
        tell("raised", what=said(error), place=Places(root).innermost(error.__traceback__))
        return 1
    return 0


def command(python: str, program: str, *words: str) -> list[str]:
    """Return what runs one of our programs."""
    return [python, "-c", BOOTSTRAP, HERE.rstrip(os.sep), program, *words]


def import_from(paths: list[str]) -> None:
    """Put the project's folders on the path: the first in the place of our own, the others before all installed."""
    sys.path[:1] = paths[:1]
    first = next((at for at, path in enumerate(sys.path) if path.endswith("-packages")), len(sys.path))
    sys.path[first:first] = paths[1:]


def named(path: str) -> tuple[Any, Any]:
    """Return what a path `module:name.name` names, and what that is an attribute of; else raise `Unreachable`."""
    module, _, names = path.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            raise Unreachable(f"there is no module {error.name!r}") from error
        raise
    owner = None
    for name in names.split("."):
        if not hasattr(found, name):
            raise Unreachable(f"{module} has no {names!r}")
        owner, found = found, getattr(found, name)
    return owner, found


def resolve(path: str) -> tuple[Any, Any]:
    """Return the same as `named`; what is not installed makes it unreachable, too."""
    try:
        return named(path)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if importlib.util.find_spec(missing.partition(".")[0]) is None:
            raise Unreachable(f"{path.partition(':')[0]} needs {missing!r}, which is not installed") from error
        raise


def found(path: str) -> Callable[..., Any]:
    """Return what is called by its path; raise `Unreachable` where there is nothing that can be."""
    thing = resolve(path)[1]
    if not callable(thing):
        raise Unreachable(f"{path} is a {type(thing).__name__}, which cannot be called")
    return thing  # type: ignore[no-any-return]  # whatever can be called


def torch_of_project() -> Any:  # noqa: ANN401
    """Return torch, where the project has imported all of it."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and hasattr(torch, "Tensor") and hasattr(torch, "autograd") else None


def cuda_of_project() -> Any:  # noqa: ANN401
    """Return torch's module of CUDA, where the project computes on such a device."""
    torch = torch_of_project()
    return torch.cuda if torch is not None and torch.cuda.is_initialized() else None


def can_fork() -> bool:
    """Return whether no thread and no device would be lost in a fork."""
    with suppress(OSError):
        return len(os.listdir("/proc/self/task")) == 1 and cuda_of_project() is None  # noqa: PTH208
    return False


def ended(returned: Any, most: int | None = None, take: str = "") -> Any:  # noqa: ANN401  # anything
    """Run an awaitable to its end, and an iterator to a list of `most`; what has the name to `take` stays as it is."""
    if inspect.isawaitable(returned):
        import asyncio  # which few need

        async def awaited() -> object:
            return await returned

        return ended(asyncio.run(awaited()), most, take)
    if not isinstance(returned, Iterator) or isinstance(returned, io.IOBase) or (take and hasattr(returned, take)):
        return returned
    return list(islice(returned, most))


def as_step(made: object) -> Callable[[], object]:
    """Return what was made of a step; raise `Unreachable` where that is none."""
    if not callable(made):
        raise Unreachable(f"it returned {type(made).__name__}, expected the step: a function without arguments")
    return made


def called(step: Callable[[], object]) -> object:
    """Do a step; raise `TypeError` where its work is to be done yet: it awaits somebody, or says that it goes on."""
    result = step()
    is_there = isinstance(result, Sized | io.IOBase) or dataclasses.is_dataclass(result)
    waits = inspect.isawaitable(result) or inspect.isroutine(result) or isinstance(result, partial)
    goes_on = False
    for asked, waiting in (("done", "result"), ("ready", "get"), ("is_ready", "block_until_ready")):
        with suppress(Exception):  # the project's code, which may ask for more
            goes_on |= hasattr(result, waiting) and getattr(result, asked)() is False
    if waits or goes_on or (isinstance(result, Iterable | AsyncIterable) and not is_there):
        how = "nobody runs" if waits or not goes_on else "is not done"
        raise TypeError(f"the step returned a {type(result).__name__} that {how}; return what comes of it")
    return result


def said(error: BaseException, most: int = 300) -> str:
    """Return an exception in one line, that of our own without its name."""
    text = " ".join(message_of(error).split())[:most]
    if isinstance(error, Unreachable):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def message_of(error: BaseException) -> str:
    """Return what an exception says, and nothing where its text cannot be had."""
    with suppress(Exception):  # the project's code
        return str(error)[:2000]
    return ""


def print_without_us(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback without the frames of our programs, and of what runs them."""
    shown = traceback.TracebackException(kind, error, trace)
    ours = (HERE, "<frozen runpy>", "<string>")
    shown.stack = traceback.StackSummary.from_list([each for each in shown.stack if not each.filename.startswith(ours)])
    sys.stderr.write("".join(shown.format()))


def in_fork(tell: Teller, work: Callable[[], None], root: str, limit_s: float = 0.0) -> int:
    """Do something in a fork, which `SIGALRM` ends at a limit; return its exit code, `DONE` where all was done."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of a fork where a library has started threads
        pid = os.fork()
    if not pid:
        tell.forked()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, limit_s)
        try:
            leave(carried_out(work, tell, root) or DONE)
        except SystemExit:
            leave()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def end_notes() -> None:
    """Note that this process, and all that it ran, has come to its end."""
    if notes := getattr(sys.modules.get("gates_noting"), "notes", None):
        notes.end()


def leave(code: int = 0) -> NoReturn:
    """Leave at once: what the project leaves running is none of what was asked for."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # the project closed it
            stream.flush()
    end_notes()
    os._exit(code)
