"""Makes calls of functions of the tested project, each in a fork of its own, and tells of each as it begins and ends.

    python -m gates_probe.calculating QUESTION
    python -m gates_probe.calculating:once QUESTION

Each is found, given its arguments and run to its end. What is expected of it never comes into this process.
"""

import asyncio
import contextlib
import inspect
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from types import FrameType
from typing import Any

from .asking import (
    DONE,
    Teller,
    Unreachable,
    asked,
    ended,
    give_up,
    in_fork,
    message_of,
    named,
    print_without_us,
    program,
    resolve,
    said,
)
from .values import BOUND, TooMuch, encode, plain

TWICE_S = 2.0
ITEMS = 20_000
MOST_LINES = 50
MOST_TEXT = 2000
CHILDREN = frozenset({"os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.exec", "subprocess.Popen"})


class Target:
    """A callable of the project: `module:function`, `module:Class`, or `module:Class.method` of an instance."""

    def __init__(self, path: str, instance: dict[str, Any] | None, take: str | None) -> None:
        self._take = take.split(".") if take else []
        self.takes = self._take[0] if self._take else ""
        self.name = path.partition(":")[2]
        self._owner, self._found = resolve(path)
        self._instance = instance
        last = self.name.rpartition(".")[2]
        own = inspect.getattr_static(self._owner, last, None) if inspect.isclass(self._owner) else None
        if inspect.isfunction(own) and instance is None:
            raise Unreachable(f"{self.name} is called on an instance: write 'instance: {{args: [...]}}' beside 'call'")
        if isinstance(self._found, property):
            owner, _, last = path.rpartition(".")
            raise Unreachable(f"{self.name} is a property: write 'call: {owner}' and 'take: {last}'")
        if not callable(self._found):
            raise Unreachable(f"{path} is a {type(self._found).__name__}, which cannot be called")

    def bound(self) -> Callable[..., Any]:
        """Return what is called, on a fresh instance where it is a method."""
        if self._instance is None:
            found: Callable[..., Any] = self._found
            return found
        made = self._owner(*built(self._instance.get("args", [])), **built(self._instance.get("kwargs", {})))
        method: Callable[..., Any] = getattr(made, self.name.rpartition(".")[2])
        return method

    def taken(self, returned: Any) -> Any:  # noqa: ANN401  # anything
        """Return the part of what was returned that is asked for."""
        for name in self._take:
            try:
                if isinstance(returned, Mapping):
                    returned = returned[name]
                else:
                    returned = returned[int(name)] if name.isdigit() else getattr(returned, name)
            except (LookupError, AttributeError, TypeError) as error:
                raise Unreachable(f"what it returned ({type(returned).__name__}) has no {name!r}") from error
        return returned

    def place(self) -> tuple[str, int, int] | None:
        """Return the file, first and last line of the function."""
        found = inspect.unwrap(getattr(self._found, "func", self._found))
        code = getattr(found, "__code__", None)
        if code is not None:
            return code.co_filename, code.co_firstlineno, max(line for _, _, line in code.co_lines() if line)
        with contextlib.suppress(OSError, TypeError):
            source, first = inspect.getsourcelines(found)
            return inspect.getfile(found), max(first, 1), first + len(source) - 1
        return None


def built(value: Any) -> Any:  # noqa: ANN401  # anything
    """Return an argument: plain JSON, with `$call` and `$ref` replaced by what they make and name."""
    if isinstance(value, list):
        return [built(item) for item in value]
    if not isinstance(value, dict) or set(value) == {"$text"}:
        return plain(value)
    if "$ref" in value:
        return resolve(value["$ref"])[1]
    if "$call" in value:
        return resolve(value["$call"])[1](*built(value.get("args", [])), **built(value.get("kwargs", {})))
    return {name: built(item) for name, item in value.items()}


def called(target: Target, args: list[Any], kwargs: dict[str, Any], limit_s: float) -> dict[str, Any]:
    """Call a target with arguments of a task file and tell how that ended; twice where it returns soon.

    The second call tells which functions ran in it, too: slower, but what is timed was before.
    """
    started = time.monotonic()
    told = _once(target, args, kwargs)
    if "returned" in told and time.monotonic() - started < min(TWICE_S, limit_s / 3):
        again, told["ran"] = _watched(lambda: _once(target, args, kwargs))
        if again.get("returned") != told["returned"] or "error" in again:
            told["again"] = again
    return told


def _watched(call: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any], list[list[Any]] | None]:
    """Make a call; return also the functions that ran, `None` where another process may have run more."""
    seen: set[tuple[str, int]] = set()  # equal code may lie in two files
    children: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            seen.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))

    sys.addaudithook(lambda event, _: children.append(event) if event in CHILDREN else None)
    sys.setprofile(note)
    threading.setprofile(note)
    try:
        again = call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return again, None if children else [[*place] for place in seen]


