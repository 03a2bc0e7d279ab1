"""What a task says of its formulas: tables of results, edge cases, and properties that hold for all inputs."""

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, JsonValue, field_validator, model_validator

from gates.task.types import Located, Part, Seconds, Text

Callable = Annotated[str, Field(pattern=r"^[^\W\d][\w.]*:[^\W\d][\w.]*$")]
Distance = Annotated[float, Field(ge=0)]
Taken = Annotated[str, Field(pattern=r"^\w+(\.\w+)*$")]
ErrorName = Annotated[str, Field(pattern=r"^[^\W\d][\w.]*$")]
Argument = Annotated[int | str, Field(union_mode="left_to_right")]
Law = Literal[
    "increasing", "decreasing", "strictly-increasing", "strictly-decreasing", "symmetric", "antisymmetric", "even",
    "odd", "constant", "scale-invariant", "shift-invariant", "order-free", "deterministic", "homogeneous", "inverse",
    "idempotent", "equal", "bounded", "finite",
]  # fmt: skip

ANY_ERROR = frozenset({"Exception", "BaseException", "builtins.Exception", "builtins.BaseException"})


class Instance(Located):
    """What an object is made with, whose method is called: a fresh one for each call."""

    args: tuple[JsonValue, ...] = ()
    kwargs: dict[str, JsonValue] = Field(default_factory=dict)


class Case(Located):
    """One call of a function, and what must come of it.

    `expected` is compared within `tolerance` (absolute) or `relative`; `raises` and `warns` name an exception and a
    warning, whose message holds `says`; `finite` demands numbers that are neither NaN nor infinite.
    """

    args: tuple[JsonValue, ...] = ()
    kwargs: dict[str, JsonValue] = Field(default_factory=dict)
    expected: JsonValue = None
    tolerance: Distance | None = None
    relative: Distance | None = None
    raises: ErrorName | None = None
    warns: ErrorName | None = None
    says: Text | None = None
    finite: bool = False

    @property
    def returns(self) -> bool:
        """Return whether the case says what is returned."""
        return "expected" in self.model_fields_set

    @model_validator(mode="after")
    def _says_what_must_come_of_it(self) -> Self:
        if not (self.returns or self.raises or self.warns or self.finite):
            raise ValueError("expected what must come of the call: 'expected', 'raises', 'warns' or 'finite: true'")
        if self.raises and (self.returns or self.finite):
            raise ValueError("a call that raises returns nothing: expected either 'raises' or 'expected' and 'finite'")
        if self.raises in ANY_ERROR and not self.says:
            raise ValueError(
                f"'raises: {self.raises}' is true of every error, a mistake in the code with them: name the one that "
                "is meant, or what its message 'says'"
            )
        if self.says and not (self.raises or self.warns):
            raise ValueError("'says' goes with 'raises' or 'warns'")
        if (self.tolerance is not None or self.relative is not None) and not self.returns:
            raise ValueError("a tolerance goes with 'expected'")
        return self

    def takes_zero(self) -> bool:
        """Return whether 0 lies within the tolerance of all numbers that are expected."""
        numbers = [*_numbers(self.expected)]
        return bool(numbers) and all(
            abs(number) <= (self.tolerance or 0.0) or (number != 0 and (self.relative or 0.0) >= 1)
            for number in numbers
        )


class Called(Part):
    """A function of the project, and the criteria that it speaks for; a method is called on an `instance`.

    `take` names the part of what is returned that is looked at: attributes, keys and positions, joined by dots.
    """

    call: Callable
    take: Taken | None = None
    instance: Instance | None = None
    timeout_s: Seconds | None = None


