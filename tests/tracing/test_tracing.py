"""The matrix from task files and sources alone: found, dead, missing, unread."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from bar import committed, git
from building import ROOT
from click.testing import CliRunner, Result
from to_trace import CORE, MARKED, TASK

from gates.cli import cli


def test_each_criterion_has_its_lines_and_its_tests(traced: Callable[..., Result]) -> None:
    result = traced(None, "T1")
    assert result.exit_code == 0
    assert "pkg/core.py:1-2" in result.stdout
    assert "tests/test_core.py:4-5" in result.stdout
    assert "pkg/core.py:6-7" in result.stdout
    assert "TestHalf::test_of" in result.stdout


def test_page_links_to_the_commit_only_while_nothing_differs_from_it(
    traced: Callable[..., Result], tmp_path: Path
) -> None:
    traced(None)
    committed(tmp_path / "project")
    git(tmp_path / "project", "remote", "add", "origin", "https://github.com/owner/name")
    assert "](https://github.com/owner/name/blob/" in traced(None, "T1", "--format", "markdown").stdout
    changed = traced({"pkg/core.py": f"A = 1\n{CORE}"}, "T1", "--format", "markdown")
    assert ("`pkg/core.py:2-3`" in changed.stdout, "https://" in changed.stdout) == (True, False)


PATTERNS = TASK.replace('{symbol: "pkg.core:double"}', "{pattern: 2 * $N}").replace(
    '{symbol: "pkg.core:Half.of"}', '{pattern: "$N / 2", in: pkg/core.py}, {pattern: return $X, at_least: 3}'
)


@pytest.mark.parametrize("part", [
    "calculations:\n  - {call: 'pkg.core:spare', criteria: [AC2], table: [{args: [1], expected: 1}]}\n",
    "training_steps:\n  - {call: 'pkg.core:spare', criteria: [AC2]}\n",
])  # fmt: skip
def test_criterion_that_a_call_stands_for_lacks_no_test(traced: Callable[..., Result], part: str) -> None:
    result = traced({"tests/test_half.py": "def helper():\n    pass\n", "tasks/T1.yaml": TASK + part}, "T1")
    assert (result.exit_code, "    call     " in result.stdout) == (0, True), result.stdout


def test_each_place_that_fits_a_pattern_is_traced(traced: Callable[..., Result]) -> None:
    result = traced({"tasks/T1.yaml": PATTERNS}, "T1", "--format", "json")
    found = [[(c["name"], c["location"]["line"]) for c in row["code"]] for row in json.loads(result.stdout)["rows"]]
    assert (result.exit_code, found[0]) == (0, [("pattern 2 * $N", 2)])
    assert found[1] == [("pattern $N / 2 in pkg/core.py", 7), *(("pattern return $X", line) for line in (2, 7, 11))]


def test_method_that_holds_what_a_pattern_fits_belongs_to_its_criterion(traced: Callable[..., Result]) -> None:
    task = TASK.replace('{symbol: "pkg.core:Half.of"}', "{pattern: $N / 2}")
    found = json.loads(traced({"tasks/T1.yaml": task}, "T1", "--format", "json").stdout)
    assert [function["name"] for function in found["loose_code"]] == ["spare"]


def test_tests_and_code_without_a_criterion_are_named(traced: Callable[..., Result]) -> None:
    loose = "def test_nothing():\n    assert True\n"
    found = json.loads(traced({"tests/test_loose.py": loose}, "T1", "--format", "json").stdout)
    assert [test["id"] for test in found["loose_tests"]] == ["tests/test_loose.py::test_nothing"]
    assert [function["name"] for function in found["loose_code"]] == ["spare"]


@pytest.mark.parametrize(
    ("changes", "exit_code", "said"),
    [
        ({"pkg/core.py": "def twice(n):\n    return 2 * n\n"}, 1, "dead reference: tasks/T1.yaml:8: T1/AC1: pkg.core"),
        ({"tests/test_core.py": "x = 1\n"}, 1, "T1/AC1: tests/test_core.py names no test"),
        ({"tests/test_half.py": MARKED.replace("AC2", "AC3")}, 1, "marked for 'T1/AC3', which does not exist; did"),
        ({"tests/test_half.py": MARKED.replace("T1/", "T1-")}, 1, "tests/test_half.py:4: "),
        ({"tests/test_half.py": MARKED.replace("'T1/AC2'", "NAME")}, 3, "is not written as plain text"),
        ({"tests/test_half.py": "def helper():\n    pass\n"}, 3, "missing: tasks/T1.yaml:10: T1/AC2: no test"),
        ({"pkg/core.py": "def double(:\n"}, 3, "not checked: pkg/core.py"),
        ({"pkg/core.py": b"\xff\xfe bad"}, 3, "not checked: pkg/core.py"),
        ({"pkg/core.py": "x = '" + "a" * 5_000_000 + "'\n"}, 3, "bytes, more than"),
        ({"tests/test_half.py": "def test_of(:\n"}, 3, "not checked: tests/test_half.py"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    traced: Callable[..., Result], changes: dict[str, str | bytes], exit_code: int, said: str
) -> None:
    result = traced(changes, "T1")
    assert (result.exit_code, said in result.stdout) == (exit_code, True), result.stdout


def test_markers_of_modules_and_of_parameters_count(traced: Callable[..., Result]) -> None:
    module = "import pytest\n\npytestmark = [pytest.mark.criterion('T1/AC2')]\n\n\ndef test_of():\n    assert True\n"
    param = (
        "from pytest import mark, param\n\n\n@mark.parametrize('n', [param(1, marks=mark.criterion('T1/AC2'))])\n"
        "def test_of(n):\n    assert n\n"
    )
    for source in (module, param):
        assert traced({"tests/test_half.py": source}, "T1").exit_code == 0


def test_marker_under_a_name_of_its_own_counts(traced: Callable[..., Result]) -> None:
    named = (
        "import pytest\n\nhalf = pytest.mark.criterion('T1/AC2')\nof = pytest.mark.criterion\n\n\n@half\n"
        "def test_of():\n    assert True\n\n\n@of('T1/AC2')\ndef test_more():\n    assert True\n"
    )
    result = traced({"tests/test_half.py": named}, "T1")
    assert (result.exit_code, "test_of" in result.stdout, "test_more" in result.stdout) == (0, True, True)


def test_marker_that_names_its_criterion_as_id_counts(traced: Callable[..., Result]) -> None:
    text = "import pytest\n\n\n@pytest.mark.criterion({})\ndef test_of():\n    assert True\n"
    found = {
        given: traced({"tests/test_half.py": text.format(given)}, "T1")
        for given in ("id='T1/AC2'", "id='T1/AC9'", "'T1/AC2', reason='half'", "reason='half'")
    }
    assert [result.exit_code for result in found.values()] == [0, 1, 0, 1]
    assert "is marked for 'T1/AC9', which does not exist" in found["id='T1/AC9'"].stdout
    assert "names no criterion" in found["reason='half'"].stdout


def test_marker_that_names_nothing_is_a_dead_reference(traced: Callable[..., Result]) -> None:
    text = "import pytest\n\n\n@pytest.mark.{}\ndef test_of():\n    assert True\n"
    for bare in ("criterion", "criterion()"):
        result = traced({"tests/test_more.py": text.format(bare)}, "T1")
        assert (result.exit_code, "names no criterion" in result.stdout) == (1, True)


@pytest.mark.parametrize("base", ["Suite", "tests.lent.Suite", "unittest.TestCase"])
def test_tests_that_a_class_inherits_are_not_checked(traced: Callable[..., Result], base: str) -> None:
    bound = TASK.replace('Half.of"}]', 'Half.of"}]\n    tests: ["tests/test_half.py::CaseOfHalf::test_of"]')
    text = f"import tests.lent, unittest\n\n\nclass CaseOfHalf({base}):\n    pass\n"
    result = traced({"tasks/T1.yaml": bound, "tests/test_half.py": text}, "T1")
    dead = base == "unittest.TestCase"  # nothing to inherit
    assert (result.exit_code, "not checked: tasks/T1.yaml:10: T1/AC2" in result.stdout) == (1 if dead else 3, not dead)


def test_a_broken_task_file_is_told_and_the_others_are_traced(traced: Callable[..., Result]) -> None:
    result = traced({"tasks/T2.yaml": "id: T2\n"})
    assert result.exit_code == 2
    assert "T1  2 criteria, 2 with code, 2 with evidence, 0 gaps" in result.stdout
    assert "tasks/T2.yaml:1:1" in result.stderr


def test_files_of_one_id_are_told(traced: Callable[..., Result]) -> None:
    result = traced({"tasks/other.yaml": TASK})
    assert (result.exit_code, "tasks/T1.yaml, tasks/other.yaml: each has the id 'T1'" in result.stderr) == (2, True)
    assert "2 criteria of 1 task" in result.stdout


def test_markdown_is_a_table_in_which_names_are_no_markup(traced: Callable[..., Result], tmp_path: Path) -> None:
    changes: dict[str, str | bytes] = {"tasks/T1.yaml": TASK.replace("Double a number", "Double | <b>x</b>")}
    result = traced(changes, "T1", "--format", "markdown", "--out", str(tmp_path / "matrix.md"))
    page = (tmp_path / "matrix.md").read_text(encoding="utf-8")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "| **AC1** Double \\| &lt;b>x&lt;/b> | `pkg.core:double` `pkg/core.py:1-2` |" in page


def test_this_projects_own_task_has_no_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(cli, ["trace", "T035"])
    assert result.exit_code == 0, result.stdout


def test_reason_is_given_where_there_is_nothing_to_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(cli, ["trace"])
    assert (ended.exit_code, "no task file (*.yaml) in 'tasks'; write tasks/ID.yaml" in ended.stderr) == (3, True)
