"""The types that the parts of a task file are made of."""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, model_validator
from pydantic_core import PydanticCustomError

from gates.model import Model
from gates.task.yaml_source import Table, as_json
from gates.words import called, joined


def _inside(path: str) -> str:
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts or not path.strip():
        raise ValueError(f"expected a path inside the project, found {path!r}")
    head, colons, rest = path.partition("::")
    return PurePosixPath(head).as_posix() + colons + rest


Text = Annotated[str, Field(min_length=1, pattern=r"^[^\x00]*[^\s\x00][^\x00]*$")]
InsidePath = Annotated[str, AfterValidator(_inside)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]*$")]
ArmName = Annotated[str, Field(pattern=r"^[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$", max_length=200)]
Command = Annotated[tuple[Text, ...], Field(min_length=1)]
Callable = Annotated[str, Field(pattern=r"^[^\W\d][\w.]*:[^\W\d][\w.]*$")]
Distance = Annotated[float, Field(ge=0)]
Taken = Annotated[str, Field(pattern=r"^\w+(\.\w+)*$")]
Seconds = Annotated[float, Field(gt=0, le=24 * 3600)]
Json = Annotated[JsonValue, BeforeValidator(as_json)]


CALLS = frozenset({"call", "shared", "use", "read", "$call", "$ref"})
RUNS = frozenset({"run", "time", "build"})


class Located(Model):
    """A part of a task file that knows the line it stands in.

    One key of each group of `one_of` must be given; of a group of `along`, the others go with the first alone.
    """

    one_of: ClassVar[tuple[tuple[str, ...], ...]] = ()
    along: ClassVar[tuple[tuple[str, ...], ...]] = ()
    line: int = Field(default=1, ge=1, exclude=True, json_schema_extra={"readOnly": True})

    @model_validator(mode="before")
    @classmethod
    def _place(cls, data: object) -> object:
        if isinstance(data, Table) and "line" in data:
            raise PydanticCustomError("reserved", "unknown key 'line'")
        return {**data, "line": data.line} if isinstance(data, Table) else data

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for keys in self.one_of:
            if sum(getattr(self, key) not in (None, (), {}) for key in keys) != 1:
                raise ValueError(f"expected exactly one of {joined([repr(key) for key in keys])}")
        for key, *others in self.along:
            for name in () if getattr(self, key) else others:
                if getattr(self, name) != type(self).model_fields[name].get_default():
                    raise ValueError(f"{name.rstrip('_')!r} goes with {key!r}")
        return self

    def named(self) -> Iterator[tuple[str, str]]:
        """Yield each callable that it or a part of it names, and each word of its commands, with its key."""
        yield from (pair for key in type(self).model_fields for pair in _named(key, getattr(self, key)))


def _named(key: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, Located):
        yield from value.named()
    elif isinstance(value, tuple | list):
        yield from (pair for each in value for pair in _named(key, each))
    elif isinstance(value, dict):  # an argument: its own keys mean nothing here, but for what it makes
        yield from (pair for name, each in value.items() for pair in _named(name if name[:1] == "$" else "", each))
    elif isinstance(value, str) and (key in RUNS or (key in CALLS and ":" in value)):
        yield key, value


class Part(Located):
    """One entry of a list that a task may hold under `key`: something that is run or measured.

    `criteria` are those that it may stand for without a test.
    """

    key: ClassVar[str]

    criteria: tuple[Name, ...] = ()


class Run(Part):
    """Something of the project that is run in processes of its own, each in so many seconds at most."""

    timeout_s: Seconds | None = None

    @property
    def name(self) -> str:
        """Return what it is called in reports."""
        raise NotImplementedError


class OneCall(Run):
    """A callable of the project, and what it is called with."""

    call: Callable
    args: tuple[Json, ...] = ()

    @property
    def name(self) -> str:
        """Return what it is called in reports."""
        return called(self.call, self.args)
