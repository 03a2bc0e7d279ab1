"""All inputs of a small domain, one by one: what was tried on each of them is not only likely."""

import itertools
from collections.abc import Iterator
from json import dumps
from typing import Any

MOST = 1000  # inputs of all arguments together
MOST_TRIES = 20_000  # with what a law draws beside them
EXTRAS = ("none", "other")  # a law that draws factors or orders of its own is never tried whole


def count(domains: list[dict[str, Any]]) -> int:
    """Return how many inputs some arguments have together, or 0 where these are not few."""
    found = 1
    for domain in domains:
        found *= _size(domain)
        if not 0 < found <= MOST:
            return 0
    return found


def every(domains: list[dict[str, Any]]) -> Iterator[list[Any]]:
    """Yield each input once, the simple ones first."""
    seen = set()
    for inputs in itertools.product(*map(_values, domains)):
        key = dumps(inputs)
        if key not in seen:
            seen.add(key)
            yield list(inputs)


def _size(domain: dict[str, Any]) -> int:
    """Return how many inputs one argument has, or 0 where these are not few."""
    if domain["floats"] or domain["text"]:
        return 0
    if domain["integers"]:
        least, most = domain["integers"]
        return int(most) - int(least) + 1
    if domain["booleans"]:
        return 2
    if domain["lists"]:
        one, (least, most) = _size(domain["lists"]), domain["size"] or (0, 10)
        if one == 0 or most > MOST or (one > 1 and most > MOST.bit_length()):
            return 0
        return sum(one**length for length in range(least, most + 1))
    return len(domain["values"])


def _values(domain: dict[str, Any]) -> list[Any]:
    if domain["integers"]:
        least, most = domain["integers"]
        return sorted(range(int(least), int(most) + 1), key=lambda value: (abs(value), value < 0))
    if domain["booleans"]:
        return [False, True]
    if domain["lists"]:
        one, (least, most) = _values(domain["lists"]), domain["size"] or (0, 10)
        return [list(each) for length in range(least, most + 1) for each in itertools.product(one, repeat=length)]
    return list(domain["values"])