def _once(target: Target, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    try:
        given, named, function = built(args), built(kwargs), target.bound()
    except Exception as error:  # noqa: BLE001  # whatever the project raises
        return {"problem": f"its arguments or its instance cannot be made: {brief(error)}"}
    told: dict[str, Any] = {}
    returned: Any = None
    here = os.getcwd()  # noqa: PTH109  # to which the next call comes back
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            returned = run_to_end(function(*given, **named), target.takes)
        except TooMuch as error:
            told["problem"] = f"what it returned cannot be compared: {error}"
        except BaseException as error:  # noqa: BLE001  # also SystemExit: it is an end like others
            told.update(raised(error))
    if not told.keys() & {"problem", "error"}:
        try:
            told["returned"] = encode(target.taken(returned))
        except Exception as error:  # noqa: BLE001  # reading what it returned runs the project's code
            told["problem"] = f"what it returned cannot be compared: {brief(error)}"
    told["warnings"] = [[kinds(type(warned.message)), str(warned.message)[:BOUND]] for warned in seen]
    os.chdir(here)
    return told


def run_to_end(returned: Any, take: str = "") -> Any:  # noqa: ANN401  # anything
    """Run a coroutine to its end, and a generator, or another iterator, to the list of what it yields.

    One of which an attribute is to be taken is left as it is.
    """
    if inspect.iscoroutine(returned):
        return run_to_end(asyncio.run(returned), take)
    if not isinstance(returned, Iterator) or (take and hasattr(returned, take)):
        return returned
    items = [*islice(returned, ITEMS + 1)]
    if len(items) > ITEMS:
        raise TooMuch(f"it yields more than {ITEMS} items")
    return items


def raised(error: BaseException) -> dict[str, Any]:
    """Tell of an exception: its types, its message, and the lines that led to it."""
    lines = [[frame.f_code.co_filename, line] for frame, line in traceback.walk_tb(error.__traceback__)]
    return {"error": kinds(type(error)), "message": message_of(error), "lines": lines[-MOST_LINES:]}


def brief(error: BaseException) -> str:
    """Return an exception's type and message in one line."""
    return str(error) if isinstance(error, Unreachable) else said(error, 2000)


def kinds(kind: type) -> list[str]:
    """Return the names that an exception or warning can be expected by: its own and those of what it is."""
    names = [base.__qualname__ for base in kind.__mro__ if base is not object]
    return [*names, *(f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__ if base is not object)]


IMPORT_S = 120.0


@program
def main(question: dict[str, Any], tell: Teller) -> None:
    """Make every call; tell of each, so that what was seen stays seen when the process dies in an import."""
    for call in question["calls"]:
        target, told = (None, {}) if "build" in call else _target(call, tell)
        place = target.place() if target else None
        if _holds_device():
            told = {"problem": "its module takes the CUDA device when it is imported"}
        if told:
            tell("call", id=call["id"], **told)
            continue
        code = in_fork(tell, lambda call=call, target=target: _make(call, target, tell))  # type: ignore[misc]
        if code == -signal.SIGALRM:
            tell("call", id=call["id"], late=True, place=place)
        elif code != DONE:
            how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            tell("call", id=call["id"], died=how, code=code, place=place)


def _target(call: dict[str, Any], tell: Teller) -> tuple[Target | None, dict[str, Any]]:
    """Return what is to be called, or how its import ended; the journal says that it began."""
    tell("importing", module=call["call"].partition(":")[0])
    signal.setitimer(signal.ITIMER_REAL, IMPORT_S)
    try:
        return Target(call["call"], call["instance"], call["take"]), {}
    except Unreachable as error:
        return None, {"problem": str(error)}
    except BaseException as error:  # noqa: BLE001  # an import may raise anything, SystemExit too
        return None, {**raised(error), "importing": True}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _make(call: dict[str, Any], target: Target | None, tell: Teller) -> None:
    """Make a call in this process, which ends by a signal when its time is up."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, call["limit_s"])
    try:
        if target is None:
            told = {"returned": encode(built(call["build"]))}
        else:
            told = {**called(target, call["args"], call["kwargs"], call["limit_s"]), "place": target.place()}
    except Exception as error:  # noqa: BLE001  # whatever was not foreseen is told, and proves nothing
        told = {"problem": f"it could not be carried out: {brief(error)}"}
    tell("call", id=call["id"], **told)


def _holds_device() -> bool:
    """Return whether the device is held by this process: no fork of it could use it."""
    torch = sys.modules.get("torch")
    return bool(torch is not None and hasattr(torch, "cuda") and torch.cuda.is_initialized())


def once() -> None:
    """Call one function, as an entry point does, and run what it returns to its end.

    An exception is raised on, so that its traceback reaches stderr.
    """
    question, tell = asked()
    sys.excepthook = print_without_us
    try:
        _, function = named(question["call"])
    except Unreachable as error:
        give_up(tell, str(error))
    try:
        returned = ended(function(*question["args"]))
    except SystemExit as error:
        tell("returned", text=_repr_of(error))
        raise
    is_number = isinstance(returned, int) and not isinstance(returned, bool)
    status = 0 if returned is None else int(returned) if isinstance(returned, int) else 1  # as `sys.exit` has it
    tell("returned", text=_repr_of(returned), number=is_number, status=status)


def _repr_of(value: object) -> str:
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  # a broken repr is no crash of the entry point
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    return text.encode("utf-8", "backslashreplace").decode()[:MOST_TEXT]
