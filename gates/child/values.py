"""Values written down as JSON: exactly, each in a form of its own, so that another process can compare them.

Numbers, text, lists and `None` are themselves. Everything else is a mapping with its form under FORM: `float` (NaN,
infinities), `ratio`, `dict`, `set`, `object` (fields by name), `enum`, `array` (tensors),
`text` (dates, paths, bytes) and `opaque` (nothing of it can be compared).
"""

import dataclasses
import datetime
import decimal
import enum
import fractions
import inspect
import math
import pathlib
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from typing import Any

FORM = "$"
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
MOST = 20_000
DEPTH = 60
BOUND = 400
DIGITS = 4000
SPECIAL = {".nan": math.nan, ".inf": math.inf, "+.inf": math.inf, "-.inf": -math.inf}


class TooMuch(ValueError):
    """A value is larger or deeper than what is written down."""


def encode(value: object) -> Any:  # noqa: ANN401  # JSON
    """Return a value as JSON; raise `TooMuch` for one that is too large or holds itself."""
    return _Writer().written(value, 0)


def plain(value: Any) -> Any:  # noqa: ANN401  # JSON
    """Return a value of a task file as Python has it: `.nan` and `.inf` are numbers there, as in YAML."""
    if isinstance(value, str):
        return SPECIAL.get(value.lower(), value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return value["$text"] if set(value) == {"$text"} else {name: plain(item) for name, item in value.items()}
    return value


def shown(value: Any, bound: int = BOUND) -> str:  # noqa: ANN401  # JSON
    """Return an encoded value as people read it, cut to a bounded length."""
    text = _shown(value)
    return text if len(text) <= bound else f"{text[: bound - 4]} ..."


class _Writer:
    """Writes one value, and counts its parts."""

    def __init__(self) -> None:
        self._parts = 0

    def written(self, value: Any, depth: int) -> Any:  # noqa: ANN401  # anything
        self._parts += 1
        if self._parts > MOST or depth > DEPTH:
            raise TooMuch(
                f"it has more than {MOST} parts" if depth <= DEPTH else f"it is nested more than {DEPTH} deep"
            )
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, enum.Enum):
            return {
                FORM: "enum",
                "type": _name(value),
                "name": value.name,
                "value": self.written(value.value, depth + 1),
            }
        kind = type(value)
        if issubclass(kind, float):
            return _float(float(value))
        if issubclass(kind, int):
            if abs(value) >= 10**DIGITS:
                raise TooMuch(f"it is a number of more than {DIGITS} digits")
            return int(value)
        if issubclass(kind, str):
            return str.__str__(value).encode("utf-8", "backslashreplace").decode()
        return self._structure(value, depth + 1)

    def _structure(self, value: Any, depth: int) -> Any:  # noqa: ANN401  # anything
        if isinstance(value, list | tuple | range) and not hasattr(value, "_fields"):
            return [self.written(item, depth) for item in value]
        if isinstance(value, Mapping):
            pairs = [[self.written(key, depth), self.written(item, depth)] for key, item in value.items()]
            return {FORM: "dict", "items": pairs}
        if isinstance(value, AbstractSet) and not is_record(value):
            items = [self.written(item, depth) for item in value]
            return {FORM: "set", "items": sorted(items, key=repr)}
        scalar = _scalar(value)
        if scalar is not None:
            return scalar
        if hasattr(value, "tolist") and not inspect.isclass(value):
            shape = [int(size) for size in getattr(value, "shape", ())]
            if math.prod(shape) > MOST:
                raise TooMuch(f"it has {math.prod(shape)} parts, more than {MOST}")
            return {FORM: "array", "dtype": str(getattr(value, "dtype", "")).rpartition(".")[2], "shape": shape,
                    "items": self.written(value.tolist(), depth)}  # fmt: skip
        return self._fielded(value, depth)

    def _fielded(self, value: Any, depth: int) -> Any:  # noqa: ANN401  # anything
        """Write what is told by its fields, by its items, or by both: either may be what is expected of it."""
        more: dict[str, Any] = {}
        fields = _fields(value)
        if isinstance(value, Sequence | ValuesView) and not _is_declared(value):
            more["items"] = [self.written(item, depth) for item in value]
            if fields is None:
                return more["items"]
        if fields is None:
            return {FORM: "opaque", "type": _name(value), "text": _repr(value)}
        named = {name: self.written(item, depth) for name, item in fields}
        if isinstance(value, Iterator | AsyncIterator):
            more["iterates"] = True
        return {FORM: "object", "type": _name(value), "fields": named, "tuple": isinstance(value, tuple), **more}


