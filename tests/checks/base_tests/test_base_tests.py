"""The base's tests against a change, in real repositories: what a weakened test hides is found, honest work is not."""

from dataclasses import replace
from pathlib import Path

import pytest
from bar import committed, git
from building import a_context, written

from gates.check import EvidenceSet
from gates.checks.base_tests.collect import BaseTests
from gates.checks.base_tests.judge import judge
from gates.evidence.tests.pytest_run import PytestRun
from gates.model import Finding, Outcome
from gates.task import loading as spec

CORE = "def double(x):\n    return x * 2\n"
BROKEN = "def double(x):\n    return x * 2 + (x > 5)\n"
TEST = """\
import pytest
from pkg.core import double


@pytest.mark.parametrize(("x", "y"), [(1, 2), (7, 14)])
def test_double(x, y):
    assert double(x) == pytest.approx(y, rel=1e-6)
"""
FAILING = "\n\ndef test_old():\n    assert double(1) == 3\n"
MORE = "from pkg.core import double\n\n\ndef test_two():\n    assert double(2) == 4\n"
TWICE = "from pkg.core import twice\n\n\ndef test_it():\n    assert twice(1) == 2\n"
TASK = """\
id: T1
title: Doubling
implementation: [pkg]
tests: [tests]
criteria:
  - id: AC1
    text: It doubles
    code: [{symbol: "pkg.core:double"}]
    tests: [tests]
"""
BASE = {"pkg/__init__.py": "", "pkg/core.py": CORE, "tests/test_core.py": TEST, "tasks/T1.yaml": TASK,
        "tests/data.txt": "1"}  # fmt: skip
WEAKENED: dict[str, str] = {
    "expected_values_are_copied": TEST.replace("(7, 14)", "(7, 15)"),
    "rows_are_deleted": TEST.replace(", (7, 14)", ""),
    "a_tolerance_is_wider": TEST.replace("rel=1e-6", "rel=0.5"),
    "the_import_is_swapped": TEST.replace("from pkg.core import double", "double = lambda x: x * 2"),
    "a_test_is_skipped": TEST.replace("@pytest", "@pytest.mark.skip\n@pytest", 1),
    "the_file_is_emptied": "def test_nothing():\n    assert True\n",
}
COPIED = {"pkg/core.py": BROKEN, "tests/test_core.py": WEAKENED["expected_values_are_copied"]}
SHORTER = {"pkg/core.py": BROKEN, "tests/test_core.py": WEAKENED["rows_are_deleted"]}
HONEST: dict[str, dict[str, str]] = {
    "the code alone": {"pkg/core.py": "def double(x):\n    return x + x\n"},
    "one more test": {
        "tests/test_more.py": "from pkg.core import double\n\n\ndef test_two():\n    assert double(2) == 4\n"
    },
    "a test is written anew": {"tests/test_core.py": TEST.replace("test_double", "test_doubling")},
    "data beside the tests": {"tests/data.txt": "2"},
}


def judged(
    tmp_path: Path, change: dict[str, str], task: str = TASK, policy: str = "main", base: dict[str, str] = BASE
) -> list[Finding]:
    root = written(tmp_path / "project", base)
    committed(root)
    git(root, "branch", "-M", "main")
    git(root, "checkout", "-q", "-b", "change")
    written(root, {**change, "tasks/T1.yaml": task})
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", "change")
    asked, context = spec.load(root / "tasks/T1.yaml", root), replace(a_context(root), policy=policy)
    seen = EvidenceSet()
    for kind in (PytestRun, BaseTests):
        seen.collect(kind, asked, context)
        assert seen.get(kind) is not None, seen.why_missing(kind)
    return list(judge(asked, seen))


def test_a_weakened_test_does_not_hide_what_the_base_notices(tmp_path: Path) -> None:
    """Each file of tests is weakened in another way, and each is named with what it promised."""
    base = {**BASE, **{f"tests/test_{name}.py": TEST for name in WEAKENED}}
    change = {"pkg/core.py": BROKEN, **{f"tests/test_{name}.py": text for name, text in WEAKENED.items()}}
    found = judged(tmp_path, change, base={name: text for name, text in base.items() if name != "tests/test_core.py"})
    assert {(each.rule, each.outcome, each.criterion, each.blocks) for each in found} == {
        ("BL022", Outcome.FAILED, "AC1", True)
    }
    assert {each.subject for each in found} == {f"tests/test_{name}.py::test_double[7-14]" for name in WEAKENED}
    assert all(f'changes: ["{each.subject.partition("[")[0]}"]' in each.remediation for each in found)


