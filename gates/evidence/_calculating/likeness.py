"""Is one encoded value like another, within a tolerance? And where not, where and by how much."""

import math
import struct
import sys
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from .values import FORM, encode, shown

LARGE = 256  # bits, beyond which a number is shown by its size
LOOSER = 10  # by so much are two results of a property compared looser than a result and what was written down
STEPS = 64  # of rounding, that what is computed from larger numbers may be off by
DIGITS = 9  # so many at most has a decimal that was written down; what was computed has more
FEW = 2**12  # a fraction of so few bits comes of halves and quarters; one float32 in 4,096 looks so by chance
FINE = 2**10  # below it, a float32 is so fine that what has all its digits can hardly have been written down


class Kind(NamedTuple):
    """How exact a type of number is: the share that may be off, the step of rounding, and what is still like 0."""

    share: float
    step: float
    nothing: float


DOUBLE = Kind(1e-9, 2.3e-16, 1e-12)
SINGLE = Kind(1e-6, 1.2e-7, 1e-6)
READ_SINGLE = Kind(5e-7, 1.2e-7, 1e-7)  # a float that was computed as a float32, as `.item()` gives it
BY_DTYPE = {
    "float32": SINGLE,
    "complex64": SINGLE,
    "float16": Kind(2e-3, 9.8e-4, 1e-3),
    "bfloat16": Kind(2e-2, 7.9e-3, 1e-2),
}

Number = int | float | Fraction


def differences(
    expected: Any, actual: Any, *, tolerance: float | None = None, relative: float | None = None,  # noqa: ANN401  # JSON
    signed_zero: bool = False, scale: float | None = None, least: Kind = DOUBLE,
) -> list[str]:  # fmt: skip
    """Return each place where a value is not what was expected, in words; nothing where it is.

    Without a tolerance, whole numbers must be equal, and floating-point numbers to nine digits (six in float32, fewer
    in narrower types). A list is like a tuple, a set or an array of the same items, a mapping like a record with the
    same fields; a truth value is like no number. Where zero has a sign, -0.0 is like nothing but itself. `scale` is the
    size of the numbers that both were computed from, where both were computed, `least` how exact they are at best.
    Where nothing of a value can be compared, that is told as `Unseen`.
    """
    return [*_Comparison(tolerance, relative, signed_zero, scale).unlike(expected, actual, "", least)]


def kind_of(value: Any) -> Kind:  # noqa: ANN401  # JSON
    """Return how exact the least exact number in a value looks."""
    inner = value if isinstance(value, list) else [*value.values()] if isinstance(value, dict) else []
    own = _read(value) if isinstance(value, float) else DOUBLE
    return max([own, _kind(value), *map(kind_of, inner)])


def rounding(one: Number, other: Number, scale: float, least: Kind) -> float:
    """Return by how much two computed numbers may differ by rounding alone."""
    kind = max(least, _read(one), _read(other))
    return max(kind.share * LOOSER * max(abs(float(one)), abs(float(other))), STEPS * kind.step * scale)


class Unseen(str):
    """A difference that may be none: nothing of the value can be compared."""

    __slots__ = ()


class _Comparison:
    def __init__(
        self, tolerance: float | None, relative: float | None, signed_zero: bool, scale: float | None
    ) -> None:  # fmt: skip
        self._exact = tolerance is None and relative is None
        self._scale = None if scale is None else min(scale, sys.float_info.max)
        self._signed_zero = signed_zero and self._exact
        self._tolerance = Fraction(tolerance or 0)
        self._relative = relative

    def unlike(self, expected: Any, actual: Any, at: str, kind: Kind) -> Iterator[str]:  # noqa: ANN401  # JSON
        kind = max(kind, _kind(expected), _kind(actual))
        expected, actual = _opened(expected), _as_written(_opened(actual), expected)
        wanted, found = number(expected), number(actual)
        if wanted is not None and found is not None:
            yield from self._numbers(wanted, found, at, kind)
        elif _form(expected) == _form(actual) == "complex":
            for part in ("real", "imag"):
                yield from self.unlike(expected[part], actual[part], f"{at}.{part}", kind)
        elif isinstance(expected, list) and isinstance(actual, list):
            yield from self._lists(expected, actual, at, kind)
        elif _form(expected) == "set" or _form(actual) == "set":
            yield from self._sets(expected, actual, at, kind)
        elif _form(expected) in {"dict", "object"} and _form(actual) in {"dict", "object"}:
            yield from self._mappings(expected, actual, at, kind)
        elif _nowhere(actual) or _nowhere(expected):
            unseen = actual if _nowhere(actual) else expected
            yield Unseen(f"{_told(at, expected, actual)}: {unseen['type']} is a type of which nothing can be compared")
        elif type(expected) is not type(actual) or expected != actual:
            yield _told(at, expected, actual)

    def _numbers(self, wanted: Number, found: Number, at: str, kind: Kind) -> Iterator[str]:
        if _special(wanted) or _special(found):
            if repr(wanted) != repr(found):
                yield f"{_place(at)}{_text(found)}, expected {_text(wanted)}"
            return
        limit = max(self._tolerance, Fraction(self._relative or 0) * abs(Fraction(wanted)))
        if self._exact and (isinstance(wanted, float) or isinstance(found, float)):
            limit = self._rounding(wanted, max(kind, _read_beside(wanted, found)))
        off = Fraction(found) - Fraction(wanted)
        signed = self._signed_zero and wanted == found == 0 and _negative(wanted) and not _negative(found)
        if signed or abs(off) > limit:
            by = "the sign of zero" if signed else _text(_as_float(off))
            yield f"{_place(at)}{_text(found)}, expected {_text(wanted)} (off by {by})"

    def _rounding(self, wanted: Number, kind: Kind) -> Fraction:
        """Return by how much a number may be off where no tolerance was stated."""
        share = Fraction(kind.share) * abs(Fraction(wanted))
        if self._scale is not None:
            return max(share * LOOSER, Fraction(STEPS * kind.step) * Fraction(self._scale))
        return share if wanted else Fraction(kind.nothing)

    def _lists(self, expected: list[Any], actual: list[Any], at: str, kind: Kind) -> Iterator[str]:
        if len(expected) != len(actual):
            yield f"{_place(at)}{len(actual)} items, expected {len(expected)}"
            return
        for i, (one, other) in enumerate(zip(expected, actual, strict=True)):
            yield from self.unlike(one, other, f"{at}[{i}]", kind)

    def _sets(self, expected: Any, actual: Any, at: str, kind: Kind) -> Iterator[str]:  # noqa: ANN401  # JSON
        wanted, left = _items(expected), _items(actual)
        if wanted is None or left is None or len(wanted) != len(left):
            yield _told(at, expected, actual)
            return
        for item in wanted:
            found = [[*self.unlike(item, other, at, kind)] for other in left]
            if [] not in found:
                text = f"{_place(at)}no {shown(item)}, expected it"
                unseen = any(all(isinstance(one, Unseen) for one in unlike) for unlike in found)
                yield Unseen(text) if unseen else text
                return
            del left[found.index([])]

    def _mappings(self, expected: Any, actual: Any, at: str, kind: Kind) -> Iterator[str]:  # noqa: ANN401  # JSON
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
                yield from self.unlike(wanted[key], found[key], f"{at}[{key!r}]", kind)


