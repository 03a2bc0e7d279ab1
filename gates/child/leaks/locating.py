"""Where what is kept was allocated, and what keeps it: read in a run of its own, with every allocation traced."""

import gc
import importlib
import linecache
import sys
import traceback
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..places import HERE, Place, Places
from .growing import Growing
from .tensors import Graphs, is_tensor, storage_of, torch_of_project


class Making:
    """Keeps, for each storage, the innermost line of the project when it was made."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self.lines: dict[int, Place | None] = {}

    def begin(self) -> None:
        """Look at each operation from now on, in this thread."""
        mode: Any = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode

        def look(_mode: object, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            return self.seen(func, args, kwargs or {})

        def no(_kind: type) -> bool:
            return False  # to skip it, torch would import all of dynamo first, traced: minutes

        kind: Any = type("Look", (mode,), {"__torch_dispatch__": look, "_should_skip_dynamo": classmethod(no)})
        kind().__enter__()

    def seen(self, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:  # noqa: ANN401
        """Do an operation; note the storages that it returns and was not given."""
        given = {key for tensor in _tensors((args, kwargs)) for key, _ in storage_of(tensor)}
        result = func(*args, **kwargs)
        new = {key for tensor in _tensors(result) for key, _ in storage_of(tensor)} - given
        if new:
            line = self._places.of(sys._getframe())  # noqa: SLF001  # as logging does
            self.lines.update(dict.fromkeys(new, line))
        return result


def _tensors(value: Any) -> Iterator[Any]:  # noqa: ANN401
    if is_tensor(value):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors(each)


FRAMES = 40
MOST = 5


class Locating:
    """Compares what is there with what was there when it began."""

    def __init__(self, root: str) -> None:
        self.places = Places(root)
        self._graphs = Graphs()
        self._growing = Growing()
        self._making = Making(self.places)
        # the last two make the texts that nodes of graphs know their lines by
        self._makers = (HERE, tracemalloc.__file__, traceback.__file__, linecache.__file__)
        self._lines: dict[str, Place | None] = {}
        self._before: dict[str, Counter[Place]] = {}

    def begin(self) -> None:
        """Trace from now on: allocations know their stack, nodes of graphs the line that made them."""
        torch = torch_of_project()
        if torch is not None:
            torch.autograd.set_detect_anomaly(True, check_nan=False)
            self._making.begin()
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
        """Yield the containers that grew with each epoch, with their owners and the lines that make them grow."""
        yield from self._growing.told(epoch, self.places)

    def _by_line(self) -> "dict[str, Counter[Place]]":
        gc.collect()
        found = {"python": Counter[Place]()}
        for each in tracemalloc.take_snapshot().statistics("traceback"):
            line = self._innermost((frame.filename, frame.lineno) for frame in each.traceback)
            if line is not None and not each.traceback[-1].filename.startswith(self._makers):
                found["python"][line] += each.size
        return found if torch_of_project() is None else {**found, **self._of_tensors()}

    def _of_tensors(self) -> "dict[str, Counter[Place]]":
        """Count storages by the line that made their tensor, saved ones and nodes by that of the node."""
        tensors = [each for each in gc.get_objects() if is_tensor(each)]
        nodes = self._graphs.nodes(tensors)
        held = [(None, tensor) for tensor in tensors]
        made: dict[int, tuple[Place, int]] = {}
        for node, tensor in [*self._graphs.saved(nodes), *held]:
            for key, size in storage_of(tensor):
                line = self._making.lines.get(key) or (self._made(node) if node is not None else None)
                if line is not None:
                    made[key] = line, size
        sizes: Counter[Place] = Counter()
        for line, size in made.values():
            sizes[line] += size
        return {"tensors": sizes, "graph": Counter(line for node in nodes if (line := self._made(node)) is not None)}

    def _made(self, node: Any) -> "Place | None":  # noqa: ANN401
        """Return the line that made a node; one from before tracing began knows none."""
        stack = node.metadata.get("traceback_")
        if not stack:
            return None
        text = "".join(stack)
        if text not in self._lines:
            self._lines[text] = self._innermost(_frames(text))
        return self._lines[text]

    def _innermost(self, frames: "Iterable[tuple[str, int]]") -> "Place | None":
        """Return the last of some frames, oldest first, that lies in the project."""
        found = None
        for filename, line in frames:
            shown = self.places.shown(filename)
            if shown is not None:
                found = (shown, line)
        return found


def _frames(text: str) -> "Iterator[tuple[str, int]]":
    for line in text.splitlines():
        head, _, rest = line.strip().partition('File "')
        path, _, after = rest.partition('", line ')
        number = after.partition(",")[0]
        if not head and number.isdigit():
            yield path, int(number)