PATCHED = """
import pytest, pkg.core, tests.test_core

@pytest.fixture(autouse=True)
def _good(monkeypatch):
    monkeypatch.setattr("tests.test_core.double", lambda x: x * 2)
"""


@pytest.mark.parametrize("name", ["tests/conftest.py", "pytest.ini"])
def test_what_the_change_adds_around_the_tests_does_not_help_it(name: str, tmp_path: Path) -> None:
    text = PATCHED if name.endswith("py") else "[pytest]\npython_functions = check_*\n"
    base = {**BASE, "tests/__init__.py": ""}
    (found,) = judged(tmp_path, {"pkg/core.py": BROKEN, name: text}, base=base)
    assert (found.outcome, found.criterion, found.blocks) == (Outcome.FAILED, "AC1", True)


@pytest.mark.parametrize("case", HONEST)
def test_honest_changes_pass(case: str, tmp_path: Path) -> None:
    (found,) = judged(tmp_path, HONEST[case])
    assert found.outcome is Outcome.PASSED


def test_a_change_of_behaviour_that_its_criterion_names_passes(tmp_path: Path) -> None:
    named = f"{TASK}    changes: ['tests/test_core.py::test_double']\n"
    (found,) = judged(tmp_path, COPIED, named)
    assert (found.outcome, "1 that fail are named" in found.message) == (Outcome.PASSED, True)


def test_without_a_policy_it_is_told_and_stops_nothing(tmp_path: Path) -> None:
    (found,) = judged(tmp_path, SHORTER, policy="")
    assert (found.outcome, found.blocks) == (Outcome.FAILED, False)


def test_a_module_that_is_gone_breaks_the_tests_that_import_it(tmp_path: Path) -> None:
    change = {"pkg/core.py": "def twice(x):\n    return x * 2\n", "tests/test_core.py": TWICE}
    found = judged(tmp_path, change)
    assert {(f.subject, f.actual) for f in found} == {
        (f"tests/test_core.py::test_double[{case}]", "not found") for case in ("1-2", "7-14")
    }


def test_what_failed_at_the_base_proves_nothing(tmp_path: Path) -> None:
    (found,) = judged(tmp_path, {"tests/test_core.py": TEST}, base={**BASE, "tests/test_core.py": f"{TEST}{FAILING}"})
    assert (found.outcome, found.actual) == (Outcome.PASSED, "3 ran")


def test_without_a_history_it_is_unknown_and_asks_nothing(tmp_path: Path) -> None:
    root = written(tmp_path / "project", BASE)
    (unseen,) = judge(spec.load(root / "tasks/T1.yaml", root), EvidenceSet(why="no history"))
    assert (unseen.outcome, unseen.leaves_open) == (Outcome.UNKNOWN, False)


GENERATED = {"pkg/__init__.py": "from pkg._version import version\n", ".gitignore": "_version.py\n*.bin\n"}


@pytest.mark.parametrize(("ignored", "outcome"), [("pkg/_version.py", Outcome.FAILED), ("/", Outcome.UNKNOWN)])
def test_what_a_build_generated_is_there_at_the_base_too(ignored: str, outcome: Outcome, tmp_path: Path) -> None:
    """Without the generated file no test runs at the base: what fails against the change is then undecided."""
    base = {**BASE, **GENERATED, "pkg/_version.py": "version = '1'\n"}
    if ignored == "/":  # the base lacks a file that this change adds, and the base's tests cannot be imported there
        base = {**BASE, **GENERATED, ".gitignore": ""}
    change = {**SHORTER, "pkg/_version.py": "version = '1'\n"}
    (found,) = judged(tmp_path, change, base=base)
    assert (found.outcome, found.criterion, found.rule) == (outcome, "AC1", "BL022")
    assert found.leaves_open or found.blocks
