"""The rungs of the ladder, from exact to vague, read after an epoch."""

import tracemalloc
import weakref
from array import array
from collections.abc import Iterator
from gc import collect, freeze, get_freeze_count, get_objects, unfreeze
from tracemalloc import get_object_traceback, get_traced_memory, get_tracemalloc_memory, is_tracing

from . import native
from .bounded import bound_of, name_of, places_of, size_of, weight
from .tensors import Tensors, device_bytes, is_tensor

MOST_GROWTH = 2 * 1024**3
MOST_NAMED = 5


class Rungs:
    """Reads what is held: by devices, in tensors, in graphs, by Python, by the C library, by the process."""

    def __init__(self) -> None:
        self._tensors = Tensors()
        self._sentinel: object = None
        self._first: int | None = None
        self._last: int | None = None
        self._bounded: dict[int, array[int]] = {}
        self._places: dict[int, int] = {}
        self._rings: list[object] = []
        self._old: list[weakref.ref[object]] = []
        self._frozen = self._own = 0
        self.troubles: set[str] = set()

    def begin(self) -> None:
        """Begin to trace, and leave what is there out of each search: it does not grow, save for tensors and caches."""
        collect()
        self._old = [weakref.ref(each) for each in get_objects() if is_tensor(each) or bound_of(each)]
        self._rings = [each for each in get_objects() if places_of(each)]  # nothing refers weakly to a list
        freeze()
        self._frozen = get_freeze_count()
        if not is_tracing():
            tracemalloc.start(1)
        self._sentinel = bytearray(64)

    def read(self) -> dict[str, "int | None"]:
        """Return what each rung shows, once garbage is collected and the C library has given back what it can."""
        if get_freeze_count() > self._frozen:  # the project froze more, garbage perhaps
            unfreeze()
            self._frozen = 0
        collect()
        native.trim()
        traced = get_traced_memory()[0] - self._own if self._traced() else None
        heap = native.heap_bytes()
        if heap is not None:
            heap -= get_tracemalloc_memory() + self._own
        private = native.private_bytes()
        self._first, self._last = self._first if self._first is not None else private, private
        found: dict[str, int | None] = {f"device {name}": size for name, size in device_bytes().items()}
        held = self._held()
        if held is not None:
            found |= {"tensors": held[0], "graph": held[1]}
        self._look_at_bounded()
        return {**found, "python": traced, "heap": heap, "private": private}

    def crowded(self) -> bool:
        """Return whether there is too little memory left to go on."""
        if self._first is None or self._last is None:
            return False
        left = native.available_bytes()
        return self._last - self._first > MOST_GROWTH or (left is not None and left < self._last - self._first)

    def filling(self) -> "list[dict[str, object]]":
        """Return the caches, queues and rings that grew to the last and are not full, with their rate."""
        found = []
        for each in self._objects():
            sizes = self._bounded.get(id(each), array("q"))
            late = sizes[-max(len(sizes) // 3, 2) :]
            bound = bound_of(each) or (places_of(each) if self._places.get(id(each)) == places_of(each) else 0)
            if bound and len(late) > 1 and late[-1] > late[0] and size_of(each) < bound:
                rate = (late[-1] - late[0]) / (len(late) - 1)
                found.append({"name": name_of(each), "size": size_of(each), "most": bound, "rate": rate * weight(each)})
        return found[:MOST_NAMED]

    def _traced(self) -> bool:
        """Return whether tracing has gone on since it began."""
        if is_tracing() and get_object_traceback(self._sentinel) is not None:
            return True
        self.troubles.add("the project stopped tracemalloc, or cleared its traces")
        return False

    def _held(self) -> "tuple[int, int] | None":
        try:
            return self._tensors.read([each for each in self._objects() if is_tensor(each)])
        except Exception as error:  # noqa: BLE001  # a fault of ours is none of the project's; the rung is not seen
            self.troubles.add(f"live tensors cannot be read: {type(error).__name__}: {error}"[:300])
            return None

    def _look_at_bounded(self) -> None:
        before = get_traced_memory()[0]
        for each in self._objects():
            places = places_of(each)
            if places and self._places.setdefault(id(each), places) != places:
                self._places[id(each)] = -1  # it grows: it is no ring
            if bound_of(each) or places:
                self._bounded.setdefault(id(each), array("q")).append(size_of(each))
        self._own += get_traced_memory()[0] - before

    def _objects(self) -> Iterator[object]:
        """Yield all objects that may matter."""
        yield from (each for ref in self._old if (each := ref()) is not None)
        yield from self._rings
        yield from get_objects()
