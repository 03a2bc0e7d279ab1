"""Assertions in modules that pytest does not rewrite, in real runs: counted in helpers, and for unittest anywhere."""

from pathlib import Path

import pytest
from building import a_context, a_criterion, a_task, all_evidence, pytest_options, written

from gates.checks.criteria import tested as _criterion_tests
from gates.evidence._beside_tests import files_beside_tests
from gates.evidence.pytest_run import PytestRun
from gates.model import Finding, Outcome

TASK = a_task(entry_points=[], criteria=[a_criterion(tests=["tests"])], measurements=[])
CODE = "def same(x): return x\n"
INHERITS = "import unittest\nfrom {} import Mixin\nclass TestIt({}): pass\n"
METHODS = "from pkg import same\nclass Mixin:\n    def test_it(self): self.assertEqual(same(3), 3)\n"
PLAIN = '"""Shared."""\nfrom __future__ import annotations\nfrom pkg import same\n\nclass Mixin:\n'
ASSERTS = PLAIN + "    def test_it(self):\n        assert same(3) == 3\n"
IN_TESTS = INHERITS.format("tests", "Mixin, unittest.TestCase")
COUNTED = {
    "methods in the package of the tests": {"tests/__init__.py": METHODS, "tests/test_it.py": IN_TESTS},
    "asserts in the package of the tests": {
        "tests/__init__.py": ASSERTS, "tests/test_it.py": INHERITS.format("tests", "Mixin")},
    "methods that a protocol states": {
        "tests/__init__.py": "from typing import Protocol\nclass Has(Protocol):\n"
        "    def assertEqual(self, a, b) -> None: ...\n" + METHODS.replace("Mixin", "Mixin(Has)"),
        "tests/test_it.py": INHERITS.format("tests", "unittest.TestCase, Mixin")},
    "a module beside the tests": {
        "tests/shared.py": ASSERTS, "tests/test_it.py": INHERITS.format("shared", "Mixin")},
    "a helper that is called": {
        "tests/shared.py": "def is_three(x):\n    assert x == 3\n",
        "tests/test_it.py": "import shared\nfrom pkg import same\ndef test_it(): shared.is_three(same(3))\n"},
    "methods in a module far away": {
        "shared.py": METHODS, "tests/test_it.py": INHERITS.format("shared", "Mixin, unittest.TestCase")},
    "methods without any rewriting": {
        "pyproject.toml": pytest_options("--assert=plain"), "tests/test_it.py": METHODS.replace(
            "class Mixin:", "import unittest\nclass TestIt(unittest.TestCase):")},
}  # fmt: skip


def run_in(tmp_path: Path, files: dict[str, str]) -> PytestRun:
    given = {"pyproject.toml": pytest_options("-p no:cacheprovider"), "pkg/__init__.py": CODE, **files}
    return PytestRun.collect(TASK, a_context(written(tmp_path / "project", given)))


def of_criterion(run: PytestRun) -> Finding:
    (found,) = _criterion_tests.judge_tests(TASK, TASK.criteria[0], all_evidence(TASK, run))
    return found


@pytest.mark.parametrize("name", COUNTED)
def test_an_assertion_counts_wherever_it_is_written(name: str, tmp_path: Path) -> None:
    run = run_in(tmp_path, COUNTED[name])
    (test,) = run.tests
    assert (run.complete, test.executed, test.swallowed) == (True, 1, False), run.process.stdout.tail
    assert of_criterion(run).outcome is Outcome.PASSED


def test_what_a_helper_says_of_a_failure_is_as_without_us(tmp_path: Path) -> None:
    files = {"tests/shared.py": "def is_three(x):\n    assert x == 3\n",
             "tests/test_it.py": "import pytest, shared\ndef test_it():\n    with pytest.raises(AssertionError) as e:\n"
             "        shared.is_three(4)\n    assert str(e.value) == ''\n"}  # fmt: skip
    (test,) = run_in(tmp_path, files).tests
    assert test.passed, test


def test_a_helper_in_which_all_holds_asserts_nothing(tmp_path: Path) -> None:
    shared = PLAIN + "    def test_it(self):\n        assert same\n"
    run = run_in(tmp_path, {"tests/shared.py": shared, "tests/test_it.py": INHERITS.format("shared", "Mixin")})
    shared = PLAIN + "    def test_it(self):\n        same(1)\n        assert 1 == 1\n"
    other = run_in(tmp_path / "b", {"tests/shared.py": shared, "tests/test_it.py": INHERITS.format("shared", "Mixin")})
    assert (run.tests[0].executed, other.tests[0].executed) == (1, 0)
    assert of_criterion(other).outcome is Outcome.UNKNOWN


def test_what_nobody_counts_is_named_with_its_module(tmp_path: Path) -> None:
    run = run_in(tmp_path, {"far/shared.py": ASSERTS, "tests/test_it.py": INHERITS.format("far.shared", "Mixin")})
    found = of_criterion(run)
    assert (found.outcome, found.actual) == (Outcome.UNKNOWN, "assertions not counted")
    assert '`pytest.register_assert_rewrite("far.shared", "shared")` in the first' in found.remediation
    conftest = 'import pytest\npytest.register_assert_rewrite("far.shared", "shared")\n'
    files = {"far/shared.py": ASSERTS, "tests/test_it.py": INHERITS.format("far.shared", "Mixin")}
    assert of_criterion(run_in(tmp_path / "b", {**files, "tests/conftest.py": conftest})).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("tests", "implementation", "beside"),
    [
        ("tests/unit", "pkg", ["tests/helper.py", "tests/unit/test_it.py"]),
        ("tests/unit/test_it.py", "pkg", ["tests/helper.py", "tests/unit/test_it.py"]),
        ("pkg/tests", "pkg", ["pkg/tests/mixins.py"]),
        (".", "pkg", []),
        ("test_top.py", "pkg", []),
    ],
)  # fmt: skip
def test_only_folders_of_tests_hold_helpers(tests: str, implementation: str, beside: list[str], tmp_path: Path) -> None:
    names = ["pkg/core.py", "pkg/tests/mixins.py", "tests/helper.py", "tests/unit/test_it.py", "test_top.py"]
    root = written(tmp_path / "p", dict.fromkeys(names, "x = 1\n"))
    task = a_task(implementation=[implementation], tests=[tests], criteria=[a_criterion(tests=[])])
    assert [path.relative_to(root).as_posix() for path in files_beside_tests(task, root)] == beside
