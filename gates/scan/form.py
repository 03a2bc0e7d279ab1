"""The form of a code rule as its file states it."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from gates.model import Model, Severity

Text = Annotated[str, Field(min_length=1, pattern=r"^[^\x00]*[^\s\x00][^\x00]*$")]
Id = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_./-]*$")]


def _listed(value: object) -> object:
    return value if isinstance(value, (list, tuple)) else (value,)


def _shaped(value: object) -> object:
    """Take a pattern for a shape that consists of it."""
    return tuple({"pattern": item} if isinstance(item, str) else item for item in _sequence(value))


def _sequence(value: object) -> tuple[object, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


Patterns = Annotated[tuple[Text, ...], BeforeValidator(_listed)]
Shapes: TypeAlias = Annotated[tuple["Shape", ...], BeforeValidator(_shaped)]


class Constraint(Model):
    """What an expression that a metavariable stands for must be."""

    type: Patterns = ()
    equals: Patterns = ()
    regex: Text | None = None
    is_: Annotated[Patterns, Field(alias="is")] = ()
    from_: Annotated[Patterns, Field(alias="from")] = ()
    not_: Annotated["Constraint | None", Field(alias="not")] = None


Where: TypeAlias = Mapping[Annotated[str, Field(pattern=r"^\$[A-Z_][A-Z0-9_]*$")], Constraint]


class Shape(Model):
    """A piece of code: patterns of which one must fit, and what must or must not be around it and in it."""

    pattern: Text | None = None
    any: Patterns = ()
    inside: Shapes = ()
    not_inside: Shapes = ()
    not_: Annotated[Shapes, Field(alias="not")] = ()
    has: Shapes = ()
    not_has: Shapes = ()
    where: Where = Field(default_factory=dict)

    @property
    def patterns(self) -> tuple[str, ...]:
        """Return the alternatives."""
        return (*((self.pattern,) if self.pattern else ()), *self.any)


class EventForm(Model):
    """The code that an event is: a call, or a block that begins or ends.

    Under a condition whose text fits `unless`, the code is no event; with `when`, under such a condition alone.
    """

    any: Patterns = ()
    enter: Patterns = ()
    leave: Patterns = ()
    unless: Text | None = None
    when: Text | None = None


def _event(value: object) -> object:
    several = value if isinstance(value, list | tuple) and any(isinstance(item, dict) for item in value) else (value,)
    return tuple({"any": item} if isinstance(item, str | list | tuple) else item for item in several)


Event: TypeAlias = Annotated[tuple[EventForm, ...], BeforeValidator(_event)]  # one of these, each with its conditions


class Vocabulary(Model):
    """Events that several rules speak of, and what their metavariables are."""

    where: Where = Field(default_factory=dict)
    events: Mapping[str, Event]


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
    return tuple({"order": item} if isinstance(item, str) else item for item in _sequence(value))


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
    own: Mapping[str, Event] = Field(default_factory=dict)


class Require(Model):
    """Code that must be there where other code is."""

    pattern: Text | None = None
    any: Patterns = ()
    when: Shapes
    scope: Literal["function", "class", "module", "project"] = "module"

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not (self.pattern or self.any):
            raise ValueError("expected 'pattern' or 'any': the code that must be there")
        return self

    @property
    def patterns(self) -> tuple[str, ...]:
        """Return the alternatives."""
        return (*((self.pattern,) if self.pattern else ()), *self.any)


class RuleForm(Shape):
    """A code rule: its words, one of its four kinds, and the examples that are its tests."""

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
    needs: Patterns = ()
    scope: Literal["iteration", "function", "module"] = "function"
    require: Require | None = None
    members: bool = False
    runtime: bool = False
    good: Patterns
    bad: Patterns

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [bool(self.patterns), self.events is not None, self.require is not None, self.members]
        if sum(kinds) != 1:
            raise ValueError("expected exactly one of 'pattern' (or 'any'), 'events', 'require' and 'members'")
        if (self.events is not None) != bool(self.never or self.always):
            raise ValueError("'events' goes with 'never' or 'always'")
        if self.runtime and not self.events:
            raise ValueError("'runtime' goes with 'events'")
        return self
