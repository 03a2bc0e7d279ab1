"""Calls one callable of the tested project once an epoch and tells after each how much memory is still held.

    python -m gates_probe.leaks QUESTION JOURNAL

An exception is raised on, so that its traceback reaches stderr.
"""

import gc
import sys
import time
from typing import Any

from ..asking import Teller, Unreachable, asked, found, give_up, leave, print_without_us
from .epochs import Epochs, Over
from .locating import Locating
from .rungs import Rungs


def main() -> None:
    """Do what was asked for, and leave at once when it was told."""
    question, tell = asked()
    sys.excepthook = print_without_us
    tell("start")
    try:
        call = found(question["call"])
    except Unreachable as error:
        give_up(tell, str(error))
    epochs = Epochs(call, question["args"])
    try:
        (_located if question["locate"] else _measured)(epochs, question, tell)
    except Over:
        give_up(tell, f"it came to its end after {epochs.done} of {question['epochs']} epochs")
    tell("end", form=epochs.form)
    leave()


def _measured(epochs: Epochs, question: dict[str, Any], tell: Teller) -> None:
    """Tell of each epoch what each rung shows; stop before the time is up, or the memory, once enough was seen."""
    rungs, began = Rungs(), time.monotonic()
    epochs.run()
    rungs.begin()
    for number in range(question["epochs"]):
        if number:
            epochs.run()
        tell("epoch", **rungs.read())
        late = time.monotonic() - began > question["seconds"]
        if number >= question["least"] and (late or rungs.crowded()):
            break
    tell("form", form=epochs.form, troubles=sorted(rungs.troubles), filling=rungs.filling())


def _located(epochs: Epochs, question: dict[str, Any], tell: Teller) -> None:
    """Tell which lines allocate what is kept, and which containers keep it."""
    locating = Locating(question["root"])
    for _ in range(question["warm"]):
        epochs.run()
    locating.begin()
    for number in range(question["epochs"] - question["warm"]):
        epochs.run()
        gc.collect()
        if number == 1:
            locating.mark()
        elif number:
            locating.look()
    for each in locating.allocated():
        tell("allocated", **each)
    for each in locating.holders(epochs.run):
        tell("holder", **each)


if __name__ == "__main__":
    main()
