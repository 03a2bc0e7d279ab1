"""Values of any kind written down, and compared with what a task expects."""

import dataclasses
import datetime
import decimal
import enum
import json
import math
from collections import OrderedDict, namedtuple
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gates.child.values import TooMuch, Unseen, differences, encode, numbers_in, plain, shown

Pair = namedtuple("Pair", "a b")  # noqa: PYI024


class Colour(enum.Enum):
    RED = 1


class Rank(enum.IntEnum):
    LOW = 1


@dataclasses.dataclass
class Point:
    x: int
    y: float = math.nan


class Open:
    def __init__(self, **own: object) -> None:
        self.__dict__.update(own)


class Liar:
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class Shouting:
    def __repr__(self) -> str:
        raise RuntimeError


def unlike(expected: Any, actual: object, **within: Any) -> list[str]:
    """How a value of a task file differs from one of Python's, both sent through JSON."""
    return differences(encode(plain(expected)), json.loads(json.dumps(encode(actual), allow_nan=False)), **within)


LIKE: dict[str, tuple[Any, object]] = {
    "whole": (2, 2),
    "whole as a float": (2, 2.0),
    "a long one": (2**100, 2**100),
    "nine digits": (0.3, 0.1 + 0.2),
    "nothing but rounding": (0, math.sin(math.pi)),
    "NaN": (".nan", math.nan),
    "infinite": ("-.inf", -math.inf),
    "minus nothing": (-0.0, -0.0),
    "nothing": (0.0, -0.0),
    "tuple": ([1, [2, None]], (1, (2, None))),
    "range": ([0, 1], range(2)),
    "named tuple as a list": ([1, 2], Pair(1, 2)),
    "named tuple by name": ({"a": 1, "b": 2}, Pair(1, 2)),
    "set": ([2, 1], {1, 2}),
    "mapping": ({"a": {"b": 1}}, OrderedDict(a={"b": 1})),
    "keys that are no text": ({"1": "x", "None": 2}, {1: "x", None: 2}),
    "dataclass": ({"x": 1, "y": ".nan"}, Point(1)),
    "object": ({"x": [1]}, Open(x=(1,))),
    "member by name": ("RED", Colour.RED),
    "member in full": ("Colour.RED", Colour.RED),
    "member by value": (1, Colour.RED),
    "number member": (1, Rank.LOW),
    "decimal": (0.1, decimal.Decimal("0.1")),
    "fraction": (0.5, Fraction(1, 2)),
    "date": ("2020-02-29", datetime.date(2020, 2, 29)),
    "path": ("a/b", PurePosixPath("a/b")),
    "float32 tensor": ([0.1, [0.2]], [torch.tensor(0.1), torch.tensor([0.2], requires_grad=True)]),
    "float16 tensor": ([[0.1]], torch.tensor([[0.1]], dtype=torch.float16)),
    "bfloat16 tensor": (3.14159, torch.tensor(3.14159, dtype=torch.bfloat16)),
    "float32 read": (0.1, torch.tensor(0.1).item()),
    "float32 read, that ends in zeros": (0.23333333, 0.23333334922790527),
    "float32 written down": (torch.tensor(0.3).item(), 0.3),
    "float32 that came out whole": (0.9999999403953552, 1.0),
    "truth tensor": (True, torch.tensor(True)),
    "array": ([1, 2], np.array([1, 2])),
    "scalar of numpy": (0.1, np.float32(0.1)),
    "truth of numpy": (True, np.bool_(True)),
    "dtype by its text": ("torch.float16", torch.float16),
    "text with a lone surrogate": ("\\udc80", "\udc80"),
}
UNLIKE: dict[str, tuple[Any, object, str]] = {
    "off": (2.0, 0.5, "0.5, expected 2.0 (off by -1.5)"),
    "the tenth digit of a whole number": (10**12, 10**12 + 1, "1000000000001, expected 1000000000000 (off by 1.0)"),
    "seven digits": (0.1, 0.1000001, "0.1000001, expected 0.1 (off by 1e-07)"),
    "half of a large number": (1234567.5, 1234567.0, "expected 1234567.5 (off by -0.5)"),
    "seven digits of float32": (1.0, torch.tensor(1.00001), "1.0000100135803223, expected 1.0 (off by 1.00136e-05)"),
    "truth": (1, True, "True, expected 1"),
    "no truth": (True, 1, "1, expected True"),
    "text": (2, "2", "'2', expected 2"),
    "sign of infinity": (".inf", -math.inf, "-inf, expected inf"),
    "NaN": (1, math.nan, "nan, expected 1"),
    "inside": ([1, {"a": [2]}], [1, {"a": [3]}], "at [1]['a'][0]: 3, expected 2 (off by 1.0)"),
    "length": ([1], (1, 2), "2 items, expected 1"),
    "missing": ({"a": 1, "b": 2}, {"a": 1}, "no 'b', expected 2"),
    "extra": ({}, {"a": 1}, "'a' = 1, expected no 'a'"),
    "set": ([1, 2], {1, 3}, "at [1]: 3, expected 2"),
    "set of another size": ([1, 1], {1}, "1 items, expected 2"),
    "none": (0, None, "None, expected 0"),
    "one that is equal to all": (1, Liar(), "Liar object at 0x...>, expected 1"),
    "no repr": (1, Shouting(), "<Shouting whose repr raises RuntimeError>, expected 1"),
    "huge": (1, 10**3000, "expected 1 (off by inf)"),
    "shape": ([[1], 2], torch.tensor([1, 2]), "at [0]: 1, expected [1]"),
}


