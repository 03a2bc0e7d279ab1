"""Is one encoded value like another, within a tolerance? And where not, where and by how much."""

import math
import struct
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from .values import FORM, encode, shown

FINE = 1024  # below it, six digits are all that a float32 has
DOUBLE, SINGLE = 1e-9, 5e-7  # the share by which numbers may be off that were computed so exactly
NOTHING = {DOUBLE: 1e-12, SINGLE: 1e-7, 1e-6: 1e-6, 2e-3: 1e-3, 2e-2: 1e-2}  # what is still like 0
BY_DTYPE = {"float32": 1e-6, "complex64": 1e-6, "float16": 2e-3, "bfloat16": 2e-2}

Number = int | float | Fraction


def differences(
    expected: Any, actual: Any, *, tolerance: float | None = None, relative: float | None = None,  # noqa: ANN401  # JSON
) -> list[str]:  # fmt: skip
    """Return each place where a value is not what was expected, in words; nothing where it is.

    Without a tolerance, whole numbers must be equal, and floating-point numbers to nine digits (six in float32, fewer
    in narrower types). A list is like a tuple, a set or an array of the same items, a mapping like a record with the
    same fields; a truth value is like no number.
    Where nothing of a value can be compared, that is told as `Unseen`.
    """
    return [*_Comparison(tolerance, relative).unlike(expected, actual, "", DOUBLE)]


class Unseen(str):
    """A difference that may be none: nothing of the value can be compared."""

    __slots__ = ()


class _Comparison:
    def __init__(self, tolerance: float | None, relative: float | None) -> None:
        self._exact = tolerance is None and relative is None
        self._tolerance, self._relative = Fraction(tolerance or 0), Fraction(relative or 0)

    def unlike(self, expected: Any, actual: Any, at: str, share: float) -> Iterator[str]:  # noqa: ANN401  # JSON
        share = max(share, _share(expected), _share(actual))
        expected, actual = _opened(expected), _as_written(_opened(actual), expected)
        wanted, found = number(expected), number(actual)
        forms = {_form(expected), _form(actual)}
        if wanted is not None and found is not None:
            yield from self._numbers(wanted, found, at, share)
        elif isinstance(expected, list) and isinstance(actual, list):
            yield from self._lists(expected, actual, at, share)
        elif "set" in forms:
            yield from self._sets(expected, actual, at, share)
        elif forms <= {"dict", "object"}:
            yield from self._mappings(expected, actual, at, share)
        elif _nowhere(actual) or _nowhere(expected):
            unseen = actual if _nowhere(actual) else expected
            yield Unseen(f"{_told(at, expected, actual)}: {unseen['type']} is a type of which nothing can be compared")
        elif type(expected) is not type(actual) or expected != actual:
            yield _told(at, expected, actual)

    def _numbers(self, wanted: Number, found: Number, at: str, share: float) -> Iterator[str]:
        if _is_special(wanted) or _is_special(found):
            if repr(wanted) != repr(found):
                yield f"{_place(at)}{_text(found)}, expected {_text(wanted)}"
            return
        limit = max(self._tolerance, self._relative * abs(Fraction(wanted)))
        if self._exact and (isinstance(wanted, float) or isinstance(found, float)):
            share = max(share, _share_beside(wanted, found))
            limit = Fraction(share) * abs(Fraction(wanted)) if wanted else Fraction(NOTHING[share])
        off = Fraction(found) - Fraction(wanted)
        if abs(off) > limit:
            yield f"{_place(at)}{_text(found)}, expected {_text(wanted)} (off by {_text(_as_float(off))})"

    def _lists(self, expected: list[Any], actual: list[Any], at: str, share: float) -> Iterator[str]:
        if len(expected) != len(actual):
            yield f"{_place(at)}{len(actual)} items, expected {len(expected)}"
            return
        for i, (one, other) in enumerate(zip(expected, actual, strict=True)):
            yield from self.unlike(one, other, f"{at}[{i}]", share)

    def _sets(self, expected: Any, actual: Any, at: str, share: float) -> Iterator[str]:  # noqa: ANN401  # JSON
        wanted, left = _items(expected), _items(actual)
        if wanted is None or left is None or len(wanted) != len(left):
            yield _told(at, expected, actual)
            return
        for item in wanted:
            found = [[*self.unlike(item, other, at, share)] for other in left]
            if [] not in found:
                text = f"{_place(at)}no {shown(item)}, expected it"
                unseen = any(all(isinstance(one, Unseen) for one in unlike) for unlike in found)
                yield Unseen(text) if unseen else text
                return
            del left[found.index([])]

    def _mappings(self, expected: Any, actual: Any, at: str, share: float) -> Iterator[str]:  # noqa: ANN401  # JSON
        if _form(expected) == _form(actual) == "object" and expected["type"] != actual["type"]:
            yield f"{_place(at)}{actual['type']}, expected {expected['type']}"
            return
        wanted, found = _named(expected), _named(actual)
        for key in [*wanted, *(key for key in found if key not in wanted)]:
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
    if form == "float":
        return float(value["text"])
    if form == "ratio":
        return Fraction(value["text"])
    return number(value["items"]) if form == "array" else None


