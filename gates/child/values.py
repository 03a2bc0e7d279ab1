"""Values written down as JSON, each in a form of its own, and compared within a tolerance.

All but numbers, text, lists and `None` are mappings with their form under FORM: `float` (NaN, infinities), `dict` (also
the fields of an object), `set`, `enum`, `array`, and `text` (dates, paths, bytes, the `repr` of what has no parts).
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
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from typing import Any

FORM = "$"
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
MOST, DEPTH, BOUND = 20_000, 60, 400
SPECIAL = {".nan": math.nan, ".inf": math.inf, "+.inf": math.inf, "-.inf": -math.inf}
DOUBLE, SINGLE = 1e-9, 5e-7  # the share by which numbers may be off that were computed so exactly
NOTHING = {DOUBLE: 1e-12, SINGLE: 1e-7, 1e-6: 1e-6, 2e-3: 1e-3, 2e-2: 1e-2}  # what is still like 0
BY_DTYPE = {"float32": 1e-6, "complex64": 1e-6, "float16": 2e-3, "bfloat16": 2e-2}
Number = int | float


class TooMuch(ValueError):
    """A value is larger or deeper than what is written down."""


def encode(value: object, array: Callable[[Any], object] | None = None) -> Any:  # noqa: ANN401  # JSON
    """Return a value as JSON, the items of arrays as `array` has them; raise `TooMuch` for one that is too large."""
    return _Writer(array).written(value, 0)


def plain(value: Any) -> Any:  # noqa: ANN401  # JSON
    """Return a value of a task file as Python has it: `.nan` and `.inf` are numbers there, as in YAML."""
    if isinstance(value, str):
        return SPECIAL.get(value.lower(), value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return value["$text"] if set(value) == {"$text"} else {name: plain(item) for name, item in value.items()}
    return value


class _Writer:
    def __init__(self, array: Callable[[Any], object] | None) -> None:
        self._parts, self._array = 0, array

    def written(self, value: Any, depth: int) -> Any:  # noqa: ANN401  # anything
        self._parts += 1
        if self._parts > MOST:
            raise TooMuch(f"it has more than {MOST} parts")
        if depth > DEPTH:
            raise TooMuch(f"it is nested more than {DEPTH} deep")
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, enum.Enum):
            named = {"type": _name(value), "name": value.name, "value": self.written(value.value, depth + 1)}
            return {FORM: "enum", **named}
        if isinstance(value, float | decimal.Decimal | fractions.Fraction):
            number = float(value)
            return number if math.isfinite(number) else {FORM: "float", "text": repr(number)}
        if isinstance(value, int):
            return int(value)
        if isinstance(value, str):
            return str.__str__(value).encode("utf-8", "backslashreplace").decode()
        text = _text(value)
        return self._structure(value, depth + 1) if text is None else _as_text(value, text)

    def _structure(self, value: Any, depth: int) -> Any:  # noqa: ANN401  # anything
        if isinstance(value, Mapping):
            pairs = [[self.written(key, depth), self.written(item, depth)] for key, item in value.items()]
            return {FORM: "dict", "items": pairs}
        if hasattr(value, "tolist") and not inspect.isclass(value):
            shape, dtype = [*getattr(value, "shape", ())], str(getattr(value, "dtype", "")).rpartition(".")[2]
            if self._array:
                return [dtype, shape, self._array(value)]
            if math.prod(shape) > MOST:
                raise TooMuch(f"it has {math.prod(shape)} parts, more than {MOST}")
            return {FORM: "array", "dtype": dtype, "items": self.written(value.tolist(), depth)}
        if (names := _fields(value)) is None:
            if isinstance(value, Sequence | ValuesView):
                return [self.written(item, depth) for item in value]
            if isinstance(value, AbstractSet):
                return {FORM: "set", "items": sorted((self.written(item, depth) for item in value), key=repr)}
            if (names := _attributes(value)) is None:
                return _as_text(value, repr_of(value))
        items = [[name, self.written(getattr(value, name), depth)] for name in names]
        return {FORM: "dict", "items": items, "type": _name(value), "tuple": isinstance(value, tuple)}


def _text(value: object) -> str | None:
    """Return what is best told by its text."""
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return value.hex()
    return str(value) if isinstance(value, pathlib.PurePath | datetime.timedelta) else None


def _as_text(value: object, text: str) -> dict[str, str]:
    return {FORM: "text", "type": _name(value), "text": text}


def _fields(value: Any) -> Iterable[str] | None:  # noqa: ANN401  # anything
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    if kind is complex:
        return ("real", "imag")
    if attrs := getattr(kind, "__attrs_attrs__", None):
        return [field.name for field in attrs]
    found: Iterable[str] | None = getattr(kind, "_fields", None) or getattr(kind, "model_fields", None)
    return found


def _attributes(value: object) -> Iterable[str] | None:
    """Return the names of the attributes of what keeps all that it is in public ones."""
    own = getattr(value, "__dict__", None)
    is_code = inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value)
    return own if own and not is_code and not any(name.startswith("_") for name in own) else None


def _name(value: object) -> str:
    return type(value).__qualname__


def repr_of(value: object, bound: int = BOUND) -> str:
    """Return what `repr` shows of a value, whatever it is, cut to a bounded length."""
    try:
        text = repr(value).encode("utf-8", "backslashreplace").decode()[:bound]
    except Exception as error:  # noqa: BLE001  # a broken repr is no fault of what was called
        text = f"<{_name(value)} whose repr raises {type(error).__name__}>"
    return ADDRESS.sub(" at 0x...", text)  # another one in every process


def shown(value: Any, bound: int = BOUND) -> str:  # noqa: ANN401  # JSON
    """Return an encoded value as people read it, cut to a bounded length."""
    text = _shown(value)
    return text if len(text) <= bound else f"{text[: bound - 4]} ..."


def _shown(value: Any) -> str:  # noqa: ANN401  # JSON
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if not isinstance(value, dict):
        return repr(value)
    form = value.get(FORM)
    if "type" in value and form == "dict":
        return f"{value['type']}({', '.join(f'{name}={_shown(item)}' for name, item in value['items'])})"
    if form == "dict":
        return f"{{{', '.join(f'{_shown(key)}: {_shown(item)}' for key, item in value['items'])}}}"
    if form == "set":
        return f"{{{', '.join(map(_shown, value['items']))}}}" if value["items"] else "set()"
    if form == "enum":
        return f"{value['type']}.{value['name']}"
    if form == "array":
        return f"{value['dtype'] or 'array'} {_shown(value['items'])}"
    if "$call" in value:
        named = [f"{name}={_shown(item)}" for name, item in value.get("kwargs", {}).items()]
        return f"{value['$call']}({', '.join([*map(_shown, value.get('args', [])), *named])})"
    return str(value.get("$ref", value.get("text", value)))


class Unseen(str):
    """A difference that may be none: nothing of the value can be compared."""

    __slots__ = ()


def differences(
    expected: object, actual: object, *, tolerance: float | None = None, relative: float | None = None
) -> list[str]:
    """Return each place where a value is not what was expected, in words; `Unseen` where nothing can be compared.

    Without a tolerance, floating-point numbers must be equal to nine digits (six in float32, fewer in narrower types).
    A list is like a tuple, set or array of the same items, a mapping like a record; a truth value is like no number.
    """
    return [*_Comparison(tolerance, relative).unlike(expected, actual, "", DOUBLE)]


class _Comparison:
    def __init__(self, tolerance: float | None, relative: float | None) -> None:
        self._exact = tolerance is None and relative is None
        self._tolerance, self._relative = tolerance or 0.0, relative or 0.0

    def unlike(self, expected: Any, actual: Any, at: str, share: float) -> Iterator[str]:  # noqa: ANN401  # JSON
        share = max(share, _share(expected), _share(actual))
        expected, actual = _opened(expected), _as_written(_opened(actual), expected)
        wanted, found = number(expected), number(actual)
        forms = {_form(expected), _form(actual)}
        if "set" in forms:
            expected, actual = _items(expected), _items(actual)
        if wanted is not None and found is not None:
            yield from self._numbers(wanted, found, at, share)
        elif isinstance(expected, list) and isinstance(actual, list):
            yield from self._lists(expected, actual, at, share)
        elif forms == {"dict"}:
            yield from self._mappings(expected, actual, at, share)
        elif unseen := next(filter(_nowhere, (actual, expected)), None):
            yield Unseen(f"{_told(at, expected, actual)}: {unseen['type']} is a type of which nothing can be compared")
        elif type(expected) is not type(actual) or expected != actual:
            yield _told(at, expected, actual)

    def _numbers(self, wanted: Number, found: Number, at: str, share: float) -> Iterator[str]:
        if wanted == found or repr(wanted) == repr(found):  # NaN, too
            return
        told = f"{_place(at)}{shown(encode(found), 60)}, expected {shown(encode(wanted), 60)}"
        if not all(-math.inf < one < math.inf for one in (wanted, found)):
            yield told
            return
        limit = max(self._tolerance, self._relative * abs(wanted))
        try:
            off = float(found - wanted)
        except OverflowError:  # a whole number that is no float
            off = math.inf if found > wanted else -math.inf
        if self._exact and (isinstance(wanted, float) or isinstance(found, float)):
            share = max(share, SINGLE if _is_single(wanted) or _is_single(found) else DOUBLE)
            limit = share * abs(wanted) if wanted else NOTHING[share]
        if abs(off) > limit:
            yield f"{told} (off by {float(f'{off:.6g}')})"

    def _lists(self, expected: list[Any], actual: list[Any], at: str, share: float) -> Iterator[str]:
        if len(expected) != len(actual):
            yield f"{_place(at)}{len(actual)} items, expected {len(expected)}"
            return
        for i, (one, other) in enumerate(zip(expected, actual, strict=True)):
            yield from self.unlike(one, other, f"{at}[{i}]", share)

    def _mappings(self, expected: Any, actual: Any, at: str, share: float) -> Iterator[str]:  # noqa: ANN401  # JSON
        if len({each["type"] for each in (expected, actual) if "type" in each}) > 1:
            yield f"{_place(at)}{actual['type']}, expected {expected['type']}"
            return
        wanted, found = _named(expected), _named(actual)
        for key in {**wanted, **found}:
            if key not in found:
                yield f"{_place(at)}no {key!r}, expected {shown(wanted[key])}"
            elif key not in wanted:
                yield f"{_place(at)}{key!r} = {shown(found[key])}, expected no {key!r}"
            else:
                yield from self.unlike(wanted[key], found[key], f"{at}[{key!r}]", share)


def number(value: Any) -> Number | None:  # noqa: ANN401  # JSON
    """Return an encoded number, or `None` for what is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    form = _form(value)
    return float(value["text"]) if form == "float" else number(value["items"]) if form == "array" else None