@pytest.mark.parametrize("case", LIKE)
def test_like(case: str) -> None:
    assert unlike(*LIKE[case]) == []


@pytest.mark.parametrize("case", UNLIKE)
def test_unlike_and_where(case: str) -> None:
    expected, actual, told = UNLIKE[case]
    (found,) = unlike(expected, actual)
    assert told in found


def test_tolerance_is_what_was_stated_and_no_more() -> None:
    assert unlike(100, 100.5, tolerance=0.5) == []
    assert unlike(100, 100.6, tolerance=0.5)
    assert unlike(100, 101, relative=0.01) == []
    assert unlike(100, 101.1, relative=0.01)
    assert unlike(0.3, 0.1 + 0.2, tolerance=0.0)
    assert unlike(".nan", 1.0, tolerance=1e9)
    assert unlike(1, 10**400, tolerance=1e9)


def test_values_that_keep_what_they_are_to_themselves_are_like_nothing() -> None:
    one, two = encode(Open(_hidden=1)), encode(Open(_hidden=1))
    assert differences(one, two)


def test_what_cannot_be_compared_is_told_apart_from_what_differs() -> None:
    for expected, actual, unseen in (
        ([1], [Liar()], [True]),
        ([1, 2], [Liar(), 3], [True, False]),
        ({"a": 1}, {"a": Liar()}, [True]),
        ([1], {object()}, [True]),
        ([1], {2}, [False]),
    ):
        assert [isinstance(one, Unseen) for one in unlike(expected, actual)] == unseen


def test_value_without_end_is_too_much() -> None:
    ring: list[Any] = []
    ring.append(ring)
    for value in (ring, list(range(30_000)), torch.zeros(200, 200)):
        with pytest.raises(TooMuch):
            encode(value)


def test_numbers_are_those_inside_and_not_the_shape() -> None:
    assert [*numbers_in(encode({"a": [1, "2", True, Point(3, 0.5)]}))] == [1, 3, 0.5]
    assert [*numbers_in(encode(torch.zeros(0, 3)))] == []


def test_text_of_a_value_is_bounded() -> None:
    assert len(shown(encode("x" * 10_000))) == 400
    assert shown(encode([Colour.RED, {"a": {1}}, Fraction(1, 4), set(), 1j])) == (
        "[Colour.RED, {'a': {1}}, 0.25, set(), complex(real=0.0, imag=1.0)]"
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(JSON)
def test_every_value_is_like_itself(value: Any) -> None:
    assert differences(encode(value), json.loads(json.dumps(encode(value), allow_nan=False)), tolerance=0.0) == []


@given(st.floats(allow_nan=False), st.floats(allow_nan=False), st.floats(0, 1e6))
def test_tolerance_is_a_distance(one: float, other: float, tolerance: float) -> None:
    near = one == other or abs(one - other) <= tolerance if math.isfinite(one - other) else None
    if near is not None:
        assert (not differences(encode(one), encode(other), tolerance=tolerance)) is near
