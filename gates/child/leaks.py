"""Calls one callable of the tested project once an epoch and tells after each how much memory is still held.

    python -m gates_probe.leaks QUESTION

Where that keeps growing, a run of its own tells where it was allocated, and what keeps it.
"""

import asyncio
import functools
import gc
import inspect
import io
import linecache
import re
import sys
import time
import traceback
import tracemalloc
import types
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .asking import HERE, Place, Places, Teller, Unreachable, found, program
from .leak_rungs import Rungs, bound_of, held_by, reached
from .memory import Graphs, tensors_among, torch_of_project

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


KINDS = (list, dict, set, deque)
MOST_NAMED = 6
NEWEST = 8


class Growing:
    """Notes the sizes of all containers, epoch by epoch."""

    def __init__(self) -> None:
        self._sizes: dict[int, list[int]] = {}

    def look(self) -> None:
        """Note the size of each container that grew since it was last seen; forget the others."""
        first = not self._sizes
        seen: dict[int, list[int]] = {}
        for each in gc.get_objects():
            if issubclass(type(each), KINDS) and each is not self._sizes:
                before = self._sizes.get(id(each))
                size = _length(each)
                if first or (before is not None and size > before[-1]):
                    seen[id(each)] = [*(before or []), size]
        self._sizes = seen

    def told(self, epoch: Callable[[], None], places: Places) -> "Iterator[dict[str, Any]]":
        """Yield what is known of each container that grew with every epoch, the heaviest first."""
        grew = [each for each in gc.get_objects() if issubclass(type(each), KINDS) and self._grew(each)]
        weighed = sorted(((held_by(_newest(each)), i) for i, each in enumerate(grew)), reverse=True)[:MOST_NAMED]
        chosen = [grew[i] for _, i in weighed]
        del grew
        lines = Watch(chosen, places).lines_of(epoch)
        for (size, _), line, each in zip(weighed, lines, chosen, strict=True):
            rate = (self._sizes[id(each)][-1] - self._sizes[id(each)][0]) / (len(self._sizes[id(each)]) - 1)
            path, number = line or (None, None)
            tensors = [one for one in reached(_newest(each)) if hasattr(type(one), "untyped_storage")]
            graphs = sum(getattr(one, "grad_fn", None) is not None for one in tensors)
            yield {"kind": type(each).__name__, "rate": rate, "entry": size / NEWEST, "path": path,
                   "line": number, "tensors": len(tensors), "graphs": graphs}  # fmt: skip

    def _grew(self, each: object) -> bool:
        sizes = self._sizes.get(id(each), [])
        return each is not self._sizes and len(sizes) > 2 and not bound_of(each)


def _length(each: Any) -> int:  # noqa: ANN401
    """Return the size of a container, whatever a subclass says of it."""
    if type(each) in KINDS:
        return len(each)
    kind: Any = next(kind for kind in KINDS if issubclass(type(each), kind))
    return int(kind.__len__(each))


def _newest(each: Any) -> list[Any]:  # noqa: ANN401
    if isinstance(each, dict):
        return [*each.values()][-NEWEST:]
    return [*each][-NEWEST:]


class Watch:
    """Finds the lines after which containers are larger, with every line of the project in this thread traced."""

    def __init__(self, watched: list[Any], places: Places) -> None:
        self._watched = watched
        self._places = places
        self._sizes = [_length(each) for each in watched]
        self._grown: list[dict[Place, int]] = [{} for _ in watched]
        self._at: dict[int, Place] = {}

    def lines_of(self, epoch: Callable[[], None]) -> "list[Place | None]":
        """Run one epoch and return, for each container, the line after which it had grown most often."""
        sys.settrace(self._trace)
        try:
            epoch()
        finally:
            sys.settrace(None)
        return [max(grown, key=lambda line: grown[line], default=None) for grown in self._grown]

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
                self._grown[i][line] = self._grown[i].get(line, 0) + size - self._sizes[i]
            self._sizes[i] = size


FRAMES = 40
FRAME = re.compile(r'^\s*File "([^"\n]+)", line (\d+)', re.MULTILINE)
MOST = 5


class Locating:
    """Compares what is there with what was there when it began."""

    def __init__(self, root: str) -> None:
        self.places = Places(root)
        self._graphs = Graphs()
        self._growing = Growing()
        # the last two make the texts that nodes of graphs know their lines by
        self._makers = (HERE, tracemalloc.__file__, traceback.__file__, linecache.__file__)
        self._lines: dict[str, Place | None] = {}
        self._before: dict[str, Counter[Place]] = {}

    def begin(self) -> None:
        """Trace from now on: allocations know their stack, nodes of graphs the line that made them."""
        torch = torch_of_project()
        if torch is not None:
            torch.autograd.set_detect_anomaly(True, check_nan=False)
        tracemalloc.start(FRAMES)

    def mark(self) -> None:
        """Take what was allocated by now as given; it is what each epoch has, once."""
        self._before = self._by_line()
        self._growing.look()

    def look(self) -> None:
        """Note the sizes of all containers."""
        self._growing.look()

    def allocated(self) -> "Iterator[dict[str, Any]]":
        """Yield, for each rung, the lines of the project with what they allocated since and is there, most first."""
        for rung, sizes in self._by_line().items():
            grown = sizes - self._before.get(rung, Counter())
            for (path, line), size in grown.most_common(MOST):
                yield {"rung": rung, "path": path, "line": line, "size": size}

    def holders(self, epoch: Callable[[], None]) -> "Iterator[dict[str, Any]]":
        """Yield the containers that grew with each epoch, and the lines that make them grow."""
        yield from self._growing.told(epoch, self.places)

    def _by_line(self) -> "dict[str, Counter[Place]]":
        gc.collect()
        found = {"python": Counter[Place]()}
        for each in tracemalloc.take_snapshot().statistics("traceback"):
            line = self._innermost((frame.filename, frame.lineno) for frame in each.traceback)
            if line is not None and not each.traceback[-1].filename.startswith(self._makers):
                found["python"][line] += each.size
        nodes = self._graphs.nodes(tensors_among(gc.get_objects()))
        return {**found, "graph": Counter(line for node in nodes if (line := self._made(node)) is not None)}

    def _made(self, node: Any) -> "Place | None":  # noqa: ANN401
        """Return the line that made a node; one from before tracing began knows none."""
        stack = node.metadata.get("traceback_")
        if not stack:
            return None
        text = "".join(stack)
        if text not in self._lines:
            self._lines[text] = self._innermost((path, int(line)) for path, line in FRAME.findall(text))
        return self._lines[text]

    def _innermost(self, frames: "Iterable[tuple[str, int]]") -> "Place | None":
        """Return the last of some frames, oldest first, that lies in the project."""
        found = None
        for filename, line in frames:
            shown = self.places.shown(filename)
            if shown is not None:
                found = (shown, line)
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
