"""A path as far as one object is concerned: events of a rule of order that are about the same optimizer and scaler."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from gates.scan.automata.order import Order
from gates.scan.automata.words import Event
from gates.scan.rule import MARKS

MAX_OBJECTS = 4
ONE = r"[\w.]+(@[^#()\[\],]+)?"
PLAIN = re.compile(  # a variable, one of Lightning's lists, what stands under a written key
    rf"[\w.]+(@[^#()\[\]]+)?|[\w.]+\.(optimizers|lr_schedulers)\(\)\[\d+\]|Subscript\({ONE},('[^']*'|\d+),\)"
)
Word = Sequence[Event]


def projections(order: Order, word: Word) -> Iterator[Word]:
    """Yield the path once for each choice of the objects that several of its events must share."""
    shared = joined(order, word)
    if not shared:
        yield word
        return
    objects = {hole: _objects(order, word, hole) for hole in shared}
    holes = [hole for hole in shared if len(objects[hole]) > 1]
    if not holes:
        yield word
        return
    for choice in itertools.product(*(objects[hole][:MAX_OBJECTS] for hole in holes)):
        chosen = dict(zip(holes, choice, strict=True))
        if not _together(chosen, word):
            continue
        yield [event for event in word if not _is_foreign(event, chosen, order, word)]


def _together(chosen: Mapping[str, str], word: Word) -> bool:
    """Return whether objects that the path tells of together are chosen together: each scaler with its optimizers."""
    for one, other in itertools.permutations(chosen, 2):
        beside = {b[other] for b in map(dict, (e.bound for e in word)) if b.get(one) == chosen[one] and other in b}
        if beside and chosen[other] not in beside:
            return False
    return True


def joined(order: Order, word: Word) -> list[str]:
    """Return the metavariables that several events of an order must agree on."""
    counted: dict[str, set[str]] = {}
    told: set[str] = set()
    for event in word:
        if event.name in order.names:
            for hole, key in event.bound:
                told |= {key} if hole == order.of else set()
                counted.setdefault(hole, set()).add(event.name)
    twice = {name for name in order.positive if order.positive.count(name) > 1}
    apart = order.of if all(map(PLAIN.fullmatch, told)) else ""  # what a loop goes over may be left out by turns
    shared = (hole for hole, names in counted.items() if hole == apart or len(names) > 1 or names & twice)
    return sorted(filter(None, shared))


def _objects(order: Order, word: Word, hole: str) -> list[str]:
    found = [dict(event.bound).get(hole) for event in word if event.name in order.names]
    return list(dict.fromkeys(key for key in found if key is not None))


def _is_foreign(event: Event, chosen: Mapping[str, str], order: Order, word: Word) -> bool:
    """Return whether an event is about other objects than those chosen, so that it does not count here."""
    if event.name not in order.names:
        return False
    bound = dict(event.bound)
    for hole, key in chosen.items():
        other = bound.get(hole)
        if other is None or other == key:
            continue
        if event.name in order.positive:
            return True
        if PLAIN.fullmatch(other) and PLAIN.fullmatch(key) and _all_tell(hole, order, word):
            return True
    return False


def _all_tell(hole: str, order: Order, word: Word) -> bool:
    """Return whether the events that an order asks for all say which object they are about; of its own, some do."""
    asked = [event for event in word if event.name in order.positive and event.name not in MARKS]
    telling = [event for event in asked if hole in dict(event.bound)]
    return bool(telling) if hole == order.of else len(telling) == len(asked)
