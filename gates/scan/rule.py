"""A code rule made ready, its orders compiled, and what it says of a place."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gates.scan.form import EventForm, Needs, OrderForm, RuleForm, Vocabulary
from gates.scan.order import MARKERS, Order, OrderError
from gates.task.yaml_source import Key, did_you_mean

MARKS = frozenset(MARKERS)
ENDS = frozenset({"first", "last", "itself"})  # the last event, and not the call of a helper that has it


class RuleError(ValueError):
    """A part of a rule that cannot be compiled: where in the rule, and what is wrong."""

    def __init__(self, key: Key, message: str) -> None:
        super().__init__(message)
        self.key = key


class EventKind(NamedTuple):
    """An event, and the code that it is."""

    name: str
    code: EventForm


@dataclass(frozen=True)
class OrderRule:
    """A compiled order, what it says where it is broken, and where that is."""

    order: Order
    says: str
    at: frozenset[str]
    again: bool = False
    unless: Order | None = None


@dataclass(frozen=True)
class Rule:
    """A code rule that can be applied; `form` is what its file says, `source` the file.

    `places` tells by the keys of its values where they stand; a project's `own` may come to no end.
    """

    form: RuleForm
    source: str
    events: tuple[EventKind, ...] = ()
    needs: Needs = field(default_factory=dict)
    never: tuple[OrderRule, ...] = ()
    always: tuple[OrderRule, ...] = ()
    required: tuple[frozenset[str], ...] = ()
    own: bool = False
    places: Mapping[Key, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def id(self) -> str:
        """Return the rule's id."""
        return self.form.id

    def place(self, key: Key) -> str:
        """Return where in its file a value stands, as `file:line:col`, or else the file."""
        return self.places.get(key, self.source)

    def speaks(self, *, kept: bool) -> Callable[[frozenset[str]], bool]:
        """Return what tells whether code with some events matters: all that may keep the rule, or that may break it."""
        return self._bears_on if kept or self.always else self.may_speak

    def _bears_on(self, possible: frozenset[str]) -> bool:
        """Return whether code with some events may break the rule, keep it, or do what its class leaves out."""
        if self._has_what_it_needs(possible):
            orders = (*self.never, *self.always)
            return any(name in possible for order in orders for name in order.order.positive if name not in MARKS)
        return any(possible & (set(order.order.positive) - order.at - MARKS) for order in self.always)

    def may_speak(self, possible: frozenset[str]) -> bool:
        """Return whether code with some events may have a path that the rule speaks of."""
        if not self._has_what_it_needs(possible):
            return False
        if any(order.order.can_match(possible) for order in self.never):
            return True
        return any(possible & ((order.at - ENDS) or set(order.order.names) - MARKS) for order in self.always)

    def _has_what_it_needs(self, possible: frozenset[str]) -> bool:
        return all(possible & alternatives or alternatives & MARKS for alternatives in self.required)

    @property
    def is_certain(self) -> bool:
        """Return whether what it finds is so: an order on a path that was walked whole, or a pattern by itself.

        A pattern that goes by what lies around it, and whatever is missing, is only likely.
        """
        form = self.form
        return bool(self.never or (form.patterns and not (form.inside or form.has or form.not_has)))


def compiled(form: RuleForm, source: str, vocabulary: Callable[[str], Vocabulary]) -> Rule:
    """Compile the orders of a rule; raise `RuleError` with the key of what cannot be."""
    if form.events is None:
        return Rule(form, source)
    shared = vocabulary(form.events.use) if form.events.use else Vocabulary(events={})
    known = {**form.events.own, **{n: each for n, each in shared.events.items() if n not in form.events.own}}
    names = list(known)
    events = tuple(EventKind(name, code) for name, each in known.items() for code in each)
    holes = {hole for event in events for pattern in event.code.patterns for hole in pattern.holes}
    never, always = (tuple(_orders(form, kind, names, holes)) for kind in ("never", "always"))
    required = tuple(_alternatives(text, [*names, *MARKERS], ("needs", i)) for i, text in enumerate(form.required))
    needs = {name.removeprefix("$"): need for name, need in {**shared.where, **form.where}.items()}
    return Rule(form, source, events=events, needs=needs, never=never, always=always, required=required)


def _orders(form: RuleForm, kind: str, names: Sequence[str], holes: set[str]) -> Iterable[OrderRule]:
    items: Sequence[OrderForm] = getattr(form, kind)
    for i, item in enumerate(items):
        of = item.of.removeprefix("$")
        if of and of not in holes:
            raise RuleError((kind, i), f"no event binds {item.of!r}{did_you_mean(of, holes)}")
        try:
            order = Order.parse(item.order, names, of=of)
            unless = Order.parse(item.unless, names) if item.unless else None
        except OrderError as error:
            raise RuleError((kind, i), str(error)) from error
        place = item.at if item.at != "last" else form.at or "last"
        at = _alternatives(place, [*sorted(ENDS), *names], (kind, i))
        yield OrderRule(order, item.says, at, item.again, unless)


def _alternatives(text: str, names: Sequence[str], key: Key) -> frozenset[str]:
    alternatives = frozenset(word.strip() for word in text.split("|"))
    for word in sorted(alternatives - set(names)):
        raise RuleError(key, f"there is no event {word!r}{did_you_mean(word, names)}")
    return alternatives


@dataclass(frozen=True, order=True)
class Site:
    """A place that a rule speaks of, and whether it is as it should be; `trace` is the path of events to it.

    `undecided` says that reading could not decide: the place is neither kept nor broken.
    """

    path: str
    line: int
    last_line: int
    ok: bool
    message: str
    trace: tuple[str, ...] = field(default=())
    undecided: bool = False
