"""Makes the calls that a file asks for, each in a fork of its own, and tells of each as it begins and as it ends.

    python -m gates_probe.calculating.session QUESTION STACKS

What is expected of a call is not among what is asked: it never comes into this process.
"""

import contextlib
import faulthandler
import importlib
import os
import signal
import sys
from typing import Any

from ..asking import DONE, Teller, Unreachable, import_from, in_fork, read
from .calling import Target, brief, built, called, raised
from .values import encode

IMPORT_S = 120.0


def main() -> None:
    """Make every call; leave at once when the last has been told of, whatever still runs."""
    question, tell = read(sys.argv[1])
    session = _Session(tell, sys.argv[2])
    sys.argv = ["gates"]
    import_from(question["paths"])
    for call in question["calls"]:
        session.imported(call)
        session.make(call)
    os._exit(0)


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