def numbers_in(value: Any) -> Iterator[Number]:  # noqa: ANN401  # JSON
    """Yield every number inside an encoded value."""
    found = number(value)
    if found is not None:
        yield found
    elif isinstance(value, list | dict):
        items = value if isinstance(value, list) else [item for name, item in value.items() if name != "shape"]
        for item in items:
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
    if form == "object" and isinstance(expected, list) and (actual["tuple"] or "items" in actual):
        return [*actual["fields"].values()] if actual["tuple"] else actual["items"]
    if form in {"text", "opaque"} and isinstance(expected, str):
        return actual if _nowhere(actual) else actual["text"]
    return actual


def _nowhere(value: Any) -> bool:  # noqa: ANN401  # JSON
    """Return whether nothing of a value can be compared: it tells its address alone, or is there to be gone through."""
    return "iterates" in value if _form(value) == "object" else _form(value) == "opaque" and " at 0x" in value["text"]


def _share(value: Any) -> float:  # noqa: ANN401  # JSON
    return BY_DTYPE.get(value["dtype"], DOUBLE) if _form(value) == "array" else DOUBLE


def _share_beside(wanted: Number, found: Number) -> float:
    """Return by what share a number may be off that looks like a float32, as `.item()` gives it; a price is none."""
    broken = [one for one in (wanted, found) if isinstance(one, float) and not one.is_integer()]
    if not any(_single(one) == one for one in broken):
        return DOUBLE
    return SINGLE if -FINE < wanted < FINE or _single(wanted) == _single(found) else DOUBLE


def _single(value: Number) -> float:
    """Return the float32 that is nearest to a number."""
    try:
        return float(struct.unpack("f", struct.pack("f", float(value)))[0])
    except OverflowError:
        return math.inf


def _items(value: Any) -> list[Any] | None:  # noqa: ANN401  # JSON
    return [*value] if isinstance(value, list) else [*value["items"]] if _form(value) == "set" else None


def _named(value: Any) -> dict[str, Any]:  # noqa: ANN401  # JSON
    """Return the items of a mapping by the text of their keys, as a task file writes them."""
    if _form(value) == "object":
        return dict(value["fields"])
    return {key if isinstance(key, str) else shown(key): item for key, item in value["items"]}


def _is_special(value: Number) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _as_float(value: Fraction) -> float:
    try:
        return float(f"{float(value):.6g}")
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _text(value: Number) -> str:
    return shown(encode(value), 60)


def _place(at: str) -> str:
    return f"at {at}: " if at else ""


def _told(at: str, expected: Any, actual: Any) -> str:  # noqa: ANN401  # JSON
    return f"{_place(at)}{shown(actual, 120)}, expected {shown(expected, 120)}"
