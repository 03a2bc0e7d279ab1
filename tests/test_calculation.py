"""Calculations, edge cases and properties as a task file states them, and what is wrong in one."""

from pathlib import Path
from typing import get_args

import pytest
from building import ROOT

from gates.errors import UsageError
from gates.evidence._calculating.laws import LAWS
from gates.task import loading as spec
from gates.task.calculation import Law
from gates.task.task import Task

HEAD = "id: T1\ntitle: x\nimplementation: [pkg]\ncriteria: [{id: AC1, text: t}]\n"
CALL = "{name: n, call: pkg.core:f, "
OVER = "over: [{floats: [0, 1]}]"


def loaded(tmp_path: Path, text: str) -> Task:
    path = tmp_path / "T1.yaml"
    path.write_text(HEAD + text, encoding="utf-8")
    return spec.load(path, tmp_path)


def test_values_are_what_they_look_like(tmp_path: Path) -> None:
    row = '{args: [1e3, .inf, no, "2", [null, -0.0]], kwargs: {line: 3, x: {path: 1}}, expected: }'
    task = loaded(tmp_path, f"calculations: [{{call: pkg.core:f, table: [{row}]}}]\n")
    (case,) = task.calculations[0].table
    assert case.args == (1000.0, ".inf", "no", "2", [None, -0.0])
    assert case.kwargs == {"line": 3, "x": {"path": 1}}
    assert case.returns
    assert case.expected is None
    assert case.line == 5


@pytest.mark.parametrize(
    ("given", "arguments"),
    [("", (0,)), ("in: 1, ", (1,)), ("in: [n], ", ("n",)), ("in: n, ", ("n",))],
)
def test_argument_is_named_by_place_or_name(tmp_path: Path, given: str, arguments: tuple[object, ...]) -> None:
    over = "over: [{floats: [0, 1]}, {name: n, integers: [1, 2]}]"
    task = loaded(tmp_path, f"properties: [{CALL}{given}property: increasing, {over}}}]\n")
    assert task.properties[0].arguments == arguments


def test_two_arguments_are_swapped_where_none_is_named(tmp_path: Path) -> None:
    task = loaded(tmp_path, f"properties: [{CALL}property: symmetric, over: [{{booleans: true}}, {{text: true}}]}}]\n")
    assert task.properties[0].arguments == (0, 1)


@pytest.mark.parametrize(
    "row",
    [
        "{expected: 0, tolerance: 1}",  # all that is expected is 0
        "{expected: [0.0, 3], tolerance: 1}",
        "{expected: {a: 1, b: x}, tolerance: 2}",
        "{expected: true, tolerance: 0.5}",
        "{raises: Exception, says: no number}",
        "{expected: 1e-9, tolerance: 1e-6}, {expected: 5}",  # another case tells
    ],
)
def test_a_table_that_tells_numbers_from_zero_is_taken(tmp_path: Path, row: str) -> None:
    loaded(tmp_path, f"calculations: [{{call: pkg.core:f, table: [{row}]}}]\n")


WRONG = {
    f"edge_cases: [{CALL}args: [1]}}]": "5:14: expected what must come of the call: 'expected', 'raises'",
    f"edge_cases: [{CALL}raises: E, expected: 1}}]": "a call that raises returns nothing",
    f"edge_cases: [{CALL}expected: 1, says: x}}]": "'says' goes with 'raises' or 'warns'",
    f"edge_cases: [{CALL}finite: true, tolerance: 1}}]": "a tolerance goes with 'expected'",
    f"edge_cases: [{CALL}raises: Exception}}]": "'raises: Exception' is true of every error",
    f"edge_cases: [{CALL}expected: 2, tolerance: 2.0}}]": "the tolerance is as wide as what is expected",
    f"edge_cases: [{CALL}expected: [2, {{a: 1}}], relative: 1}}]": "a function that always gives 0 would pass",
    "calculations: [{call: pkg.core:f, table: [{args: [0], expected: 0}, {args: [1], expected: 1, tolerance: 1}]}]": (
        "5:16: the tolerance is as wide as what is expected"
    ),
    f"edge_cases: [{CALL}expected: 1, tolerance: -1}}]": "edge_cases[0].tolerance: expected greater than or equal",
    f"edge_cases: [{CALL}expectd: 1}}]": "5:42: unknown key 'expectd'; did you mean 'expected'?",
    f"edge_cases: [{CALL}expected: 1, criteria: [AC2]}}]": "5:66: unknown criterion 'AC2'; did you mean 'AC1'?",
    "edge_cases: [{name: n, call: pkg.core, expected: 1}]": "5:30: edge_cases[0].call: expected",
    "calculations: [{call: pkg.core:f, table: []}]": "'table' is empty",
    f"properties: [{CALL}property: monoton, {OVER}}}]": "expected 'increasing', 'decreasing'",
    f"properties: [{CALL}property: odd, over: []}}]": "'over' is empty",
    f"properties: [{CALL}property: odd, over: [{{floats: [2, 1]}}]}}]": "'floats' is empty: from 2 to 1",
    f"properties: [{CALL}property: odd, over: [{{floats: [.nan, 1]}}]}}]": "floats[0]: expected a valid number",
    f"properties: [{CALL}property: odd, over: [{{}}]}}]": "expected exactly one of 'floats'",
    f"properties: [{CALL}property: odd, over: [{{values: []}}]}}]": "'values' is empty",
    f"properties: [{CALL}property: odd, over: [{{floats: [0, 1], size: [1, 2]}}]}}]": "'size' goes with",
    f"properties: [{CALL}property: odd, in: 1, {OVER}}}]": "'in' names the argument 1, 'over' has 1 (from 0)",
    f"properties: [{CALL}property: symmetric, in: 0, {OVER}}}]": "symmetric speaks of 2 arguments",
    f"properties: [{CALL}property: inverse, {OVER}}}]": "needs the other function under 'with'",
    f"properties: [{CALL}property: odd, with: a:b, {OVER}}}]": "'with' goes with 'inverse' and 'equal'",
    f"properties: [{CALL}property: bounded, {OVER}}}]": "'bounds: [least, most]' goes with 'bounded'",
    f"properties: [{CALL}property: bounded, bounds: [2, 1], {OVER}}}]": "'bounds' are empty: from 2 to 1",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError) as error:
        loaded(tmp_path, text + "\n")
    assert WRONG[text] in str(error.value)
    assert str(error.value).startswith("T1.yaml:5:")


def test_every_law_of_the_task_file_can_be_tried_and_is_described() -> None:
    laws = set(get_args(Law))
    page = (ROOT / "docs/calculations.md").read_text(encoding="utf-8")
    assert laws == set(LAWS)
    assert [law for law in laws if f"`{law}`" not in page] == []


def test_example_of_the_page_is_a_task(tmp_path: Path) -> None:
    page = (ROOT / "docs/calculations.md").read_text(encoding="utf-8")
    example = page.partition("```yaml\n")[2].partition("```")[0].replace("AC5", "AC1")
    task = loaded(tmp_path, example)
    assert (len(task.calculations), len(task.edge_cases), len(task.properties)) == (1, 2, 1)