def _float(value: float) -> Any:  # noqa: ANN401  # JSON
    return value if math.isfinite(value) else {FORM: "float", "text": repr(value)}


def _scalar(value: object) -> dict[str, Any] | None:
    """Return exact numbers that JSON does not know, and what is best told by its text."""
    if isinstance(value, complex):
        parts = {"real": _float(value.real), "imag": _float(value.imag)}
        return {FORM: "object", "type": "complex", "fields": parts, "tuple": False}
    if isinstance(value, decimal.Decimal) and not value.is_finite():
        return {FORM: "float", "text": repr(float(value))}
    if isinstance(value, decimal.Decimal) and abs(value.adjusted()) > DIGITS:
        return {FORM: "text", "type": "Decimal", "text": str(value)}
    if isinstance(value, decimal.Decimal | fractions.Fraction):
        return {FORM: "ratio", "text": str(value)}
    if isinstance(value, datetime.date | datetime.time):
        return {FORM: "text", "type": _name(value), "text": value.isoformat()}
    if isinstance(value, bytes | bytearray):
        return {FORM: "text", "type": "bytes", "text": value.hex()}
    if isinstance(value, pathlib.PurePath | datetime.timedelta):
        return {FORM: "text", "type": _name(value), "text": str(value)}
    return None


def _fields(value: Any) -> Iterable[tuple[str, Any]] | None:  # noqa: ANN401  # anything
    """Return the fields of a record: a dataclass, a named tuple, or what keeps all that it is in public attributes."""
    if inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value):
        return None
    if dataclasses.is_dataclass(value):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    if isinstance(value, tuple):
        return [(name, getattr(value, name)) for name in getattr(value, "_fields", ())]
    model_fields = getattr(type(value), "model_fields", None) or getattr(type(value), "__attrs_attrs__", None)
    if isinstance(model_fields, dict):
        return [(name, getattr(value, name)) for name in model_fields]
    if model_fields:
        return [(field.name, getattr(value, field.name)) for field in model_fields]
    own = getattr(value, "__dict__", None)
    return [*own.items()] if own and not any(name.startswith("_") for name in own) else None


def is_record(value: object) -> bool:
    """Return whether a value is told by its fields."""
    return _fields(value) is not None


def _is_declared(value: object) -> bool:
    """Return whether the type of a value says which fields it has."""
    kind = type(value)
    return any(hasattr(kind, name) for name in ("__dataclass_fields__", "_fields", "model_fields", "__attrs_attrs__"))


def _name(value: object) -> str:
    return type(value).__qualname__


def _repr(value: object) -> str:
    try:
        text = repr(value).encode("utf-8", "backslashreplace").decode()[:BOUND]
        return ADDRESS.sub(" at 0x...", text)  # another one in every process
    except Exception as error:  # noqa: BLE001  # a broken repr is no fault of the calculation
        return f"<{_name(value)} whose repr raises {type(error).__name__}>"


def _shown(value: Any) -> str:  # noqa: ANN401  # JSON
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    return _shown_form(value, value.get(FORM)) if isinstance(value, dict) else repr(value)


def _shown_form(value: dict[str, Any], form: str | None) -> str:
    if form == "dict":
        return f"{{{', '.join(f'{_shown(key)}: {_shown(item)}' for key, item in value['items'])}}}"
    if form == "set":
        return f"{{{', '.join(map(_shown, value['items']))}}}" if value["items"] else "set()"
    if form == "object":
        return f"{value['type']}({', '.join(f'{name}={_shown(item)}' for name, item in value['fields'].items())})"
    if form == "enum":
        return f"{value['type']}.{value['name']}"
    if form == "array":
        return f"{value['dtype'] or 'array'} {_shown(value['items'])}"
    if "$call" in value or "$ref" in value:
        return _shown_made(value)
    return str(value.get("text", value))


def _shown_made(value: dict[str, Any]) -> str:
    if "$ref" in value:
        return str(value["$ref"])
    named = [f"{name}={_shown(item)}" for name, item in value.get("kwargs", {}).items()]
    return f"{value['$call']}({', '.join([*map(_shown, value.get('args', [])), *named])})"
