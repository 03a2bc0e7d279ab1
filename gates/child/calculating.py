"""Makes calls of functions of the tested project, each in a fork of its own, and tells of each as it begins and ends.

    python -m gates_probe.calculating QUESTION

Each is found, given its arguments and run to its end. What is expected of it never comes into this process.
"""

import asyncio
import contextlib
import faulthandler
import importlib
import inspect
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from itertools import islice
from types import (
    CodeType,
    FrameType,
)
from typing import Any, Self

from .asking import DONE, Teller, Unreachable, in_fork, message_of, program, resolve, said
from .values import BOUND, TooMuch, encode, is_record, plain

TWICE_S = 2.0
ITEMS = 20_000
MOST_LINES = 50
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
        with Ran() as ran:
            again = _once(target, args, kwargs)
        told["ran"] = ran.told()
        if again.get("returned") != told["returned"] or "error" in again:
            told["again"] = again
    return told


class Ran:
    """The functions that run while it watches; nothing of a process that is started meanwhile."""

    def __init__(self) -> None:
        self._seen: set[CodeType] = set()
        self._children = False
        self._on = True
        sys.addaudithook(self._audit)

    def told(self) -> list[list[Any]] | None:
        """Return the file and first line of each function, `None` where another process may have run more."""
        return None if self._children else [[code.co_filename, code.co_firstlineno] for code in self._seen]

    def __enter__(self) -> Self:
        sys.setprofile(self._note)
        threading.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)
        self._on = False

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            self._seen.add(frame.f_code)

    def _audit(self, event: str, _: object) -> None:
        if self._on and event in CHILDREN:
            self._children = True


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

    One that tells of itself by its attributes, or of which an attribute is to be taken, is left as it is.
    """
    if inspect.iscoroutine(returned):
        return run_to_end(asyncio.run(returned), take)
    if not isinstance(returned, Iterator | AsyncIterator) or is_record(returned) or (take and hasattr(returned, take)):
        return returned
    if isinstance(returned, AsyncIterator):
        return asyncio.run(_awaited(returned))
    items = [*islice(returned, ITEMS + 1)]
    if len(items) > ITEMS:
        raise TooMuch(f"it yields more than {ITEMS} items")
    return items


async def _awaited(returned: AsyncIterator[Any]) -> list[Any]:
    items: list[Any] = []
    async for item in returned:
        items.append(item)
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
    """Make every call; whatever still runs when the last has been told of is left."""
    session = _Session(tell, question["stacks"])
    for call in question["calls"]:
        session.imported(call)
        session.make(call)


class _Session:
    """Tells of each import and call as it begins or ends, so that what was seen stays seen when the process dies."""

    def __init__(self, tell: Teller, stacks: str) -> None:
        self._tell = tell
        self._stacks = open(stacks, "w+", encoding="utf-8", errors="replace")  # noqa: PTH123, SIM115  # for all calls

    def imported(self, call: dict[str, Any]) -> None:
        """Import the module of a call; a process that dies in it is told by the line that says that it began."""
        module = call.get("call", "").partition(":")[0]
        if module in sys.modules or not module:
            return
        self._tell("importing", module=module)
        faulthandler.dump_traceback_later(IMPORT_S, exit=True, file=self._stacks)
        with contextlib.suppress(BaseException):  # the call says why
            importlib.import_module(module)
        faulthandler.cancel_dump_traceback_later()
        self._tell("imported", module=module)

    def make(self, call: dict[str, Any]) -> None:
        """Make a call in a fork, and tell how that ended where it did not live to do so itself."""
        at = self._stacks.seek(0, os.SEEK_END)
        if _holds_device():
            self._tell("call", id=call["id"], problem="its module takes the CUDA device when it is imported")
            return
        code = in_fork(self._tell, lambda: self._in_fork(call))
        self._stacks.seek(at)
        if code != DONE:
            how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            self._tell("call", id=call["id"], died=how, code=code, stacks=self._stacks.read()[-20_000:])

    def _in_fork(self, call: dict[str, Any]) -> None:
        faulthandler.enable(file=self._stacks)
        faulthandler.dump_traceback_later(call["limit_s"], exit=True, file=self._stacks)
        self._tell("call", id=call["id"], **_made(call, self._tell))


def _holds_device() -> bool:
    """Return whether the device is held by this process: no fork of it could use it."""
    torch = sys.modules.get("torch")
    return bool(torch is not None and hasattr(torch, "cuda") and torch.cuda.is_initialized())


def _made(call: dict[str, Any], tell: Teller) -> dict[str, Any]:
    try:
        if "build" in call:
            return {"returned": encode(built(call["build"]))}
        target = Target(call["call"], call["instance"], call["take"])
    except Unreachable as error:
        return {"problem": str(error)}
    except BaseException as error:  # noqa: BLE001  # an import may raise anything, SystemExit too
        return {**raised(error), "importing": True}
    tell("reached", id=call["id"], place=target.place())
    try:
        told = called(target, call["args"], call["kwargs"], call["limit_s"])
    except BaseException as error:  # noqa: BLE001  # whatever was not foreseen is told, and proves nothing
        told = {"problem": f"it could not be carried out: {brief(error)}"}
    return {**told, "place": target.place()}
