"""Functions that assert something for tests of other files: what they ask less for is named, where they stand."""

import pytest

from gates.evidence._goalposts import tests
from gates.evidence._goalposts.written_tests import written_tests

HELPER = "def check(a, b):\n    assert a == b\n"
USES = "from tests.checks import check\n\ndef test_a():\n    check(f(), 1)\n"


def moves(before: dict[str, str], after: dict[str, str]) -> list[str]:
    files = ({path: written_tests(text.encode()) for path, text in state.items()} for state in (before, after))
    return [str(move) for move in tests.compare(*files)]


LESS = {
    "weaker": ("def check(a, b):\n    assert a is not None\n",
               "tests/checks.py::check (a weaker comparison): a == b -> a is not None"),
    "gone": ("def check(a, b):\n    print(a)\n", "tests/checks.py::check assertion: a == b -> removed"),
    "emptied": ("def check(a, b):\n    pass\n", "tests/checks.py::check assertion: a == b -> removed"),
    "conditional": ("def check(a, b):\n    if a:\n        assert a == b\n",
                    "tests/checks.py::check `a == b`: always -> only if a"),
}  # fmt: skip


@pytest.mark.parametrize("case", LESS)
def test_helper_of_another_file_that_asks_for_less_is_named(case: str) -> None:
    after, expected = LESS[case]
    assert moves({"tests/checks.py": HELPER}, {"tests/checks.py": after}) == [expected]


def test_method_that_tests_share_is_compared_too() -> None:
    before, after = (f"class Base:\n    def check(self, a):\n        assert a {sign} 1\n" for sign in ("==", "!="))
    (move,) = moves({"tests/base.py": before}, {"tests/base.py": after})
    assert move == "tests/base.py::Base::check (a weaker comparison): a == 1 -> a != 1"


@pytest.mark.parametrize(
    "after",
    [
        {"tests/checks.py": "def check(a, b):\n    assert a == b, 'no'\n    assert b\n"},
        {"tests/more.py": HELPER},
        {"tests/checks.py": "def other(a):\n    print(a)\n"},
        {},
    ],
)
def test_helper_that_asks_for_as_much_moved_or_left_is_none_of_our_business(after: dict[str, str]) -> None:
    assert moves({"tests/checks.py": HELPER}, after) == []


def test_helper_beside_its_tests_is_told_once() -> None:
    own = USES.partition("\n\n")[2]
    before, after = ({"tests/test_a.py": HELPER.replace("==", sign) + own} for sign in ("==", "!="))
    assert moves(before, after) == ["tests/test_a.py::test_a (a weaker comparison): a == b -> a != b"]
