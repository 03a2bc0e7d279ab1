"""Rules of order judged over event traces: some path that breaks one, or no path that has what there must be."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gates.scan.order import Order
from gates.scan.paths.state import Event, Frame
from gates.scan.paths.traces import Trace
from gates.scan.rule import ENDS, MARKS, OrderRule, Rule, Site

MAX_OBJECTS = 4
ONE = r"[\w.]+(@[^#()\[\],]+)?"
PLAIN = re.compile(  # a variable, one of Lightning's lists, what stands under a written key
    rf"[\w.]+(@[^#()\[\]]+)?|[\w.]+\.(optimizers|lr_schedulers)\(\)\[\d+\]|Subscript\({ONE},('[^']*'|\d+),\)"
)
Word = Sequence[Event]
MAX_CALLS = 2
MADE = re.compile(r"\w+@[^:#]+:\d+#")  # by a constructor or a function in a turn of a loop
TURN = re.compile(r"#[\w/.]*")
INNOCENT = {"clip", "zero_grad", "scheduler"}  # what a helper may do that knows of no scaler
BLOCKS = {"autocast_enter"}


def projections(order: Order, word: Word) -> Iterator[Word]:
    """Yield the path once for each choice of the objects that several of its events must share."""
    bound, shared = [dict(event.bound) for event in word if event.name in order.names], joined(order, word)
    objects = {hole: [*dict.fromkeys(b[hole] for b in bound if b.get(hole) is not None)] for hole in shared}
    if not (holes := [hole for hole, keys in objects.items() if len(keys) > 1]):
        yield word
        return
    for choice in itertools.product(*(objects[hole][:MAX_OBJECTS] for hole in holes)):
        chosen = dict(zip(holes, choice, strict=True))
        yield [event for event in word if not _is_foreign(event, chosen, order, word)]


def joined(order: Order, word: Word) -> list[str]:
    """Return the metavariables that several events of an order must agree on."""
    bound = [(event.name, hole, key) for event in word if event.name in order.names for hole, key in event.bound]
    told = {key for _, hole, key in bound if hole == order.of}
    counted: dict[str, set[str]] = {}
    for name, hole, _ in bound:
        counted.setdefault(hole, set()).add(name)
    twice = {name for name in order.positive if order.positive.count(name) > 1}
    apart = order.of if all(map(PLAIN.fullmatch, told)) else ""  # what a loop goes over may be left out by turns
    shared = (hole for hole, names in counted.items() if hole == apart or len(names) > 1 or names & twice)
    return sorted(filter(None, shared))


def _is_foreign(event: Event, chosen: Mapping[str, str], order: Order, word: Word) -> bool:
    """Return whether an event is about other objects than those chosen, so that it does not count here."""
    if event.name not in order.names:
        return False
    bound = dict(event.bound)
    others = [(hole, key, bound[hole]) for hole, key in chosen.items() if bound.get(hole, key) != key]
    if event.name in order.positive:
        return bool(others)
    return any(all(map(PLAIN.fullmatch, keys)) and _all_tell(hole, order, word) for hole, *keys in others)


def _all_tell(hole: str, order: Order, word: Word) -> bool:
    """Return whether the events that an order asks for all say which object they are about; of its own, some do."""
    asked = [event for event in word if event.name in order.positive and event.name not in MARKS]
    telling = [event for event in asked if hole in dict(event.bound)]
    return bool(telling) if hole == order.of else len(telling) == len(asked)


def judge(rule: Rule, found: Iterable[Trace]) -> Iterator[Site]:
    """Yield the places where a rule of order is broken or kept, each once."""
    broken, kept = dict[tuple[str, int, str], Site](), list[Site]()
    for trace in found:
        words = [word for word in trace.words if rule.speaks_of({event.name for event in word})]
        bad = [*_never(rule, words, trace), *_always(rule, trace, words)]
        for site in bad:
            key = (site.path, site.line, site.message)
            if key not in broken or len(site.trace) < len(broken[key].trace):
                broken[key] = site
        if trace.cut and trace.told and not bad and rule.may_speak(trace.possible):
            why = f"{trace.name} could not be walked whole"
            yield Site(trace.path, trace.line, trace.last_line, ok=False, message=why, undecided=True)
        elif words and not bad and not trace.cut:
            kept.append(_kept(rule, trace, words))
    yield from broken.values()
    yield from kept


def _kept(rule: Rule, trace: Trace, words: Sequence[Word]) -> Site:
    seen = [event for event in max(words, key=len) if event.name in rule.names]
    here = [event for event in seen if event.path == trace.path] or seen
    first, last = min(event.line for event in here), max(event.last_line for event in here)
    text = " -> ".join(dict.fromkeys(event.name for event in seen))  # each run of the same place once
    told = tuple(event.where for event in seen)
    return Site(here[0].path, first, last, ok=True, message=f"{trace.name.rpartition('.')[2]}: {text}", trace=told)


def _never(rule: Rule, words: Sequence[Word], trace: Trace) -> Iterator[Site]:
    for order in rule.never:
        if order.unless is not None and any(_search(order.unless, word) for word in words):
            continue
        for projected in (each for word in words for each in projections(order.order, word)):
            if span := _search(order.order, projected):
                yield _broken(rule, order, projected[span[0] : span[1]], trace)


def _search(order: Order, word: Word) -> tuple[int, int] | None:
    return order.search([event.name for event in word])


def _broken(rule: Rule, order: OrderRule, events: Word, found: Trace) -> Site:
    """Return the place of a broken order: of the event that is to blame, or of what runs it."""
    real = [event for event in events if event.name not in MARKS] or list(events)
    last = real[0] if "first" in order.at else real[-1]
    at = last if order.at & ENDS else next((event for event in real if event.name in order.at), last)
    outer = None if "itself" in order.at else _helper_call(at, real, found) or _in_block(at, real, found)
    place, trace = outer or at, tuple(_told(event, found) for event in real)
    return Site(place.path, place.line, place.last_line, ok=False, message=order.says or rule.form.problem, trace=trace)


def _told(event: Event, found: Trace) -> str:
    """Return an event with its place, and the calls that lead to it, the innermost first."""
    by = [f"{frame.path}:{frame.line}" for frame in reversed(found.calls.get(event, ()))]
    return f"{event.where} (from {', '.join(by[:MAX_CALLS])})" if by else event.where


def _always(rule: Rule, trace: Trace, words: Sequence[Word]) -> Iterator[Site]:
    """Yield a place for each object of which no path has what there must be."""
    own = {event.name for word in words for event in word}
    for order in rule.always:
        if (set(order.order.positive) - MARKS - own) & trace.beside:
            continue  # another method of the class, which whoever uses it calls in turn
        for at in sorted({e for word in words for e in word if e.name in rule.places_of(order)}):
            about = [word for word in words if at in word]
            if order.again and not any(_again(word, at) or _kept_open(word, trace, at) for word in about):
                continue
            if any(_has(order.order, word, at) for word in about):
                continue
            says = order.says or rule.form.problem
            seen = tuple(_told(event, trace) for event in about[0] if event.name not in MARKS)
            yield Site(at.path, at.line, at.last_line, ok=False, message=says, trace=seen)
            break


def _again(word: Word, at: Event) -> bool:
    """Return whether an event happens once more, about the same object, in another turn of a loop."""
    seen = turned = False
    for event in word:
        if event.name == "turn":
            turned = seen
        elif event[:1] == at[:1] and event[2:] == at[2:] and _stable(event) == _stable(at):
            if turned:
                return True
            seen = True
    return False


def _kept_open(word: Word, trace: Trace, at: Event) -> bool:
    """Return whether a method, or a function that an engine is handed, does a whole step that each call does again."""
    own = any(hole == "O" and key.startswith("self.") for hole, key in at.bound)
    backward = any(event.name in {"backward", "scaled_backward"} for event in word)
    whole = "zero_grad" not in trace.anywhere and not any(event.name == "loop" for event in word)
    return whole and backward and (trace.handed or own)


def _stable(event: Event) -> list[str]:
    """Return the objects of an event without what tells turns apart, but for an optimizer that is made in a turn."""
    return [key if hole == "O" and MADE.match(key) else TURN.sub("", key) for hole, key in event.bound]


def _has(order: Order, word: Word, at: Event) -> bool:
    """Return whether a path has the order, for the object of one of its events or for one that is not told apart."""
    shared = {*joined(order, word)}
    told = [key for event in word for hole, key in event.bound if event.name in order.names and hole in shared]
    found = [p for p in projections(order, word) if at in p] if all(map(PLAIN.fullmatch, told)) else []
    return any(_search(order, projected) for projected in (found or [word]))


def _helper_call(here: Event, events: Word, found: Trace) -> Frame | None:
    """Return the call of a helper that has this event and no other kind: where it is called is the fault."""
    frames = found.calls.get(here, ()) if here.name in INNOCENT else ()
    others = [found.calls.get(event, ()) for event in events if event != here]
    shared = max((_shared(frames, other) for other in others), default=len(frames))
    for depth in range(shared, len(frames)):
        inside = {event.name for event, calls in found.calls.items() if calls[: depth + 1] == frames[: depth + 1]}
        if inside <= {here.name}:
            return frames[depth] if all(frame.is_plain for frame in frames[depth:]) else None
    return None


def _in_block(here: Event, events: Word, found: Trace) -> Frame | None:
    """Return the call that stands in a block and runs what should not be in it: whoever runs that knows of no block."""
    begun, frames = events[0], found.calls.get(here, ())
    if begun.name not in BLOCKS or begun not in found.calls:
        return None
    shared = _shared(frames, found.calls[begun])
    return frames[shared] if shared == len(found.calls[begun]) < len(frames) else None


def _shared(one: Sequence[Frame], other: Sequence[Frame]) -> int:
    """Return how many calls two events happen inside of both."""
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
