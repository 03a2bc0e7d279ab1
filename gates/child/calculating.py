"""Makes calls of functions of the tested project, each in a fork; what is expected of them never comes in here."""

import inspect
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any

from . import asking
from .asking import DONE, Places, Teller, Unreachable, cuda_of_project, in_fork, message_of, resolve, said
from .values import BOUND, MOST, encode, plain, repr_of

TWICE_S = 2.0  # of processor time
LIMIT, MOST_TEXT = 500, 2000
CHILDREN = frozenset({"os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.exec", "subprocess.Popen"})
Told = dict[str, Any]


class Target:
    """A callable of the project: `module:function`, `module:Class`, or `module:Class.method` of an instance."""

    def __init__(self, path: str, instance: dict[str, Any] | None, take: str | None) -> None:
        self._take = take.split(".") if take else []
        self.name, self._instance = path.partition(":")[2], instance
        self._owner, self._found = resolve(path)
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
        found: Callable[..., Any] = self._found
        if (given := self._instance) is not None:
            made = self._owner(*built(given.get("args", [])), **built(given.get("kwargs", {})))
            found = getattr(made, self.name.rpartition(".")[2])
        return found

    def ended(self, returned: object) -> Any:  # noqa: ANN401  # anything
        """Run what was returned to its end, as far as it can be written down then."""
        return asking.ended(returned, MOST + 1, self._take[0] if self._take else "")

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

    def place(self, places: Places) -> Told | None:
        """Return the file, first and last line of the function, where it is the project's."""
        found = inspect.unwrap(getattr(self._found, "func", self._found))
        with suppress(OSError, TypeError):
            source, first = inspect.getsourcelines(found)
            if path := places.shown(inspect.getfile(found)):
                return {"path": path, "line": max(first, 1), "last_line": max(first, 1) + len(source) - 1}
        return None


def built(value: Any) -> Any:  # noqa: ANN401  # anything
    """Return an argument: plain JSON, with `$call` and `$ref` replaced by what they make and name."""
    if isinstance(value, list):
        return list(map(built, value))
    if not isinstance(value, dict) or set(value) == {"$text"}:
        return plain(value)
    if "$ref" in value:
        return resolve(value["$ref"])[1]
    if "$call" in value:
        return resolve(value["$call"])[1](*built(value.get("args", [])), **built(value.get("kwargs", {})))
    return {name: built(item) for name, item in value.items()}


def tried(target: Target, call: Told, places: Places) -> Told:
    """Make the call and tell how it ended; where it returns soon make it twice, and tell which functions ran then."""
    soon, late = time.process_time() + TWICE_S, time.monotonic() + call["limit_s"] / 3
    told = _once(target, call, places)
    if "returned" in told and time.process_time() < soon and time.monotonic() < late:
        again, told["ran"] = _watched(target, call, places)
        if again.get("returned") != told["returned"] or again["ended"] != told["ended"]:
            told["again"] = again
    return told


def _watched(target: Target, call: Told, places: Places) -> tuple[Told, list[Told] | None]:
    """Call it; return also the project's functions that ran, `None` where another process may have run more."""
    seen, children = set[tuple[str, int]](), list[str]()  # equal code may lie in two files

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            seen.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))

    sys.addaudithook(lambda event, _: children.append(event) if event in CHILDREN else None)
    sys.setprofile(note)
    threading.setprofile(note)
    try:
        again = _once(target, call, places)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    ran = [(places.shown(path), line) for path, line in seen]
    return again, None if children else [{"path": path, "line": line} for path, line in ran if path]


def _once(target: Target, call: Told, places: Places) -> Told:
    try:
        given, named, function = built(call["args"]), built(call["kwargs"]), target.bound()
    except Exception as error:  # noqa: BLE001  # whatever the project raises
        return not_run(f"its arguments or its instance cannot be made: {said(error, MOST_TEXT)}")
    here = os.getcwd()  # noqa: PTH109  # to which the next call comes back
    told: Told = {}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            returned = target.ended(function(*given, **named))
        except BaseException as error:  # noqa: BLE001  # also SystemExit: it is an end like others
            told = raised(error, places)
    if not told:
        try:
            told = {"ended": "returned", "returned": encode(target.taken(returned))}
        except Exception as error:  # noqa: BLE001  # reading what it returned runs the project's code
            told = not_run(f"what it returned cannot be compared: {said(error, MOST_TEXT)}")
    os.chdir(here)
    given_out = [{"kinds": kinds(type(each.message)), "message": line_of(str(each.message)[:BOUND])} for each in seen]
    return {**told, "warnings": given_out}


