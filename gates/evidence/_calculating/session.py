"""Makes the calls that a file asks for, one after the other, and tells of each as it begins and as it ends.

    python -c BOOTSTRAP ASKED RESULT STACKS

What is expected of a call is not among what is asked: it never comes into this process.
"""

import contextlib
import faulthandler
import importlib
import json
import os
import sys
from hmac import new as hashed
from json import dumps
from os import O_APPEND, O_CREAT, O_WRONLY, close, getpid, write
from os import open as opened
from typing import Any, TextIO

from .calling import Target, Unreachable, brief, built, called, raised
from .values import encode

IMPORT_S = 120.0
BOOTSTRAP = (
    # a module of the project must not take the place of one of the standard library while we begin
    "import sys; here = sys.argv.pop(1); sys.path[: sys.path[:1] == ['']] = [here]; "
    "from _calculating import session; sys.path.remove(here); session.main()"
)


def main() -> None:
    """Make every call; leave at once when the last has been told of, whatever still runs."""
    asked_path, result_path, stacks_path = sys.argv[1:4]
    with open(asked_path, encoding="utf-8") as file:  # noqa: PTH123
        asked = json.load(file)
    os.remove(asked_path)  # noqa: PTH107  # its secret is not for the project
    tell = _Teller(result_path, asked.pop("secret"))
    sys.argv = ["gates"]
    sys.path.insert(0, asked["paths"][0])
    first = next((at for at, path in enumerate(sys.path) if path.endswith("-packages")), len(sys.path))
    sys.path[first:first] = asked["paths"][1:]  # before any copy that is installed
    with open(stacks_path, "w", encoding="utf-8") as stacks:  # noqa: PTH123
        for call in asked["calls"]:
            tell({"begun": call["id"]})
            faulthandler.dump_traceback_later(IMPORT_S, exit=True, file=stacks)
            told = _made(call, tell, stacks)
            faulthandler.cancel_dump_traceback_later()
            tell({"id": call["id"], **told})
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # a stream that the project closed
            stream.flush()
    os._exit(0)


class _Teller:
    """Writes each line at once, signed, so that what was seen stays seen when the process dies.

    It needs nothing that the project may have replaced in a module, and no file that it may have closed.
    """

    def __init__(self, path: str, secret: str) -> None:
        self._owner = getpid()
        self._path = os.path.abspath(path)  # noqa: PTH100  # a call may leave the folder
        self._secret = secret.encode()

    def __call__(self, told: dict[str, Any]) -> None:
        if getpid() != self._owner:
            os._exit(1)  # a call forked, and its child came back here too
        text = dumps(told).encode()
        file = opened(self._path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        write(file, hashed(self._secret, text, "sha256").hexdigest().encode() + b" " + text + b"\n")
        close(file)


def _made(call: dict[str, Any], tell: _Teller, stacks: TextIO) -> dict[str, Any]:
    try:
        if "build" in call:
            return {"returned": encode(built(call["build"]))}
        target = Target(call["call"], call["instance"], call["take"])
    except Unreachable as error:
        return {"problem": str(error)}
    except BaseException as error:  # noqa: BLE001  # an import may raise anything, SystemExit too
        return {**raised(error), "importing": True}
    tell({"reached": call["id"], "place": target.place()})
    faulthandler.dump_traceback_later(call["limit_s"], exit=True, file=stacks)
    try:
        if "over" in call:
            tried = importlib.import_module(f"{__package__}.trying").tried
            told: dict[str, Any] = tried(target, call)
        else:
            told = called(target, call["args"], call["kwargs"], call["limit_s"])
    except Unreachable as error:
        told = {"problem": str(error)}
    except BaseException as error:  # noqa: BLE001  # whatever was not foreseen is told, and proves nothing
        told = {"problem": f"it could not be carried out: {brief(error)}"}
    return {**told, "place": target.place()}
