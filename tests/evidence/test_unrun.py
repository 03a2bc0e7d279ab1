"""Tests that stand for a criterion by a marker or by their file, and that never ran, in real runs of pytest."""

from pathlib import Path

import pytest
from building import a_context, a_criterion, a_task, all_evidence, pytest_options, written

from gates.checks.criteria import tested as _criterion_tests
from gates.evidence.tests.pytest_run import PytestRun
from gates.model import Finding, Outcome
from gates.task.task import Task

HEAD = "import pytest\nfrom pkg import same\n"
ZERO = "def test_zero(): assert same(0) == 0\n"
MARK = '@pytest.mark.criterion("T1/AC1")\n'
RAN = HEAD + MARK + "def test_ran(): assert same(1) == 1\n"
MORE = HEAD + MARK + "def test_more(): assert same(2) == 2\n"
IN_CLASS = (
    HEAD + "class Contract:\n    def test_zero(self): assert same(0) == 0\n    def test_more(self): assert same(1)\n"
)
BY_MARKER = {
    "ignored": ({"tests/conftest.py": 'collect_ignore = ["test_more.py"]\n', "tests/test_more.py": MORE}, "collected"),
    "skipped as a whole": (
        {"tests/test_more.py": MORE.replace(HEAD, 'import pytest\npytest.importorskip("none_such")\n')}, "as a whole"),
    "outside of the tests of the task": ({"more/test_more.py": MORE}, "outside of the 'tests'"),
    "in a branch": ({"tests/test_more.py": MORE.replace(MARK, "if same(0):\n  " + MARK + "  ")}, "never planned"),
    "in a class that nobody collects": (
        {"tests/test_more.py": HEAD + "class More:\n  pytestmark = pytest.mark.criterion('T1/AC1')\n"
         "  def test_more(self): assert same(2) == 2\n"}, "never planned"),
}  # fmt: skip
BY_FILE = {
    "in a branch": HEAD + ZERO + "if same(0):\n    def test_more(): assert same(1)\n",
    "taken away below": HEAD + ZERO + "def test_more(): assert same(1)\ntest_more = None\n",
    "switched off in a class that inherits it": IN_CLASS + "class TestIt(Contract):\n    test_more = None\n",
}
NOTHING_MISSED = {
    "the other branch": HEAD + "if same(0):\n    def test_it(): assert 1\nelse:\n    def test_it(): assert same(2)\n",
    "inherited": IN_CLASS + "class TestIt(Contract):\n    pass\n",
    "switched off in one": IN_CLASS + "class TestIt(Contract):\n    test_more = None\nclass TestB(Contract): 0\n",
    "a class for others": HEAD + "class Base:\n    @pytest.mark.criterion('T1/AC1')\n"
    "    def test_it(self): raise NotImplementedError\n"
    "class TestIt(Base):\n    def test_it(self): assert same(1)\n",
    "no class of tests": HEAD + "class Client:\n    def test_connection(self): return 1\n"
    "def test_it(): assert same(Client().test_connection())\n",
}


def judged(folder: Path, files: dict[str, str], *, by_file: bool = False, **task: object) -> list[Finding]:
    asked: Task = a_task(
        entry_points=[], measurements=[], criteria=[a_criterion(tests=["tests"] if by_file else [])], **task
    )
    given = {"pyproject.toml": pytest_options(), "pkg/__init__.py": "def same(x): return x\n", **files}
    run = PytestRun.collect(asked, a_context(written(folder / "project", given)))
    return [*_criterion_tests.judge_tests(asked, asked.criteria[0], all_evidence(asked, run))]


@pytest.mark.parametrize("name", BY_MARKER)
def test_a_marked_test_that_never_ran_leaves_its_criterion_open(name: str, tmp_path: Path) -> None:
    files, why = BY_MARKER[name]
    (found,) = judged(tmp_path, {"tests/test_ran.py": RAN, **files})
    assert (found.outcome, found.level.value) == (Outcome.UNKNOWN, "must")
    assert "test_more" in found.message
    assert why in found.message


@pytest.mark.parametrize("name", BY_FILE)
def test_a_test_of_a_bound_file_that_never_ran_leaves_its_criterion_open(name: str, tmp_path: Path) -> None:
    (found,) = judged(tmp_path, {"tests/test_it.py": BY_FILE[name]}, by_file=True)
    assert (found.outcome, "test_more" in found.message) == (Outcome.UNKNOWN, True), found.message


@pytest.mark.parametrize("name", NOTHING_MISSED)
def test_a_test_that_ran_in_another_place_is_missed_nowhere(name: str, tmp_path: Path) -> None:
    (found,) = judged(tmp_path, {"tests/test_it.py": NOTHING_MISSED[name]}, by_file=True)
    assert found.outcome is Outcome.PASSED, found.message


@pytest.mark.parametrize("beside", [".venv/lib", "env/lib", "other", "tests"])
def test_markers_of_other_projects_and_criteria_are_none_of_ours(beside: str, tmp_path: Path) -> None:
    files = {f"{beside}/test_more.py": MORE.replace("AC1", "AC7") if beside == "tests" else MORE,
             "env/pyvenv.cfg": "", "other/tasks/T1.yaml": ""}  # fmt: skip
    (found,) = judged(tmp_path, {"tests/test_ran.py": RAN, **files})
    assert found.outcome is Outcome.PASSED, found.message
