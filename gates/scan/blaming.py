"""Whose fault a broken order is: the event's own, or that of a helper's caller."""

import itertools
from collections.abc import Sequence

from gates.scan.automata.words import Event, Frame
from gates.scan.paths.traces import Trace

INNOCENT = {"clip", "zero_grad", "scheduler"}  # what a helper may do that knows of no scaler
BEFORE = {  # what must come before something
    "clip": {"unscale", "unscale_once", "unscale_by_hand"},
    "update": {"step"},
    "scheduler": {"step", "plain_step"},
}
BLOCKS = {"autocast_enter"}
ENDING = ("step", "backward")
Word = Sequence[Event]


def blamed(here: Event, events: Word, rest: Word, found: Trace) -> Frame | None:
    """Return the place to blame for an event of a broken order, before the rest of a path; none for the event's own."""
    by_helper = _helper_call(here, events, found) or _again_in_helper(here, events, found)
    follows = [*events[list(events).index(here) + 1 :], *rest] if here in events else rest
    return by_helper or _too_early(here, follows, found) or _in_block(here, events, found)


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


def _again_in_helper(here: Event, events: Word, found: Trace) -> Frame | None:
    """Return the call of a helper of several that does once more what the code around that call has done already."""
    first, frames = events[0], found.calls.get(here, ())
    around = found.calls.get(first, ())
    if first is here or first.name != here.name or _shared(frames, around) < len(around) or len(frames) <= len(around):
        return None
    call = frames[len(around)]
    same = (by for event, by in found.calls.items() if (event.name, *event[2:]) == (here.name, *here[2:]))
    return call if any(call not in by for by in same) else None  # it is called elsewhere, too


def _too_early(here: Event, rest: Word, found: Trace) -> Frame | None:
    """Return what acts before another that should have come first: the call of a helper."""
    frames, wanted = found.calls.get(here, ()), BEFORE.get(here.name, set())
    later = next((event for event in rest if event.name in wanted or event.name.endswith(ENDING)), None)
    later = later if later is not None and later.name in wanted else None
    others = found.calls.get(later, ()) if later is not None else ()
    pairs = (pair for pair in zip(frames, others, strict=False) if pair[0] != pair[1])
    one, other = next(pairs, (None, None))
    if one is None or other is None or one[:2] == other[:2]:
        return None
    depth = frames.index(one)
    inside = {event.name for event, calls in found.calls.items() if calls[: depth + 1] == frames[: depth + 1]}
    alone = inside == {here.name} and one.path == other.path
    return one if alone and all(frame.direct for frame in frames[depth:]) else None


def _in_block(here: Event, events: Word, found: Trace) -> Frame | None:
    """Return the call that stands in a block and runs what should not be in it: whoever runs that knows of no block."""
    begun, frames = events[0], found.calls.get(here, ())
    if begun.name not in BLOCKS or begun not in found.calls:
        return None
    shared = _shared(frames, found.calls[begun])
    return frames[shared] if shared == len(found.calls[begun]) < len(frames) else None


def _shared(one: Sequence[Frame], other: Sequence[Frame]) -> int:
    """Return how many calls two events happen inside of both."""
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return sum(1 for _ in same)
