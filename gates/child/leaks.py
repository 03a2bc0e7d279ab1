"""Calls one callable of the tested project once an epoch and tells after each how much memory is still held.

    python -m gates_probe.leaks QUESTION

Where that keeps growing, a run of its own tells where it was allocated, and what keeps it.
"""

import asyncio
import functools
import gc
import inspect
import io
import sys
import time
import tracemalloc
import types
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Any

from .asking import Place, Places, Teller, Unreachable, found, program, torch_of_project
from .memory import Rungs, bound_of, held_by, reached, tensors_among

UNUSED = ("__enter__", "__anext__")
CALLED, RETURNED, STEPPED = "called", "returned", "stepped"


class Epochs:
    """Runs epoch after epoch of a callable; what an epoch is, the first call says."""

    def __init__(self, call: Callable[..., object], args: list[object]) -> None:
        self._epoch: Callable[[], object] = functools.partial(call, *args)
        self._runner = asyncio.Runner()
        self.form = ""
        self.done = 0

    def run(self) -> None:
        """Run one epoch, and keep nothing of what it returns; the first call says what an epoch is, or is the first."""
        if not self.form:
            self._begin(self._ended(self._epoch()))
        if self.done or self.form != CALLED:
            try:
                self._ended(self._epoch())
            except StopIteration:
                raise Unreachable(f"it came to its end after {self.done} epochs") from None
        self.done += 1

    def _begin(self, given: Any) -> None:  # noqa: ANN401
        self.form = CALLED
        if isinstance(given, io.IOBase):
            return
        if any(hasattr(type(given), name) for name in UNUSED):
            what = type(given).__name__
            raise Unreachable(f"it returned a {what}, which nobody enters or awaits: return a function or a generator")
        if hasattr(type(given), "__next__"):
            self.form, self._epoch = STEPPED, given.__next__
        elif _is_epoch(given):
            self.form, self._epoch = RETURNED, given

    def _ended(self, returned: Any) -> Any:  # noqa: ANN401
        """Return what a coroutine comes to; not begun, it would have run nothing."""

        async def result() -> Any:  # noqa: ANN401
            return await returned

        return self._runner.run(result()) if inspect.isawaitable(returned) else returned


def _is_epoch(given: object) -> bool:
    """Return whether something that was returned can be called once an epoch: no class, no model."""
    if isinstance(given, type) or not callable(given) or hasattr(given, "forward"):
        return False
    try:
        inspect.signature(given).bind()
    except (TypeError, ValueError):
        return False
    return True


KINDS = (list, dict, set, deque)
MOST_NAMED = 6
NEWEST = 8


def _length(each: Any) -> int:  # noqa: ANN401
    """Return the size of a container, whatever a subclass says of it."""
    kind: Any = type(each) if type(each) in KINDS else next(kind for kind in KINDS if issubclass(type(each), kind))
    return int(kind.__len__(each))


def _newest(each: Any) -> list[Any]:  # noqa: ANN401
    return [*(each.values() if isinstance(each, dict) else each)][-NEWEST:]


class Watch:
    """Finds the lines after which containers are larger, with every line of the project in this thread traced."""

    def __init__(self, watched: list[Any], places: Places) -> None:
        self._watched = watched
        self._places = places
        self._sizes = [_length(each) for each in watched]
        self._grown: list[Counter[Place]] = [Counter() for _ in watched]
        self._at: dict[int, Place] = {}

    def lines_of(self, epoch: Callable[[], None]) -> list[Place | None]:
        """Run one epoch and return, for each container, the line after which it had grown most often."""
        sys.settrace(self._trace)
        try:
            epoch()
        finally:
            sys.settrace(None)
        return [next((line for line, _ in grown.most_common(1)), None) for grown in self._grown]

    def _trace(self, frame: types.FrameType, event: str, _arg: object) -> Any:  # noqa: ANN401
        """Compare after each line; what grew by the time that a function is called grew in the line that calls it."""
        shown = self._places.shown(frame.f_code.co_filename)
        if shown is None:
            return None
        before = self._at.get(id(frame.f_back if event == "call" else frame))
        if before is not None:
            self._compare(before)
        if event == "return":
            self._at.pop(id(frame), None)
        else:
            self._at[id(frame)] = (shown, frame.f_lineno)
        return self._trace

    def _compare(self, line: Place) -> None:
        for i, each in enumerate(self._watched):
            size = _length(each)
            if size > self._sizes[i]:
                self._grown[i][line] += size - self._sizes[i]
            self._sizes[i] = size


FRAMES = 40
MOST = 5


class Locating:
    """Finds the lines that allocate what stays, and the containers that grow with each epoch."""

    def __init__(self, root: str) -> None:
        self._places = Places(root)
        self._sizes: dict[int, list[int]] = {}
        self._before: Counter[Place] = Counter()

    def begin(self) -> None:
        """Trace from now on; torch then writes down where each node of a graph is made, which Python allocates."""
        torch = torch_of_project()
        if torch is not None:
            torch.autograd.set_detect_anomaly(True, check_nan=False)
        tracemalloc.start(FRAMES)

    def mark(self) -> None:
        """Take what was allocated by now as given; it is what each epoch has, once."""
        self._before = self._by_line()
        self.look()

    def look(self) -> None:
        """Note the size of each container that grew since it was last seen; forget the others."""
        first, seen = not self._sizes, dict[int, list[int]]()
        for each in self._containers():
            before, size = self._sizes.get(id(each)), _length(each)
            if first or (before and size > before[-1]):
                seen[id(each)] = [*(before or []), size]
        self._sizes = seen

    def allocated(self) -> Iterator[dict[str, Any]]:
        """Yield the lines of the project with what they allocated since and is there, most first."""
        for (path, line), _ in (self._by_line() - self._before).most_common(MOST):
            yield {"path": path, "line": line}

    def holders(self, epoch: Callable[[], None]) -> Iterator[dict[str, Any]]:
        """Yield what is known of each container that grew with every epoch, the heaviest first."""
        grew = [each for each in self._containers() if len(self._sizes.get(id(each), [])) > 2 and not bound_of(each)]
        weighed = sorted(((held_by(_newest(each)), i) for i, each in enumerate(grew)), reverse=True)[:MOST_NAMED]
        chosen = [grew[i] for _, i in weighed]
        del grew
        lines = Watch(chosen, self._places).lines_of(epoch)
        for (weight, _), line, each in zip(weighed, lines, chosen, strict=True):
            place = {"path": line[0], "line": line[1]} if line else None
            sizes = self._sizes[id(each)]
            rate = (sizes[-1] - sizes[0]) / (len(sizes) - 1)
            graphs = any(tensor.grad_fn is not None for tensor in tensors_among(reached(_newest(each))))
            told = {"kind": type(each).__name__, "rate": rate, "size": rate * weight / NEWEST, "graphs": graphs}
            yield {**told, "location": place}

    def _containers(self) -> Iterator[object]:
        mine = {id(self._sizes), id(self._before)}
        return (each for each in gc.get_objects() if issubclass(type(each), KINDS) and id(each) not in mine)

    def _by_line(self) -> Counter[Place]:
        """Return the bytes that are there, by the innermost line of the project that led to them."""
        gc.collect()
        found = Counter[Place]()
        for each in tracemalloc.take_snapshot().statistics("traceback"):
            for frame in reversed(each.traceback):
                if shown := self._places.shown(frame.filename):
                    found[shown, frame.lineno] += each.size
                    break
        return found


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
