"""Tests that a class inherits are its own, from whichever file of the project they come."""

import json
from collections.abc import Callable

import pytest
from click.testing import Result
from to_trace import TASK

HALF = "from pkg.core import Half\n\n\n"
MIXIN = (
    "class HalfTests:\n    def test_of(self):\n        assert Half().of(2) == 1\n\n"
    "    def test_more(self):\n        assert Half().of(4) == 2\n"
)
CASE = "class CaseOfHalf({}, unittest.TestCase):\n    pass\n"
BOUND = TASK.replace(
    '"pkg.core:Half.of"}]', '"pkg.core:Half.of"}]\n    tests: ["tests/test_half.py::CaseOfHalf::test_of"]'
)
UNIT = "import unittest\n"
HEIR = CASE.format("HalfTests")
FILES: dict[str, dict[str, str | bytes]] = {
    "the same file": {"tests/test_half.py": UNIT + HALF + MIXIN + CASE.format("HalfTests")},
    "the package of the tests": {
        "tests/__init__.py": HALF + MIXIN, "tests/test_half.py": f"{UNIT}from . import HalfTests\n{HEIR}",
    },
    "a module beside it": {
        "tests/lent.py": HALF + MIXIN, "tests/test_half.py": f"{UNIT}from lent import HalfTests\n{HEIR}",
    },
    "a module by its name": {
        "tests/lent.py": HALF + MIXIN,
        "tests/test_half.py": f"{UNIT}import tests.lent as l\n{CASE.format('l.HalfTests')}",
    },
    "a re-export": {
        "tests/lent.py": HALF + MIXIN, "tests/__init__.py": "from .lent import HalfTests\n",
        "tests/test_half.py": f"{UNIT}from tests import HalfTests\n{HEIR}",
    },
    "a star": {
        "tests/lent.py": HALF + MIXIN, "tests/test_half.py": f"{UNIT}from .lent import *\n{HEIR}",
    },
    "outside of the tests": {
        "src/lent/__init__.py": HALF + MIXIN,
        "tests/test_half.py": f"{UNIT}from lent import HalfTests\n{HEIR}",
    },
    "twice over": {
        "tests/test_half.py": UNIT + HALF + MIXIN + "class More(HalfTests):\n    x = 1\n" + CASE.format("More"),
    },
}  # fmt: skip


def halves(result: Result) -> list[str]:
    found = json.loads(result.stdout)
    every = [*found["loose_tests"], *(test for row in found["rows"] for test in row["tests"])]
    return sorted({test["id"].partition("::")[2] for test in every if "half" in test["id"]})


@pytest.mark.parametrize("case", FILES)
def test_halves_a_base_are_those_of_its_heir(traced: Callable[..., Result], case: str) -> None:
    files = {"tasks/T1.yaml": BOUND, **FILES[case]}
    result = traced(files, "T1", "--format", "json")
    assert (result.exit_code, halves(result)) == (0, ["CaseOfHalf::test_more", "CaseOfHalf::test_of"]), result.stdout


@pytest.mark.parametrize("text", [
    CASE.format("HalfTests").replace("pass", "test_of = None"),
    CASE.format("HalfTests").replace("pass", "def test_of(self):\n        assert True").replace("_of(", "_else("),
    CASE.format("HalfTests").replace("HalfTests, ", ""),
])  # fmt: skip
def test_what_an_heir_has_not_is_dead(traced: Callable[..., Result], text: str) -> None:
    mixin = MIXIN if "None" in text else MIXIN.replace("test_of", "test_off")
    result = traced({"tasks/T1.yaml": BOUND, "tests/test_half.py": UNIT + HALF + mixin + text}, "T1")
    assert (result.exit_code, "tests/test_half.py::CaseOfHalf::test_of names no test" in result.stdout) == (1, True)


def test_base_that_is_collected_itself_keeps_its_tests(traced: Callable[..., Result]) -> None:
    text = HALF + MIXIN.replace("HalfTests", "TestHalf") + "class TestMore(TestHalf):\n    pass\n"
    result = traced({"tests/test_half.py": text}, "T1", "--format", "json")
    assert halves(result) == ["TestHalf::test_more", "TestHalf::test_of", "TestMore::test_more", "TestMore::test_of"]


def test_markers_are_inherited_with_the_tests(traced: Callable[..., Result]) -> None:
    marked = MIXIN.replace("class", "@pytest.mark.criterion('T1/AC2')\nclass")
    text = f"import pytest\n{UNIT}{HALF}{marked}{HEIR}"
    result = traced({"tests/test_half.py": text}, "T1")
    assert (result.exit_code, "CaseOfHalf::test_of" in result.stdout) == (0, True)


def test_class_that_extends_one_of_a_library_is_not_checked(traced: Callable[..., Result]) -> None:
    text = "from elsewhere import Suite\n\n\nclass CaseOfHalf(Suite):\n    pass\n"
    result = traced({"tasks/T1.yaml": BOUND, "tests/test_half.py": text}, "T1")
    assert (result.exit_code, "not checked: tasks/T1.yaml:10: T1/AC2" in result.stdout) == (3, True), result.stdout


def test_classes_that_extend_each_other_come_to_an_end(traced: Callable[..., Result]) -> None:
    files: dict[str, str | bytes] = {
        "tests/a.py": "from tests.b import *\nclass A(B): pass\n",
        "tests/b.py": "from tests.a import *\nclass B(A): pass\n",
        "tests/test_half.py": "from tests.a import A\nclass CaseOfHalf(A): pass\n",
    }
    assert traced({"tasks/T1.yaml": BOUND, **files}, "T1").exit_code == 1