def numbers_in(value: Any) -> Iterator[Number]:  # noqa: ANN401  # JSON
    """Yield every number inside an encoded value."""
    if (found := number(value)) is not None:
        yield found
    elif isinstance(value, list | dict):
        for item in value if isinstance(value, list) else value.values():
            yield from numbers_in(item)


def _form(value: Any) -> str | None:  # noqa: ANN401  # JSON
    return value.get(FORM) if isinstance(value, dict) else None


def _opened(value: Any) -> Any:  # noqa: ANN401  # JSON
    return value["items"] if _form(value) == "array" else value


def _as_written(actual: Any, expected: Any) -> Any:  # noqa: ANN401  # JSON
    """Return a value in the form in which a task file can write it: a member by its name or value, a date as text."""
    form = _form(actual)
    if form == "enum" and _form(expected) != "enum":
        return expected if expected in (actual["name"], f"{actual['type']}.{actual['name']}") else actual["value"]
    if form == "dict" and isinstance(expected, list) and actual.get("tuple"):
        return [item for _, item in actual["items"]]
    return actual["text"] if form == "text" and isinstance(expected, str) and not _nowhere(actual) else actual


def _nowhere(value: Any) -> bool:  # noqa: ANN401  # JSON
    """Return whether nothing of a value can be compared: it tells its address alone."""
    return _form(value) == "text" and " at 0x" in value["text"]


