"""Caches, queues and rings that have a bound: filling one is no leak."""

import sys
from collections import deque
from collections.abc import Iterable
from functools import _lru_cache_wrapper
from gc import get_referents
from itertools import islice
from types import BuiltinFunctionType, FunctionType, ModuleType

from .tensors import storage_of

SAMPLE = 20
MOST = 5_000
LEAST, LARGEST = 16, 100_000
SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType)


def bound_of(each: object) -> "int | None":
    """Return how many entries a cache or queue may hold, or `None` where it is none or has no bound."""
    if type(each) is deque:
        return each.maxlen
    return each.cache_info().maxsize if type(each) is _lru_cache_wrapper else None


def places_of(each: object) -> int:
    """Return how many places a list has whose last ones are empty, as those of a ring that fills; 0 where it is none.

    A list that grows may look like one, too: its number of places does not stay the same.
    """
    ring = type(each) is list and LEAST <= len(each) <= LARGEST and each[-1] is None
    return len(each) if ring else 0  # type: ignore[arg-type]  # a list


def size_of(each: object) -> int:
    """Return how many entries a cache, queue or ring holds."""
    if type(each) is list:
        return sum(one is not None for one in each)
    return len(each) if type(each) is deque else each.cache_info().currsize  # type: ignore[attr-defined]  # the other


def name_of(each: object) -> str:
    """Return what a cache, queue or ring is called."""
    if type(each) is list:
        return f"a list of {len(each)} places"
    if type(each) is deque:
        return f"a deque of at most {each.maxlen}"
    return f"the cache of {getattr(each, '__module__', '')}.{getattr(each, '__qualname__', '?')}"


def weight(each: object) -> float:
    """Return about how many bytes an entry holds, from the last few."""
    entries: list[object]
    if type(each) is deque:
        entries = list(islice(reversed(each), SAMPLE))
    elif type(each) is list:
        entries = [one for one in each if one is not None][-SAMPLE:]
    else:
        kept = next((inner for inner in get_referents(each) if type(inner) is dict), {})
        entries = list(islice(reversed(kept.values()), SAMPLE))
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
    while left and len(seen) < MOST:
        each = left.pop()
        if id(each) not in seen and not isinstance(each, SHARED):
            seen[id(each)] = each
            left += get_referents(each)
    return list(seen.values())
