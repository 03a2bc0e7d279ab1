"""Tests that fail in a copy of the project although nothing in it is changed: by the place, or for want of others."""

from pathlib import Path

import pytest
from building import a_context, a_criterion, a_task, pytest_options, written

from gates.check import EvidenceSet
from gates.evidence.called_code import CalledCode
from gates.evidence.lines.executed_lines import ExecutedLines
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.pytest_run import PytestRun
from gates.proving.emptied_code import EmptiedCode, EmptiedSymbol

TASK = a_task(entry_points=[], criteria=[a_criterion()], measurements=[])
CORE = "RULES = {}\ndef double(x):\n    return x * RULES.get('factor', 2)\n"
SETS_UP = "from pkg import core\ndef test_rules():\n    core.RULES['factor'] = 3\n    assert core.RULES\n"
HEAD = "from pathlib import Path\nfrom pkg.core import RULES, double\n"
PLACE = (
    "def test_place():\n    assert Path(__file__).resolve().parents[1].name == 'project'\n    assert double(0) == 0\n"
)
ITSELF = "def test_it():\n    assert double(3) == double(3)\n"
NOTICES = "def test_it():\n    assert double(3) == 6\n"


def emptied(tmp_path: Path, tests: str, *, before: bool = False) -> EmptiedSymbol:
    files = {"pyproject.toml": pytest_options(), "pkg/__init__.py": "", "pkg/core.py": CORE,
             "tests/test_core.py": HEAD + tests,
             "tests/test_aaa.py": SETS_UP if before else "def test_more(): assert __name__\n"}  # fmt: skip
    context, evidence = a_context(written(tmp_path / "project", files)), EvidenceSet()
    for kind in (PytestRun, SourceTree, ExecutedLines, CalledCode, EmptiedCode):
        evidence.collect(kind, TASK, context)
    found = evidence.get(EmptiedCode)
    assert found, evidence.why_missing(EmptiedCode)
    return found.symbols[0]


def test_a_test_that_passes_only_after_another_is_not_judged(tmp_path: Path) -> None:
    found = emptied(tmp_path, "def test_it():\n    assert double(3) == 9\n", before=True)
    assert (found.why, found.noticed) == ("its tests do not pass in a copy, without the others", False)


@pytest.mark.parametrize(("others", "noticed"), [(ITSELF, False), (NOTICES, True)])
def test_a_test_that_fails_in_copies_switches_nothing_off(others: str, *, noticed: bool, tmp_path: Path) -> None:
    found = emptied(tmp_path, PLACE + others)
    assert (found.noticed, found.unnoticed) == (noticed, not noticed)


def test_a_test_that_fails_in_copies_and_stands_by_itself_is_not_judged(tmp_path: Path) -> None:
    found = emptied(tmp_path, PLACE)
    assert (found.why, found.aside) == (
        "its tests do not pass in a copy, without the others",
        ("tests/test_core.py::test_place",),
    )
