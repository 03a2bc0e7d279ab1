"""Calculations and edge cases as a task file states them, and what is wrong in one."""

from pathlib import Path

import pytest
from building import ROOT, loaded, refused

from gates.checks.calculations.spec import Calculation, EdgeCase

HEAD = "id: T1\ntitle: x\nimplementation: [pkg]\ncriteria: [{id: AC1, text: t}]\n"
CALL = "{name: n, call: pkg.core:f, "


def test_values_are_what_they_look_like(tmp_path: Path) -> None:
    row = '{args: [1e3, .inf, no, "2", [null, -0.0]], kwargs: {line: 3, x: {path: 1}}, expected: }'
    other = "{args: [yes], expected: [true, {a: 0x1}]}"
    task = loaded(tmp_path, f"{HEAD}calculations: [{{call: pkg.core:f, table: [{row}, {other}]}}]\n")
    case, typed = task.part(Calculation)[0].table
    assert case.args == (1000.0, ".inf", "no", "2", [None, -0.0])
    assert case.kwargs == {"line": 3, "x": {"path": 1}}
    assert case.returns
    assert case.expected is None
    assert case.line == 5
    assert (typed.args, typed.expected) == (("yes",), [True, {"a": "0x1"}])


@pytest.mark.parametrize(
    "row",
    [
        "{expected: 0, tolerance: 1}",  # all that is expected is 0
        "{expected: [0.0, 3], tolerance: 1}",
        "{expected: {a: 1, b: x}, tolerance: 2}",
        "{expected: true, tolerance: 0.5}",
        "{expected: 1e-9, tolerance: 1e-6}, {expected: 5}",  # another case tells
    ],
)
def test_a_table_that_tells_numbers_from_zero_is_taken(tmp_path: Path, row: str) -> None:
    loaded(tmp_path, f"{HEAD}calculations: [{{call: pkg.core:f, table: [{row}]}}]\n")


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
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str) -> None:
    said = refused(tmp_path, f"{HEAD}{text}\n")
    assert (said.startswith("5:"), WRONG[text] in said) == (True, True), said


def test_example_of_the_page_is_a_task(tmp_path: Path) -> None:
    page = (ROOT / "docs/calculations.md").read_text(encoding="utf-8")
    task = loaded(tmp_path, HEAD + page.partition("```yaml\n")[2].partition("```")[0].replace("AC5", "AC1"))
    assert (len(task.part(Calculation)), len(task.part(EdgeCase))) == (1, 2)
