"""The form of a code rule as its file states it; patterns and regular expressions are compiled as it is read."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field, PlainValidator, model_validator

from gates.model import Model, Severity
from gates.scan.pattern import Pattern

Text = Annotated[str, Field(min_length=1, pattern=r"^[^\x00]*[^\s\x00][^\x00]*$")]
Id = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_./-]*$")]
AROUND = frozenset({"loop", "function", "class", "async", "module", "handler"})


def _listed(value: object) -> tuple[object, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _shaped(value: object) -> object:
    """Take a pattern for a shape that consists of it."""
    return tuple({"pattern": item} if isinstance(item, str) else item for item in _listed(value))


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
Shapes: TypeAlias = Annotated[tuple["Shape", ...], BeforeValidator(_shaped)]


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


class EventForm(Model):
    """The code that an event is: a call, or a block that begins or ends.

    Under a condition whose text fits `unless`, the code is no event; with `when`, under such a condition alone.
    """

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


def _orders(value: object) -> object:
    return tuple({"order": item} if isinstance(item, str) else item for item in _listed(value))


Orders: TypeAlias = Annotated[tuple[OrderForm, ...], BeforeValidator(_orders)]


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

    model_config = ConfigDict(frozen=True, extra="forbid", title="gates code rule")

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
