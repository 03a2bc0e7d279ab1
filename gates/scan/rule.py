"""Code rules: the form that their files state them in, their orders compiled, and what they say of a place."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Literal, NamedTuple, Self, TypeAlias

from pydantic import BeforeValidator, Field, PlainValidator, model_validator

from gates.model import Location, Model, Severity
from gates.scan.order import MARKERS, Order, OrderError
from gates.scan.pattern import AROUND, Pattern
from gates.task.types import Text
from gates.task.yaml_source import Key
from gates.words import did_you_mean

Id = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_./-]*$")]


def _listed(value: object) -> tuple[object, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _short(key: str) -> BeforeValidator:
    """Let a text stand for a mapping that has nothing but it under a key."""
    return BeforeValidator(lambda value: tuple({key: v} if isinstance(v, str) else v for v in _listed(value)))


def _parsed(value: object) -> Pattern:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"expected a pattern, found {value!r:.80}")
    return Pattern.parse(value)


def _part(value: object) -> Pattern | str:
    return value if isinstance(value, str) and value in AROUND else _parsed(value)


def _compiled(value: object) -> re.Pattern[str]:
    try:
        return re.compile(str(value))
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"not a regular expression: {error}") from error


Texts = Annotated[tuple[Text, ...], BeforeValidator(_listed)]
Regex = Annotated[re.Pattern[str], PlainValidator(_compiled)]
Patterns = Annotated[tuple[Annotated[Pattern, PlainValidator(_parsed)], ...], BeforeValidator(_listed)]
Part = Annotated[Pattern | str, PlainValidator(_part)]  # a pattern, or a kind of surroundings
Shapes: TypeAlias = Annotated[tuple["Shape", ...], _short("pattern")]


class Constraint(Model):
    """What an expression that a metavariable stands for must be."""

    type: Texts = ()
    regex: Regex | None = None


Where: TypeAlias = Mapping[Annotated[str, Field(pattern=r"^\$[A-Z_][A-Z0-9_]*$")], Constraint]
Needs: TypeAlias = Mapping[str, Constraint]  # by the name of the metavariable, without its sign


class Shape(Model):
    """A piece of code: patterns of which one must fit, and what must or must not be around it and in it."""

    pattern: Part | None = None
    any: Annotated[tuple[Part, ...], BeforeValidator(_listed)] = ()
    inside: Shapes = ()
    not_inside: Shapes = ()
    not_: Annotated[Shapes, Field(alias="not")] = ()
    has: Shapes = ()
    not_has: Shapes = ()
    where: Where = Field(default_factory=dict)

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        """Return the patterns, of which one must fit."""
        return tuple(part for part in (self.pattern, *self.any) if isinstance(part, Pattern))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Return the kinds of surroundings, such as `loop`."""
        return tuple(part for part in (self.pattern, *self.any) if isinstance(part, str))

    @cached_property
    def needs(self) -> Needs:
        """Return what the metavariables must be."""
        return {name.removeprefix("$"): need for name, need in self.where.items()}

    def may_fit(self, fits: Callable[[Pattern], bool]) -> bool:
        """Return whether something in a file may fit, by the patterns that code there may fit."""
        if self.patterns and not self.words and not any(map(fits, self.patterns)):
            return False
        return all(not some or any(each.may_fit(fits) for each in some) for some in (self.inside, self.has))


class EventForm(Model):
    """The code that an event is: never under a condition that fits `unless`, with `when` only under one that does."""

    any: Patterns = ()
    enter: Patterns = ()
    leave: Patterns = ()
    unless: Regex | None = None
    when: Regex | None = None

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """Return all patterns of which code must fit one."""
        return (*self.any, *self.enter, *self.leave)

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.patterns:
            raise ValueError("an event has no pattern")
        return self


def _event(value: object) -> object:
    several = value if isinstance(value, list | tuple) and any(isinstance(item, dict) for item in value) else (value,)
    return tuple({"any": item} if isinstance(item, str | list | tuple) else item for item in several)


Name = Annotated[str, Field(pattern=r"^[a-z]\w*$")]
Event: TypeAlias = Annotated[tuple[EventForm, ...], BeforeValidator(_event)]  # one of these, each with its conditions


class Vocabulary(Model):
    """Events that several rules speak of, and what their metavariables are."""

    where: Where = Field(default_factory=dict)
    events: Mapping[Name, Event]


class OrderForm(Model):
    """An order that a rule forbids or demands, and what it says of it.

    With `again`, what is demanded is demanded only of an event that happens once more in another turn of a loop.
    What is forbidden is not held against a function of which some path has the order `unless`. With `of`, a
    metavariable, a path is looked at once for each of its objects, though but one event of the order binds it.
    """

    order: Text
    of: Annotated[str, Field(pattern=r"^(\$[A-Z]+)?$")] = ""
    says: str = ""
    again: bool = False
    unless: Text | None = None
    at: Annotated[str, Field(pattern=r"^[a-z_| ]+$")] = "last"


Orders: TypeAlias = Annotated[tuple[OrderForm, ...], _short("order")]


def _events(value: object) -> object:
    if isinstance(value, str):
        return {"use": value}
    if isinstance(value, dict) and value.keys() - {"use", "own"}:
        return {"use": value.get("use"), "own": {k: v for k, v in value.items() if k != "use"}}
    return value


class EventsForm(Model):
    """Where a rule's events come from: a shared vocabulary, and its own, which come first."""

    use: Text | None = None
    own: Mapping[Name, Event] = Field(default_factory=dict)


