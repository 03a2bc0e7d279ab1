"""Calls one callable of the tested project once an epoch and tells after each how much memory is still held.

python -m gates_probe.leaks QUESTION
"""

import asyncio
import functools
import gc
import inspect
import io
import time
import types
from collections.abc import Callable
from typing import Any

from .asking import Teller, Unreachable, found, program
from .leak_lines import Locating
from .leak_rungs import Rungs

FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.BuiltinMethodType,
             functools.partial, functools.partialmethod)  # fmt: skip
UNUSED = ("__enter__", "__anext__")
CALLED, RETURNED, STEPPED = "called", "returned", "stepped"


class Epochs:
    """Runs epoch after epoch of a callable; what an epoch is, the first call says."""

    def __init__(self, call: Callable[..., object], args: list[object]) -> None:
        self._call = functools.partial(call, *args)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._epoch: Callable[[], object] | None = None
        self.form = CALLED
        self.done = 0

    def run(self) -> None:
        """Run one epoch, and keep nothing of what it returns."""
        if self._epoch is None:
            self._begin()
        else:
            self._ended(self._epoch())
        self.done += 1

    def _begin(self) -> None:
        """Make the call that is the first epoch, or that returns what an epoch is."""
        given: Any = self._ended(self._call())
        self._epoch = self._call
        if any(hasattr(type(given), name) for name in UNUSED) and not isinstance(given, io.IOBase):
            what = type(given).__name__
            raise Unreachable(f"it returned a {what}, which nobody enters or awaits: return a function or a generator")
        if hasattr(type(given), "__next__") and not isinstance(given, io.IOBase):
            self.form, self._epoch = STEPPED, functools.partial(self._step, given)
        elif _is_epoch(given):
            self.form, self._epoch = RETURNED, given
        if self.form != CALLED:
            self.run()
            self.done -= 1

    def _step(self, iterator: Any) -> None:  # noqa: ANN401
        try:
            next(iterator)
        except StopIteration:
            raise Unreachable(f"it came to its end after {self.done} epochs") from None

    def _ended(self, returned: Any) -> Any:  # noqa: ANN401
        """Return what a coroutine comes to; not begun, it would have run nothing."""
        if not inspect.isawaitable(returned):
            return returned
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)

        async def result() -> Any:  # noqa: ANN401
            return await returned

        return self._loop.run_until_complete(result())


def _is_epoch(given: object) -> bool:
    """Return whether something that was returned can be called once an epoch: no class, no model."""
    if isinstance(given, type) or not callable(given):
        return False
    if not isinstance(given, FUNCTIONS) and hasattr(given, "forward"):
        return False
    try:
        inspect.signature(given).bind()
    except (TypeError, ValueError):
        return False
    return True


@program
def main(question: dict[str, Any], tell: Teller) -> None:
    """Run the epochs."""
    epochs = Epochs(found(question["call"]), question["args"])
    (_located if question["warm"] else _measured)(epochs, question, tell)


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