class Calculation(Called):
    """A formula, as a table of inputs and results."""

    key: ClassVar[str] = "calculations"
    shown: ClassVar[str] = "shown by calculations, edge cases or properties"

    table: Annotated[tuple[Case, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _tells_numbers_from_zero(self) -> Self:
        _refuse_all_zero([case for case in self.table if case.returns])
        return self


class EdgeCase(Called, Case):
    """One call at the edge of what a function is for, by name."""

    key: ClassVar[str] = "edge_cases"
    shown: ClassVar[str] = "shown by calculations, edge cases or properties"

    name: Text

    @model_validator(mode="after")
    def _tells_a_number_from_zero(self) -> Self:
        _refuse_all_zero([self] if self.returns else [])
        return self


def _numbers(value: JsonValue) -> Iterator[float]:
    if isinstance(value, bool | int | float):
        yield 1.0 if isinstance(value, bool) else value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _numbers(each)
    elif value is not None:
        yield math.inf  # a text is no number that a tolerance is wide enough for


def _refuse_all_zero(cases: Sequence[Case]) -> None:
    """Raise `ValueError` where a function that gives 0 back would fit all results, and they are not all 0."""
    if cases and all(case.takes_zero() for case in cases) and any(any(_numbers(case.expected)) for case in cases):
        raise ValueError("the tolerance is as wide as what is expected: a function that always gives 0 would pass")


class Domain(Located):
    """The inputs of an argument; given by keyword where it has a `name`, made into what `as` gives, if there is one."""

    name: Annotated[str, Field(pattern=r"^[^\W\d]\w*$")] | None = None
    floats: tuple[float, float] | None = None
    integers: tuple[int, int] | None = None
    booleans: bool = False
    text: bool = False
    lists: "Domain | None" = None
    values: Annotated[tuple[JsonValue, ...], Field(min_length=1)] | None = None
    size: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(le=1000)]] | None = None
    as_: Callable | None = Field(default=None, alias="as")

    @model_validator(mode="after")
    def _is_one_that_holds_something(self) -> Self:
        kinds = (self.floats, self.integers, self.booleans, self.text, self.lists, self.values)
        if sum(bool(kind) for kind in kinds) != 1:
            raise ValueError("expected exactly one of 'floats', 'integers', 'booleans', 'text', 'lists' and 'values'")
        if self.size and not (self.lists or self.text):
            raise ValueError("'size' goes with 'lists' or 'text'")
        for name in ("floats", "integers", "size"):
            least, most = getattr(self, name) or (0, 0)
            if not least <= most:
                raise ValueError(f"'{name}' is empty: from {least:g} to {most:g}")
        return self


class Property(Called):
    """What holds for all inputs of a function; tried on `examples` of them."""

    key: ClassVar[str] = "properties"
    shown: ClassVar[str] = "shown by calculations, edge cases or properties"

    name: Text
    law: Law = Field(alias="property")
    in_: Argument | tuple[Argument, ...] = Field(default=(), alias="in")
    over: Annotated[tuple[Domain, ...], Field(min_length=1)]
    with_: Callable | None = Field(default=None, alias="with")
    bounds: tuple[float | None, float | None] | None = None
    degree: float = 1
    given: Callable | None = None
    rejects: tuple[ErrorName, ...] = ()
    tolerance: Distance | None = None
    relative: Distance | None = None
    examples: Annotated[int, Field(ge=1, le=10_000)] = 100

    @property
    def arguments(self) -> tuple[int | str, ...]:
        """Return the arguments that the property speaks of; where none is named the first, or the two to be swapped."""
        default = (0, 1) if self._swaps else (0,)
        return (self.in_ if isinstance(self.in_, tuple) else (self.in_,)) or default

    @property
    def _swaps(self) -> bool:
        return self.law in {"symmetric", "antisymmetric"}

    @field_validator("in_", mode="before")
    @classmethod
    def _one_or_more(cls, value: object) -> object:
        return value if isinstance(value, list | tuple) else (value,)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        wanted = 2 if self._swaps else 1
        if len(self.arguments) != wanted:
            raise ValueError(f"'in': {self.law} speaks of {wanted} argument{'s' * (wanted > 1)}")
        known = {*range(len(self.over)), *(domain.name for domain in self.over if domain.name)}
        loose = [name for name in self.arguments if name not in known]
        if loose:
            raise ValueError(f"'in' names the argument {loose[0]!r}, 'over' has {len(self.over)} (from 0)")
        if self.law in {"inverse", "equal"} and self.with_ is None:
            raise ValueError(f"'{self.law}' needs the other function under 'with'")
        if self.law == "equal" and self.with_ == self.call:
            raise ValueError(f"'with' names {self.call} itself, which is equal to itself whatever it does")
        if self.with_ is not None and self.law not in {"inverse", "equal"}:
            raise ValueError("'with' goes with 'inverse' and 'equal'")
        if (self.law == "bounded") != (self.bounds is not None):
            raise ValueError("'bounds: [least, most]' goes with 'bounded', and 'bounded' with it")
        least, most = self.bounds or (None, None)
        if least is not None and most is not None and not (least <= most and math.isfinite(least)):
            raise ValueError(f"'bounds' are empty: from {least:g} to {most:g}")
        return self