class RuleForm(Shape):
    """A code rule: its words, one of its three kinds, and the examples that are its tests."""

    id: Id
    tags: tuple[Id, ...] = ()
    severity: Literal[Severity.CRITICAL, Severity.HIGH, Severity.MEDIUM, Severity.LOW]
    problem: Text
    impact: Text
    fix: Text
    kept: Shapes = ()
    events: Annotated[EventsForm | None, BeforeValidator(_events)] = None
    never: Orders = ()
    always: Orders = ()
    at: Annotated[str, Field(pattern=r"^[a-z_| ]+$")] | None = None
    required: Annotated[Texts, Field(alias="needs")] = ()
    members: bool = False
    runtime: bool = False
    good: Texts
    bad: Texts

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if sum([bool(self.patterns), self.events is not None, self.members]) != 1:
            raise ValueError("expected exactly one of 'pattern' (or 'any'), 'events' and 'members'")
        if (self.events is not None) != bool(self.never or self.always):
            raise ValueError("'events' goes with 'never' or 'always'")
        if self.runtime and not self.events:
            raise ValueError("'runtime' goes with 'events'")
        return self


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


class OrderRule(NamedTuple):
    """A compiled order, what it says where it is broken, and where that is."""

    order: Order
    says: str
    at: frozenset[str]
    again: bool = False
    unless: Order | None = None


@dataclass(frozen=True)
class Rule:
    """A code rule that can be applied; `places` are those of values in its file, `own` says that it is a project's."""

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

    def is_about(self, possible: frozenset[str]) -> bool:
        """Return whether a file with some events has what the rule needs, and one that its orders ask for."""
        wanted = {name for order in (*self.never, *self.always) for name in order.order.positive} - MARKS
        return self._has_what_it_needs(possible) and not wanted.isdisjoint(possible)

    def may_speak(self, possible: frozenset[str]) -> bool:
        """Return whether a function whose paths were not all walked may have one that the rule speaks of."""
        if not self._has_what_it_needs(possible):
            return False
        if any(order.order.can_match(possible) for order in self.never):
            return True
        return any(possible & self.places_of(order) for order in self.always)

    def places_of(self, order: OrderRule) -> frozenset[str]:
        """Return the events at one of which something must always be so."""
        return (order.at - ENDS or frozenset().union(*self.required) or order.order.names) - MARKS

    def _has_what_it_needs(self, possible: frozenset[str]) -> bool:
        return all(possible & alternatives or alternatives & MARKS for alternatives in self.required)

    def speaks_of(self, happened: Collection[str]) -> bool:
        """Return whether on a path with some events there is what the rule needs, and one of its own."""
        return not self.names.isdisjoint(happened) and all(not each.isdisjoint(happened) for each in self.required)

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the events of its orders."""
        return frozenset(name for order in (*self.never, *self.always) for name in order.order.names) - MARKS

    @property
    def is_local(self) -> bool:
        """Return whether what it speaks of is written so in the file itself, by no name that another file gives it."""
        shapes = (self.form, *self.form.kept)
        return not self.events and all(pattern.root is None for shape in shapes for pattern in shape.patterns)

    @property
    def is_certain(self) -> bool:
        """Return whether what it finds is so: an order on a path walked whole, a pattern without surroundings."""
        return bool(self.never or (self.form.patterns and not (self.form.inside or self.form.has or self.form.not_has)))


def compiled(form: RuleForm, source: str, vocabulary: Callable[[str], Vocabulary]) -> Rule:
    """Compile the orders of a rule; raise `RuleError` with the key of what cannot be."""
    if form.events is None:
        return Rule(form, source)
    shared = vocabulary(form.events.use) if form.events.use else Vocabulary(events={})
    known = {**form.events.own, **{n: each for n, each in shared.events.items() if n not in form.events.own}}
    names = list(known)
    events = tuple(EventKind(name, code) for name, each in known.items() for code in each)
    holes = {hole for event in events for pattern in event.code.patterns for hole in pattern.holes}
    never, always = (tuple(_order_rules(form, kind, names, holes)) for kind in ("never", "always"))
    required = tuple(_alternatives(text, [*names, *MARKERS], ("needs", i)) for i, text in enumerate(form.required))
    needs = {name.removeprefix("$"): need for name, need in {**shared.where, **form.where}.items()}
    return Rule(form, source, events=events, needs=needs, never=never, always=always, required=required)


def _order_rules(form: RuleForm, kind: str, names: Sequence[str], holes: set[str]) -> Iterable[OrderRule]:
    for i, item in enumerate(form.never if kind == "never" else form.always):
        if (of := item.of.removeprefix("$")) and of not in holes:
            raise RuleError((kind, i), f"no event binds {item.of!r}{did_you_mean(of, holes)}")
        try:
            order = Order.parse(item.order, names, of)
            unless = Order.parse(item.unless, names) if item.unless else None
        except OrderError as error:
            raise RuleError((kind, i), str(error)) from error
        place = item.at if item.at != "last" else form.at or "last"
        yield OrderRule(order, item.says, _alternatives(place, [*sorted(ENDS), *names], (kind, i)), item.again, unless)


def _alternatives(text: str, names: Sequence[str], key: Key) -> frozenset[str]:
    alternatives = frozenset(word.strip() for word in text.split("|"))
    for word in sorted(alternatives - set(names)):
        raise RuleError(key, f"there is no event {word!r}{did_you_mean(word, names)}")
    return alternatives


@dataclass(frozen=True, order=True)
class Site:
    """A place that a rule speaks of, whether it is kept there or `undecided`, and the `trace` of events to it."""

    path: str
    line: int
    last_line: int
    ok: bool
    message: str
    trace: tuple[str, ...] = field(default=())
    undecided: bool = False

    @property
    def location(self) -> Location:
        """Return its lines."""
        return Location(path=self.path, line=self.line, last_line=self.last_line)
