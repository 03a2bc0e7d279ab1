"""Calls one callable of the tested project once an epoch and tells after each how much memory is still held.

    python -m gates_leaks ASKED JOURNAL

ASKED is a file of JSON, gone once it is read: its secret signs the journal, so that no line of it is the project's.
An exception is raised on, so that its traceback reaches stderr.
"""

import gc
import importlib
import json
import os
import sys
import time
import traceback
from types import TracebackType
from typing import Any

from .epochs import Epochs, Over
from .journal import Teller
from .locating import Locating
from .rungs import Rungs

HERE = f"{os.path.dirname(os.path.abspath(__file__))}{os.sep}"  # noqa: PTH100, PTH120


def main() -> None:
    """Do what was asked for, and leave at once when it was told."""
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123
        asked = json.load(file)
    os.remove(sys.argv[1])  # noqa: PTH107
    tell = Teller(sys.argv[2], asked.pop("secret"))
    sys.argv, sys.excepthook = [asked["call"]], _print
    sys.path[:1] = asked["paths"][:1]
    sys.path += [path for path in asked["paths"][1:] if path not in sys.path]
    tell("start")
    epochs = Epochs(_found(asked["call"], tell), asked["args"])
    try:
        (_located if asked["locate"] else _measured)(epochs, asked, tell)
    except Over:
        tell("problem", what=f"it came to its end after {epochs.done} of {asked['epochs']} epochs")
        raise SystemExit(2) from None
    tell("end", form=epochs.form)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # what the project leaves running is none of what was asked for


def _measured(epochs: Epochs, asked: dict[str, Any], tell: Teller) -> None:
    """Tell of each epoch what each rung shows; stop before the time is up, or the memory, once enough was seen."""
    rungs, began = Rungs(), time.monotonic()
    epochs.run()
    rungs.begin()
    for number in range(asked["epochs"]):
        if number:
            epochs.run()
        tell("epoch", **rungs.read())
        late = time.monotonic() - began > asked["seconds"]
        if number >= asked["least"] and (late or rungs.crowded()):
            break
    tell("form", form=epochs.form, troubles=sorted(rungs.troubles), filling=rungs.filling())


def _located(epochs: Epochs, asked: dict[str, Any], tell: Teller) -> None:
    """Tell which lines allocate what is kept, and which containers keep it."""
    locating = Locating(asked["root"], HERE)
    for _ in range(asked["warm"]):
        epochs.run()
    locating.begin()
    for number in range(asked["epochs"] - asked["warm"]):
        epochs.run()
        gc.collect()
        if number == 1:
            locating.mark()
        elif number:
            locating.look()
    for found in locating.allocated():
        tell("allocated", **found)
    for found in locating.holders(epochs.run):
        tell("holder", **found)


def _found(call: str, tell: Teller) -> Any:  # noqa: ANN401
    """Return the callable, or leave with what is missing."""
    module, _, names = call.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            _leave(tell, f"there is no module {error.name!r}")
        raise
    for name in names.split("."):
        if not hasattr(found, name):
            _leave(tell, f"{module} has no {names!r}")
        found = getattr(found, name)
    if not callable(found):
        _leave(tell, f"{call} is not callable")
    return found


def _leave(tell: Teller, problem: str) -> None:
    tell("problem", what=problem)
    raise SystemExit(2)


def _print(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback without the frames of this program."""
    shown = traceback.TracebackException(kind, error, trace)
    shown.stack = traceback.StackSummary.from_list([each for each in shown.stack if not each.filename.startswith(HERE)])
    sys.stderr.write("".join(shown.format()))


if __name__ == "__main__":
    main()
