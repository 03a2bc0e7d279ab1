"""Tests that a class inherits in its file are its own; those from another file are not looked for."""

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


@pytest.mark.parametrize("lent", ["", "class Suite:\n    def test_of(self):\n        assert True\n"])
def test_class_that_extends_one_of_another_file_is_not_checked(traced: Callable[..., Result], lent: str) -> None:
    text = "from tests.lent import Suite\n\n\nclass CaseOfHalf(Suite):\n    pass\n"
    result = traced({"tasks/T1.yaml": BOUND, "tests/test_half.py": text, "tests/lent.py": lent}, "T1")
    assert (result.exit_code, "not checked: tasks/T1.yaml:10: T1/AC2" in result.stdout) == (3, True), result.stdout


def test_classes_that_extend_each_other_come_to_an_end(traced: Callable[..., Result]) -> None:
    text = "class CaseOfHalf(B): pass\nclass B(CaseOfHalf): pass\n"
    assert traced({"tasks/T1.yaml": BOUND, "tests/test_half.py": text}, "T1").exit_code == 1
