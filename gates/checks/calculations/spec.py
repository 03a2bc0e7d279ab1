"""What a task says of its formulas: tables of results, and edge cases."""

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, NamedTuple, Self

from pydantic import Field, JsonValue, model_validator

from gates.child.values import encode, plain, shown
from gates.task.task import Task
from gates.task.types import Callable, Distance, Json, Located, Part, Seconds, Taken, Text

ErrorName = Annotated[str, Field(pattern=r"^[^\W\d][\w.]*$")]
ANY_ERROR = frozenset({"Exception", "BaseException", "builtins.Exception", "builtins.BaseException"})


class Instance(Located):
    """What an object is made with, whose method is called: a fresh one for each call."""

    args: tuple[Json, ...] = ()
    kwargs: dict[str, Json] = Field(default_factory=dict)


class Case(Located):
    """One call of a function, and what must come of it.

    `expected` is compared within `tolerance` (absolute) or `relative`; `raises` and `warns` name an exception and a
    warning, whose message holds `says`; `finite` demands numbers that are neither NaN nor infinite.
    """

    args: tuple[Json, ...] = ()
    kwargs: dict[str, Json] = Field(default_factory=dict)
    expected: Json = None
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
        if self.raises in ANY_ERROR:
            raise ValueError(f"'raises: {self.raises}' is true of every error, mistakes in the code too: name one")
        if self.says and not (self.raises or self.warns):
            raise ValueError("'says' goes with 'raises' or 'warns'")
        if (self.tolerance is not None or self.relative is not None) and not self.returns:
            raise ValueError("a tolerance goes with 'expected'")
        return self

    def takes_zero(self) -> bool:
        """Return whether 0 lies within the tolerance of all numbers that are expected."""
        numbers, wide = [*_numbers(self.expected)], (self.relative or 0.0) >= 1
        return bool(numbers) and all(abs(n) <= (self.tolerance or 0.0) or (n != 0 and wide) for n in numbers)


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

    table: Annotated[tuple[Case, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _tells_numbers_from_zero(self) -> Self:
        _refuse_all_zero([case for case in self.table if case.returns])
        return self


class EdgeCase(Called, Case):
    """One call at the edge of what a function is for, by name."""

    key: ClassVar[str] = "edge_cases"

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


def is_made(value: JsonValue) -> bool:
    """Return whether a value of a task file holds something that only the project's interpreter can make."""
    if isinstance(value, dict):
        return "$call" in value or "$ref" in value or any(map(is_made, value.values()))
    return isinstance(value, list) and any(map(is_made, value))


def as_written(value: JsonValue) -> JsonValue:
    """Return an argument of a task file in the form that `shown` knows."""
    written: JsonValue = value if is_made(value) else encode(plain(value))
    return written


class Tried(NamedTuple):
    """A calculation or an edge case of a task, the check that decides it, and its cases by the ids of their calls."""

    rule: str
    check: str
    name: str
    title: str
    part: Called
    cases: dict[str, Case]


def tried(task: Task) -> Iterator[Tried]:
    """Yield what a task states, table by table, and then the edge cases."""
    for i, one in enumerate(task.part(Calculation)):
        cases = {f"calc:{i}:{j}": case for j, case in enumerate(one.table)}
        yield Tried("BL008", f"calc:{i}", one.call, f"calculation {one.call} gives the stated results", one, cases)
    for i, edge in enumerate(task.part(EdgeCase)):
        name = f"edge:{i}"
        yield Tried("BL009", name, edge.name, f"edge case is handled: {edge.name}", edge, {name: edge})


def input_of(called: Called, case: Case) -> str:
    """Return a call with its arguments, as Python writes it."""
    name = called.call.partition(":")[2]
    if called.instance:
        owner, _, name = name.rpartition(".")
        name = f"{owner}{_arguments(called.instance)}.{name}"
    return f"{name}{_arguments(case)}{f'.{called.take}' if called.take else ''}"


def _arguments(given: Case | Instance) -> str:
    named = [f"{key}={shown(as_written(value), 80)}" for key, value in given.kwargs.items()]
    return f"({', '.join([*(shown(as_written(value), 80) for value in given.args), *named])})"