def not_run(why: str) -> Told:
    """Tell why nothing was seen of a call."""
    return {"ended": "not run", "problem": line_of(why)}


def raised(error: BaseException, places: Places) -> Told:
    """Tell of an exception: its types, its message, and the innermost line of the project that led to it."""
    crash = places.innermost(error.__traceback__)
    return {"ended": "raised", "error": kinds(type(error)), "message": line_of(message_of(error)), "crash": crash}


def line_of(text: str) -> str:
    """Return a text in one line of a bounded length."""
    return " ".join(text.split())[:LIMIT]


def kinds(kind: type) -> list[str]:
    """Return the names that an exception or warning can be expected by: its own and those of what it is."""
    names = [base.__qualname__ for base in kind.__mro__ if base is not object]
    return [*names, *(f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__ if base is not object)]


IMPORT_S = 120.0


@asking.program
def main(question: Told, tell: Teller) -> None:
    """Make every call; tell of each, so that what was seen stays seen when the process dies in an import."""
    places = Places(question["root"])
    for call in question["calls"]:
        target, told = (None, {}) if "build" in call else _target(call, tell, places)
        if cuda_of_project():
            told = not_run("its module takes the CUDA device when it is imported")
        place = target.place(places) if target else None
        if not told:
            code = in_fork(tell, partial(_make, call, target, place, tell, places), question["root"], call["limit_s"])
            told = {} if code == DONE else _died(code, call["limit_s"])
        if told:
            tell("call", id=call["id"], place=place, **told)


def _died(code: int, limit_s: float) -> Told:
    if code == -signal.SIGALRM:
        return {"ended": "stopped", "problem": f"it did not return within {limit_s:g} s"}
    if not code:
        return not_run("it ended the process before it returned")
    how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return {"ended": "crashed", "problem": f"the process died: {how}"}


def _target(call: Told, tell: Teller, places: Places) -> tuple[Target | None, Told]:
    """Return what is to be called, or how its import ended; the journal says that it began."""
    tell("importing", module=call["call"].partition(":")[0])
    signal.setitimer(signal.ITIMER_REAL, IMPORT_S)
    try:
        return Target(call["call"], call["instance"], call["take"]), {}
    except Unreachable as error:
        return None, not_run(str(error))
    except BaseException as error:  # noqa: BLE001  # an import may raise anything, SystemExit too
        return None, {**raised(error, places), "importing": True}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _make(call: Told, target: Target | None, place: Told | None, tell: Teller, places: Places) -> None:
    try:
        if target is None:
            told = {"ended": "returned", "returned": encode(built(call["build"]))}
        else:
            told = tried(target, call, places)
    except Exception as error:  # noqa: BLE001  # whatever was not foreseen is told, and proves nothing
        told = not_run(f"it could not be carried out: {said(error, MOST_TEXT)}")
    tell("call", id=call["id"], place=place, **told)


def once() -> None:
    """Call one function, as an entry point does, and run what it returns to its end; an exception is raised on.

    What a console script returns goes to `sys.exit`, and by convention the number that a function named `main` returns.
    """
    question, tell = asking.asked()
    sys.excepthook = asking.print_without_us
    try:
        _, function = asking.named(question["call"])
    except Unreachable as error:
        tell("problem", what=str(error), place=None)
        asking.leave(2)
    try:
        returned = asking.ended(function(*question["args"]))
    except SystemExit as error:
        tell("returned", text=repr_of(error, MOST_TEXT))
        raise
    tell("returned", text=repr_of(returned, MOST_TEXT))
    is_number = isinstance(returned, int) and not isinstance(returned, bool)
    if question["script"] or (is_number and question["call"].endswith(":main")):
        sys.exit(returned)
