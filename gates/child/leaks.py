"""Calls one callable of the project once an epoch; tells how much memory is held after each, or what allocated it."""

import gc
import inspect
import io
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from typing import Any

from .asking import Place, Places, Teller, Unreachable, ended, found, program, torch_of_project
from .memory import Rungs

LEFT = "__next__"  # an iterator is not gone through
UNUSED = ("__enter__", "__anext__", LEFT)


class Epochs:
    """Runs epoch after epoch of a callable: it, or what can be called that its first call returns."""

    def __init__(self, call: Callable[..., object], args: list[object]) -> None:
        self._epoch: Callable[[], object] = lambda: call(*args)
        self.form = ""

    def run(self) -> None:
        """Run one epoch, and keep nothing of what it returns."""
        given: Any = ended(self._epoch(), take=LEFT)
        if not self.form:
            self.form = "returned" if _is_epoch(given) else "called"
            if self.form == "returned":
                self._epoch = given
                given = ended(given(), take=LEFT)
        if not isinstance(given, io.IOBase) and any(hasattr(type(given), name) for name in UNUSED):
            what = type(given).__name__
            raise Unreachable(f"it returned a {what}, which nobody enters or goes through: return a function")


def _is_epoch(given: object) -> bool:
    """Return whether something that was returned can be called once an epoch: no class, no model."""
    if isinstance(given, type) or not callable(given) or hasattr(given, "forward"):
        return False
    try:
        inspect.signature(given).bind()
    except (TypeError, ValueError):
        return False
    return True


FRAMES, MOST = 40, 5
MOST_GROWTH = 2 * 1024**3
WARM_TRACED = 2  # epochs, by which what they make once is there


@program
def main(question: dict[str, Any], tell: Teller) -> None:
    """Run the epochs."""
    (_located if question["warm"] else _measured)(Epochs(found(question["call"]), question["args"]), question, tell)


def _measured(epochs: Epochs, question: dict[str, Any], tell: Teller) -> None:
    """Tell of each epoch what each rung shows; stop before the time is up, or the memory, once enough was seen."""
    rungs, began = Rungs(), time.monotonic()
    epochs.run()
    rungs.begin()
    first = 0
    for number in range(question["epochs"]):
        if number:
            epochs.run()
        held = rungs.read()
        tell("epoch", **held)
        first = first or held.get("private", 0)
        late = time.monotonic() - began > question["seconds"]
        if number >= question["least"] and (late or held.get("private", 0) - first > MOST_GROWTH):
            break
    tell("form", form=epochs.form, troubles=sorted(rungs.troubles), filling=rungs.filling())


def _located(epochs: Epochs, question: dict[str, Any], tell: Teller) -> None:
    """Tell which lines of the project allocate what each epoch keeps, nodes of graphs too, most first."""
    places = Places(question["root"])
    for _ in range(question["warm"]):
        epochs.run()
    if torch := torch_of_project():
        torch.autograd.set_detect_anomaly(True, check_nan=False)
    tracemalloc.start(FRAMES)
    for _ in range(WARM_TRACED):
        epochs.run()
    before = _by_line(places)
    for _ in range(question["epochs"]):
        epochs.run()
    for place, _ in (_by_line(places) - before).most_common(MOST):
        tell("allocated", path=place[0], line=place[1])


def _by_line(places: Places) -> Counter[Place]:
    """Return the bytes that are there, by the innermost line of the project that led to them."""
    gc.collect()
    found = Counter[Place]()
    for each in tracemalloc.take_snapshot().statistics("traceback"):
        for frame in reversed(each.traceback):
            if shown := places.shown(frame.filename):
                found[shown, frame.lineno] += each.size
                break
    return found