def number(value: Any) -> Number | None:  # noqa: ANN401  # JSON
    """Return an encoded number, or `None` for what is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    form = _form(value)
    if form == "float":
        return float(value["text"])
    if form == "int":
        return int(value["hex"], 16)
    if form == "ratio":
        return Fraction(int(value["over"], 16), int(value["under"], 16))
    return number(value["items"]) if form == "array" else None


def numbers_in(value: Any) -> Iterator[Number]:  # noqa: ANN401  # JSON
    """Yield every number inside an encoded value."""
    found = number(value)
    if found is not None:
        yield found
    elif isinstance(value, list):
        for item in value:
            yield from numbers_in(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name != "shape":
                yield from numbers_in(item)


def _form(value: Any) -> str | None:  # noqa: ANN401  # JSON
    return value.get(FORM) if isinstance(value, dict) else None


def _opened(value: Any) -> Any:  # noqa: ANN401  # JSON
    """Return what an array holds."""
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


def _kind(value: Any) -> Kind:  # noqa: ANN401  # JSON
    return BY_DTYPE.get(value["dtype"], DOUBLE) if _form(value) == "array" else DOUBLE


def _read(value: Number) -> Kind:
    """Return how exact a number looks: one with all digits of a float32, and none beyond them, was computed as one.

    A decimal of few digits was written down, even where a float32 could hold it: 1234567.5 is a price, or a time.
    """
    if not isinstance(value, float) or not math.isfinite(value) or value.is_integer():
        return DOUBLE
    short = (math.frexp(value)[0] * FEW).is_integer() or len(Decimal(repr(value)).as_tuple().digits) <= DIGITS
    return READ_SINGLE if _single(value) == value and not short else DOUBLE


def _read_beside(wanted: Number, found: Number) -> Kind:
    """Return how exact a result looks beside what is expected: what was written down alone says nothing of it."""
    single = isinstance(found, float) and not found.is_integer() and _single(found) == found
    if single and isinstance(wanted, float) and _single(wanted) == found != wanted:
        return READ_SINGLE
    return max(_read(wanted), _read(found)) if single or -FINE < wanted < FINE else DOUBLE


def _single(value: float) -> float:
    """Return the float32 that is nearest to a number."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.inf


def _items(value: Any) -> list[Any] | None:  # noqa: ANN401  # JSON
    if isinstance(value, list):
        return [*value]
    return [*value["items"]] if _form(value) == "set" else None


def _named(value: Any) -> dict[str, Any]:  # noqa: ANN401  # JSON
    """Return the items of a mapping by the text of their keys, as a task file writes them."""
    if _form(value) == "object":
        return dict(value["fields"])
    return {key if isinstance(key, str) else shown(key): item for key, item in value["items"]}


def _special(value: Number) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _negative(value: Number) -> bool:
    return isinstance(value, float) and math.copysign(1, value) < 0


def _as_float(value: Fraction) -> float:
    try:
        return float(f"{float(value):.6g}")
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _text(value: Number) -> str:
    if isinstance(value, Fraction):
        large = max(value.numerator.bit_length(), value.denominator.bit_length()) > LARGE
        return repr(_as_float(value)) if large else str(value)
    return shown(encode(value), 60)


def _place(at: str) -> str:
    return f"at {at}: " if at else ""


def _told(at: str, expected: Any, actual: Any) -> str:  # noqa: ANN401  # JSON
    return f"{_place(at)}{shown(actual, 120)}, expected {shown(expected, 120)}"
