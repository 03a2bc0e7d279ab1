"""Rules of order judged over event traces: some path that breaks one, or no path that has what there must be."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gates.scan.automata.order import Order
from gates.scan.automata.words import Event, Frame
from gates.scan.blaming import blamed
from gates.scan.paths.optimizers import FRESH, PARAMETERS
from gates.scan.paths.traces import Trace
from gates.scan.rule import OrderRule, Rule
from gates.scan.site import Site

MAX_OBJECTS = 4
MAX_CALLS = 2
ENDS = {"first", "last", "itself"}  # the last event, and not the call of a helper that has it
MARKS = {"start", "end", "loop", "turn", "done"}
TURN = re.compile(r"#[\w/.]*")
TABLE = re.compile(r"Subscript\(\w*(Dict|List)\w*\(.*torch\.optim\.")  # of optimizers that are written out together
ASKED = re.compile(r"\w+\.optimizers\(")  # of Lightning's, which runs a training step with each batch
ONE = r"[\w.]+(@[^#()\[\],]+)?"
PLAIN = re.compile(  # a variable, one of Lightning's lists, what stands under a written key
    rf"[\w.]+(@[^#()\[\]]+)?|[\w.]+\.(optimizers|lr_schedulers)\(\)\[\d+\]|Subscript\({ONE},('[^']*'|\d+),\)"
)
Word = Sequence[Event]


def judge(rule: Rule, found: Iterable[Trace]) -> Iterator[Site]:
    """Yield the places where a rule of order is broken or kept, each once."""
    broken: dict[tuple[str, int, str], Site] = {}
    kept: list[Site] = []
    found = list(found)
    elsewhere = _elsewhere(found)
    for trace in found:
        words = [word for word in trace.words if _speaks(rule, word)]
        bad = [*_never(rule, words, trace), *_always(rule, trace, words, elsewhere, found)]
        for site in bad:
            key = (site.path, site.line, site.message)
            if key not in broken or len(site.trace) < len(broken[key].trace):
                broken[key] = site
        if trace.cut and not bad and may_speak(rule, trace.possible):
            yield Site(
                trace.path, trace.line, trace.last_line, ok=False, undecided=True,
                message=f"{trace.name} has more paths than were walked",
            )  # fmt: skip
        elif words and not bad:
            kept.append(_kept(rule, trace, words))
    yield from broken.values()
    yield from kept


def _speaks(rule: Rule, word: Word) -> bool:
    names = {event.name for event in word}
    if not all(names & alternatives for alternatives in rule.required):
        return False
    wanted = {name for order in (*rule.never, *rule.always) for name in order.order.names}
    return bool(names & (wanted - MARKS))


def may_speak(rule: Rule, possible: frozenset[str]) -> bool:
    """Return whether a function whose paths were not all walked may have one that the rule speaks of."""
    if not all(possible & alternatives or alternatives & MARKS for alternatives in rule.required):
        return False
    if any(order.order.can_match(possible) for order in rule.never):
        return True
    return any(possible & ((order.at - ENDS) or set(order.order.names) - MARKS) for order in rule.always)


def _kept(rule: Rule, trace: Trace, words: Sequence[Word]) -> Site:
    word = max(words, key=len)
    wanted = {name for order in (*rule.never, *rule.always) for name in order.order.names} - MARKS
    seen = [event for event in word if event.name in wanted]
    here = [event for event in seen if event.path == trace.path] or seen
    lines = [event.line for event in here]
    text = " -> ".join(_short(seen))
    return Site(
        here[0].path, min(lines), max(event.last_line for event in here), ok=True,
        message=f"{trace.name.rpartition('.')[2]}: {text}", trace=tuple(event.where for event in seen),
    )  # fmt: skip


def _short(events: Sequence[Event]) -> list[str]:
    """Return the names of events, each run of the same place once."""
    return list(dict.fromkeys(event.name for event in events))


def _never(rule: Rule, words: Sequence[Word], trace: Trace) -> Iterator[Site]:
    for order in rule.never:
        if order.unless is not None and any(order.unless.search([event.name for event in word]) for word in words):
            continue
        for word in words:
            for projected in _projections(order.order, word):
                span = order.order.find(tuple(event.name for event in projected))
                if span is not None:
                    yield _broken(rule, order, projected[span[0] : span[1]], projected[span[1] :], trace)


def _broken(rule: Rule, order: OrderRule, events: Word, rest: Word, found: Trace) -> Site:
    real = [event for event in events if event.name not in MARKS] or list(events)
    here = real[0] if "first" in order.at else real[-1]
    if not order.at & ENDS:
        here = next((event for event in real if event.name in order.at), here)
    trace = tuple(_told(event, found) for event in real)
    says = order.says or rule.form.problem
    place = (None if "itself" in order.at else blamed(here, real, rest, found)) or here
    return Site(place.path, place.line, place.last_line, ok=False, message=says, trace=trace)


def _told(event: Event, found: Trace) -> str:
    """Return an event with its place, and the calls that lead to it, the innermost first."""
    by = [f"{frame.path}:{frame.line}" for frame in reversed(found.calls.get(event, ()))]
    return f"{event.where} (from {', '.join(by[:MAX_CALLS])})" if by else event.where


def _elsewhere(found: Iterable[Trace]) -> dict[str, dict[str, set[str]]]:
    """Return for each class which events its methods have, by method: what one leaves out another may do."""
    result: dict[str, dict[str, set[str]]] = {}
    for trace in found:
        if trace.owner is not None:
            names = {event.name for word in trace.words for event in word} - MARKS
            for owner in {trace.owner, trace.name.rpartition(".")[0]}:  # a class may inherit the method
                result.setdefault(owner, {})[trace.name] = names
    return result


def _to_blame(at: Event, order: Order, trace: Trace, found: Iterable[Trace]) -> Event | Frame:
    """Return the call of what has an event, where the same code is called as it should be elsewhere; or the event."""
    frames = trace.calls.get(at, ())
    sound: set[Frame] = set()
    for other in found if frames else ():
        same = {e for w in other.words for e in w if (e.name, e.path, e.line) == (at.name, at.path, at.line)}
        for event in same if other is not trace else ():
            if any(_has(order, word, event) for word in other.words if event in word):
                sound.update(other.calls.get(event, ()))
    return next((frame for frame in reversed(frames) if frame not in sound), at) if sound else at


def _always(
    rule: Rule,
    trace: Trace,
    words: Sequence[Word],
    elsewhere: Mapping[str, Mapping[str, set[str]]],
    found: Iterable[Trace],
) -> Iterator[Site]:
    """Yield a place for each object of which no path has what there must be."""
    own = {event.name for word in words for event in word}
    methods = elsewhere.get(trace.owner or "", {})
    other = set().union(*(names for name, names in methods.items() if name != trace.name)) if methods else set()
    for order in rule.always:
        if (set(order.order.positive) - MARKS - own) & other:
            continue  # another method of the class, which whoever uses it calls in turn
        for at in sorted({e for word in words for e in word if _is_at(e, order, rule)}):
            about = [word for word in words if at in word]
            if order.again and not any(_again(word, at) or _kept_open(word, at, trace) for word in about):
                continue
            if any(_has(order.order, word, at) for word in about):
                continue
            if not trace.cut:
                says = order.says or rule.form.problem
                place = _to_blame(at, order.order, trace, found)
                yield Site(place.path, place.line, place.last_line, ok=False, message=says, trace=tuple(
                    _told(event, trace) for event in about[0] if event.name not in MARKS
                ))  # fmt: skip
            break


def _is_at(event: Event, order: OrderRule, rule: Rule) -> bool:
    wanted = order.at - ENDS or set().union(*rule.required) or set(order.order.names)
    return event.name in wanted - MARKS


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


def _kept_open(word: Word, at: Event, trace: Trace) -> bool:
    """Return whether a method does a whole step with what its instance keeps, so that each call does it again."""
    made = [key.rpartition("@")[2].split(":") for hole, key in at.bound if hole == "O" and "@" in key]
    lines = [int(where[1]) for where in made if where[0] == trace.path and len(where) > 1 and where[1].isdecimal()]
    outside = any(not trace.line <= line <= trace.last_line for line in lines)
    outside = outside or any(hole == "O" and (TABLE.match(key) or ASKED.match(key)) for hole, key in at.bound)
    whole = "zero_grad" not in trace.anywhere and not any(event.name == "loop" for event in word)
    return trace.owner is not None and outside and whole


def _stable(event: Event) -> list[str]:
    """Return the objects of an event, but for what tells those of one turn from those of another."""
    return [key if hole == FRESH else TURN.sub("", key) for hole, key in event.bound if hole != PARAMETERS]


def _has(order: Order, word: Word, at: Event) -> bool:
    """Return whether a path has the order, for the object of one of its events or for one that is not told apart."""
    joined = {*_joined(order, word)} - {PARAMETERS}
    told = [key for event in word for hole, key in event.bound if event.name in order.names and hole in joined]
    if any(not PLAIN.fullmatch(key) for key in told):
        return order.search([event.name for event in word]) is not None
    found = [p for p in _projections(order, word) if at in p and not _is_alone(at, order, p)]
    return any(order.search([event.name for event in projected]) is not None for projected in (found or [word]))


def _is_alone(at: Event, order: Order, word: Word) -> bool:
    """Return whether an event that knows of its optimizer by what it was made with is all that speaks of that one."""
    return at.name == "scheduler" and not any(e.name in order.positive and e.name not in MARKS for e in word)


def _projections(order: Order, word: Word) -> Iterator[Word]:
    """Yield the path once for each choice of the objects that several of its events must share."""
    joined = _joined(order, word)
    if not joined:
        yield word
        return
    objects = {hole: _objects(order, word, hole) for hole in joined}
    holes = [hole for hole in joined if len(objects[hole]) > 1]
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
        if PARAMETERS in (one, other):
            continue
        beside = {b[other] for b in map(dict, (e.bound for e in word)) if b.get(one) == chosen[one] and other in b}
        if beside and chosen[other] not in beside:
            return False
    return True


def _joined(order: Order, word: Word) -> list[str]:
    """Return the metavariables that several events of an order must agree on."""
    counted: dict[str, set[str]] = {}
    for event in word:
        if event.name in order.names:
            for hole, _ in event.bound:
                counted.setdefault(hole, set()).add(event.name)
    twice = {name for name in order.positive if order.positive.count(name) > 1}
    return sorted(hole for hole, names in counted.items() if len(hole) > 0 and (len(names) > 1 or names & twice))


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
        sure = PLAIN.fullmatch(other) and PLAIN.fullmatch(key) and (hole != PARAMETERS or _is_known(key, word))
        if sure and _all_tell(hole, order, word):
            return True
    return False


def _is_known(key: str, word: Word) -> bool:
    """Return whether some optimizer of the path is known to be for a module; the same one may have another name."""
    return any(bound.get(PARAMETERS) == key and "O" in bound for bound in (dict(event.bound) for event in word))


def _all_tell(hole: str, order: Order, word: Word) -> bool:
    """Return whether the events that an order asks for all say which object they are about."""
    asked = [event for event in word if event.name in order.positive and event.name not in MARKS]
    telling = [event for event in asked if hole in dict(event.bound)]
    return bool(telling) if hole == PARAMETERS else len(telling) == len(asked)
