"""The rungs of the ladder, from exact to vague, read after an epoch; of what has a bound, filling it is no leak."""

import sys
import tracemalloc
import weakref
from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from functools import _lru_cache_wrapper
from gc import collect, freeze, get_freeze_count, get_objects, get_referents, unfreeze
from itertools import islice
from tracemalloc import get_object_traceback, get_traced_memory, get_tracemalloc_memory, is_tracing
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from .memory import Tensors, available_bytes, device_bytes, heap_bytes, private_bytes, storage_of, tensors_among, trim

SAMPLE = 20
MOST_REACHED = 5_000
SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType)


def bound_of(each: object) -> "int | None":
    """Return how many entries a cache or queue may hold, or `None` where it is none or has no bound."""
    if type(each) is deque:
        return each.maxlen
    return each.cache_info().maxsize if type(each) is _lru_cache_wrapper else None


def size_of(each: object) -> int:
    """Return how many entries a cache or queue holds."""
    return len(each) if type(each) is deque else each.cache_info().currsize  # type: ignore[attr-defined]  # the other


def name_of(each: object) -> str:
    """Return what a cache or queue is called."""
    if type(each) is deque:
        return f"a deque of at most {each.maxlen}"
    return f"the cache of {getattr(each, '__module__', '')}.{getattr(each, '__qualname__', '?')}"


def weight(each: object) -> float:
    """Return about how many bytes an entry holds, from the last few."""
    kept: Any = each
    if type(each) is not deque:
        kept = next((inner for inner in get_referents(each) if type(inner) is dict), {}).values()
    entries = list(islice(reversed(kept), SAMPLE))
    return held_by(entries) / len(entries) if entries else 0.0


def held_by(roots: Iterable[object]) -> int:
    """Return about how many bytes some objects hold, with what they lead to."""
    total = 0
    for each in reached(roots):
        total += sys.getsizeof(each, 0)
        if hasattr(type(each), "untyped_storage"):
            total += sum(size for _, size in storage_of(each))
    return total


def reached(roots: Iterable[object]) -> list[object]:
    """Return some objects and what they lead to, code and modules left out, so many at most."""
    left, seen = list(roots), dict[int, object]()
    while left and len(seen) < MOST_REACHED:
        each = left.pop()
        if id(each) not in seen and not isinstance(each, SHARED):
            seen[id(each)] = each
            left += get_referents(each)
    return list(seen.values())


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
        self._old: list[weakref.ref[object]] = []
        self._frozen = self._own = 0
        self.troubles: set[str] = set()

    def begin(self) -> None:
        """Begin to trace, and leave what is there out of each search: it does not grow, save for tensors and caches."""
        collect()
        kept = [*tensors_among(get_objects()), *(each for each in get_objects() if bound_of(each))]
        self._old = [weakref.ref(each) for each in kept]
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
        trim()
        traced = get_traced_memory()[0] - self._own if self._traced() else None
        heap = heap_bytes()
        if heap is not None:
            heap -= get_tracemalloc_memory() + self._own
        private = private_bytes()
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
        left = available_bytes()
        return self._last - self._first > MOST_GROWTH or (left is not None and left < self._last - self._first)

    def filling(self) -> "list[dict[str, object]]":
        """Return the caches and queues that grew to the last and are not full, with their rate."""
        found = []
        for each in self._objects():
            sizes = self._bounded.get(id(each), array("q"))
            late = sizes[-max(len(sizes) // 3, 2) :]
            bound = bound_of(each)
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
            return self._tensors.read(tensors_among(self._objects()))
        except Exception as error:  # noqa: BLE001  # a fault of ours is none of the project's; the rung is not seen
            self.troubles.add(f"live tensors cannot be read: {type(error).__name__}: {error}"[:300])
            return None

    def _look_at_bounded(self) -> None:
        before = get_traced_memory()[0]
        for each in self._objects():
            if bound_of(each):
                self._bounded.setdefault(id(each), array("q")).append(size_of(each))
        self._own += get_traced_memory()[0] - before

    def _objects(self) -> Iterator[object]:
        """Yield all objects that may matter."""
        yield from (each for ref in self._old if (each := ref()) is not None)
        yield from get_objects()
