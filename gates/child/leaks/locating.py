"""Where what is kept was allocated, and what keeps it: read in a run of its own, with every allocation traced."""

import gc
import linecache
import traceback
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..places import HERE, Places
from .growing import Growing
from .making import Making
from .tensors import Graphs, is_tensor, storage_of, torch_of_project

FRAMES = 40
MOST = 5
Line = tuple[str, int]


class Locating:
    """Compares what is there with what was there when it began."""

    def __init__(self, root: str) -> None:
        self.places = Places(root)
        self._graphs = Graphs()
        self._growing = Growing()
        self._making = Making(self.places)
        # the last two make the texts that nodes of graphs know their lines by
        self._makers = (HERE, tracemalloc.__file__, traceback.__file__, linecache.__file__)
        self._lines: dict[str, Line | None] = {}
        self._before: dict[str, Counter[Line]] = {}

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

    def _by_line(self) -> "dict[str, Counter[Line]]":
        gc.collect()
        found = {"python": Counter[Line]()}
        for each in tracemalloc.take_snapshot().statistics("traceback"):
            line = self._innermost((frame.filename, frame.lineno) for frame in each.traceback)
            if line is not None and not each.traceback[-1].filename.startswith(self._makers):
                found["python"][line] += each.size
        return found if torch_of_project() is None else {**found, **self._of_tensors()}

    def _of_tensors(self) -> "dict[str, Counter[Line]]":
        """Count storages by the line that made their tensor, saved ones and nodes by that of the node."""
        tensors = [each for each in gc.get_objects() if is_tensor(each)]
        nodes = self._graphs.nodes(tensors)
        held = [(None, tensor) for tensor in tensors]
        made: dict[int, tuple[Line, int]] = {}
        for node, tensor in [*self._graphs.saved(nodes), *held]:
            for key, size in storage_of(tensor):
                line = self._making.lines.get(key) or (self._made(node) if node is not None else None)
                if line is not None:
                    made[key] = line, size
        sizes: Counter[Line] = Counter()
        for line, size in made.values():
            sizes[line] += size
        return {"tensors": sizes, "graph": Counter(line for node in nodes if (line := self._made(node)) is not None)}

    def _made(self, node: Any) -> "Line | None":  # noqa: ANN401
        """Return the line that made a node; one from before tracing began knows none."""
        stack = node.metadata.get("traceback_")
        if not stack:
            return None
        text = "".join(stack)
        if text not in self._lines:
            self._lines[text] = self._innermost(_frames(text))
        return self._lines[text]

    def _innermost(self, frames: "Iterable[tuple[str, int]]") -> "Line | None":
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