def _share(value: Any) -> float:  # noqa: ANN401  # JSON
    return BY_DTYPE.get(value["dtype"], DOUBLE) if _form(value) == "array" else DOUBLE


def _is_single(value: Number) -> bool:
    """Return whether a number looks like a float32, as `.item()` gives it: by its many digits; a price has few."""
    try:
        many = isinstance(value, float) and len(repr(value).strip("-0.").replace(".", "")) > 9
        return many and struct.unpack("f", struct.pack("f", value))[0] == value
    except OverflowError:
        return False


def _items(value: Any) -> Any:  # noqa: ANN401  # JSON
    """Return the items of a set, or of a list that is compared with one, in an order of their own."""
    items = value["items"] if _form(value) == "set" else value
    return sorted(items, key=repr) if isinstance(items, list) else items


def _named(value: Any) -> dict[str, Any]:  # noqa: ANN401  # JSON
    """Return the items of a mapping by the text of their keys, as a task file writes them."""
    return {key if isinstance(key, str) else shown(key): item for key, item in value["items"]}


def _place(at: str) -> str:
    return f"at {at}: " if at else ""


def _told(at: str, expected: Any, actual: Any) -> str:  # noqa: ANN401  # JSON
    return f"{_place(at)}{shown(actual, 120)}, expected {shown(expected, 120)}"
