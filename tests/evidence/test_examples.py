"""How often a property of Hypothesis was tried, in real runs: one example or two say next to nothing."""

from pathlib import Path

import pytest
from building import a_context, a_criterion, a_task, all_evidence, written

from gates.checks.criteria import tested as _criterion_tests
from gates.evidence.pytest_run import PytestRun
from gates.model import Outcome

TASK = a_task(entry_points=[], criteria=[a_criterion(tests=["tests"])], measurements=[])
OPTIONS = "[tool.pytest.ini_options]\naddopts = '-p no:anyio {}'\n"
PROFILE = "from hypothesis import settings\nsettings.register_profile('x', max_examples={}, database=None)\n"
HEAD = "import unittest\nfrom hypothesis import example, given, settings, strategies as st\n"
PROPERTY = HEAD + "@given(st.integers())\n{}def test_it(x): assert x + x == 2 * x\n"
FEW = {
    "by a profile": (1, PROPERTY.format(""), ""),
    "by a profile, without the plugin of Hypothesis": (1, PROPERTY.format(""), "-p no:hypothesispytest"),
    "by its own settings": (50, PROPERTY.format("@settings(max_examples=2)\n"), ""),
    "in unittest": (1, HEAD + "class TestIt(unittest.TestCase):\n    @given(st.integers())\n    def test_it(self, x):\n"
                    "        self.assertEqual(x + x, 2 * x)\n", ""),
}  # fmt: skip
ENOUGH = {
    "many": (50, PROPERTY.format(""), ""),
    "all that there are": (50, PROPERTY.replace("st.integers()", "st.just(1)").format(""), ""),
    "its own examples": (1, PROPERTY.format("@example(3)\n@example(4)\n"), ""),
    "no property": (1, "import os\ndef test_it(): assert os.getpid() > 0\n", ""),
}


def tried(folder: Path, most: int, code: str, options: str) -> tuple[int | None, Outcome, str]:
    files = {"pyproject.toml": OPTIONS.format(options), "tests/test_it.py": code, "pkg/__init__.py": "",
             "tests/conftest.py": PROFILE.format(most) + "settings.load_profile('x')\n"}  # fmt: skip
    run = PytestRun.collect(TASK, a_context(written(folder / "project", files)))
    (found,) = _criterion_tests.judge_tests(TASK, TASK.criteria[0], all_evidence(TASK, run))
    return run.tests[0].examples, found.outcome, found.message


@pytest.mark.parametrize("name", FEW)
def test_a_property_that_was_hardly_tried_leaves_its_criterion_open(name: str, tmp_path: Path) -> None:
    examples, outcome, message = tried(tmp_path, *FEW[name])
    assert (examples, outcome) == (2 if "own" in name else 1, Outcome.UNKNOWN)
    assert f"was tried with {examples} example" in message


@pytest.mark.parametrize("name", ENOUGH)
def test_a_property_that_was_tried_often_or_with_all_there_is_stands(name: str, tmp_path: Path) -> None:
    examples, outcome, _ = tried(tmp_path, *ENOUGH[name])
    assert (examples is None or examples >= 3, outcome) == (True, Outcome.PASSED)
