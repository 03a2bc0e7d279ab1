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


def lines_of(epoch: Callable[[], None], watched: list[Any], places: Places) -> list[Place | None]:
    """Run one epoch with the project's lines traced; return for each container after which it had grown most often."""
    sizes, at = [_length(each) for each in watched], dict[int, Place]()
    grown: list[Counter[Place]] = [Counter() for _ in watched]

    def trace(frame: types.FrameType, event: str, _arg: object) -> Any:  # noqa: ANN401
        """Compare after each line; what grew by the time that a function is called grew in the line that calls it."""
        shown = places.shown(frame.f_code.co_filename)
        if shown is None:
            return None
        before = at.get(id(frame.f_back if event == "call" else frame))
        for i, each in enumerate(watched) if before else ():
            size = _length(each)
            grown[i][before] += max(0, size - sizes[i])  # type: ignore[index]  # there is one
            sizes[i] = size
        at[id(frame)] = (shown, frame.f_lineno)
        if event == "return":
            del at[id(frame)]
        return trace

    sys.settrace(trace)
    try:
        epoch()
    finally:
        sys.settrace(None)
    return [next((line for line, size in lines.most_common(1) if size), None) for lines in grown]


FRAMES = 40
MOST_GROWTH = 2 * 1024**3
MOST = 5


class Locating:
    """Finds the lines that allocate what stays, and the containers that grow with each epoch."""

    def __init__(self, root: str) -> None:
        self._places = Places(root)
        self._sizes: dict[int, list[int]] = {}
        self._before: Counter[Place] = Counter()

    def run(self, epoch: Callable[[], None], count: int) -> None:
        """Look at some epochs; what was allocated by the second is what each epoch has, once.

        Torch writes down where each node of a graph is made, which Python allocates.
        """
        if torch := torch_of_project():
            torch.autograd.set_detect_anomaly(True, check_nan=False)
        tracemalloc.start(FRAMES)
        for number in range(count):
            epoch()
            gc.collect()
            if number == 1:
                self._before = self._by_line()
            if number:
                self._look()

    def _look(self) -> None:
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
        lines = lines_of(epoch, chosen, self._places)
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
    """Tell which lines allocate what is kept, and which containers keep it."""
    locating = Locating(question["root"])
    for _ in range(question["warm"]):
        epochs.run()
    locating.run(epochs.run, question["epochs"] - question["warm"])
    for each in locating.allocated():
        tell("allocated", **each)
    for each in locating.holders(epochs.run):
        tell("holder", **each)
