"""Limits and lists of cases that tests import: what is lower there is lower in the tests."""

import dataclasses
from pathlib import Path

import pytest
from bar import committed
from building import a_context, a_project, written

from gates.evidence.goalposts import Goalposts
from gates.task import loading as spec

USES = (
    "from pkg.core import double\n{}\n\n\n"
    "def test_double():\n    for case in {}CASES:\n        assert double(case) < {}LIMIT\n"
)
ASKED = "LIMIT = 10\nCASES = [1, 2]\n"
LESS = "LIMIT = 100\nCASES = [1]\n"
WIDER = "tests/test_core.py::test_double (a wider limit): double(case) < 10 -> double(case) < 100"
FEWER = "tests/test_core.py::test_double loop over case: 2 -> 1: without 2"


def moves(root: Path, before: dict[str, str], after: dict[str, str]) -> list[str]:
    project = a_project(root, before)
    committed(project)
    written(project, after)
    context = dataclasses.replace(a_context(project), base="HEAD")
    return [str(move) for move in Goalposts.collect(spec.load(project / "tasks/T1.yaml", project), context).moves]


IMPORTS = {
    "names": ("from bar import CASES, LIMIT", "", "tests/bar.py"),
    "all names": ("from bar import *", "", "tests/bar.py"),
    "a module": ("import bar", "bar.", "tests/bar.py"),
    "a module by another name": ("import bar as b", "b.", "tests/bar.py"),
    "a module of a package": ("from tests.support import bar", "bar.", "tests/support/bar.py"),
    "a module by its whole name": ("import tests.support.bar", "tests.support.bar.", "tests/support/bar.py"),
    "a package": ("from tests.support import CASES, LIMIT", "", "tests/support/__init__.py"),
    "a neighbour": ("from .bar import CASES, LIMIT", "", "tests/bar.py"),
    "the package itself": ("from . import CASES, LIMIT", "", "tests/__init__.py"),
}


@pytest.mark.parametrize("case", IMPORTS)
def test_imported_limit_and_cases_that_ask_for_less_are_named(case: str, tmp_path: Path) -> None:
    line, owner, path = IMPORTS[case]
    uses = {"tests/test_core.py": USES.format(line, owner, owner)}
    assert moves(tmp_path, {**uses, path: ASKED}, {path: LESS}) == [FEWER, WIDER]


def test_what_is_imported_through_another_file_is_compared(tmp_path: Path) -> None:
    uses = {"tests/test_core.py": USES.format("from through import CASES, most as LIMIT", "", "")}
    through = "from bar import CASES, LIMIT as most\nimport through\n"
    assert moves(tmp_path, {**uses, "tests/through.py": through, "tests/bar.py": ASKED}, {"tests/bar.py": LESS}) == [
        FEWER, WIDER,
    ]  # fmt: skip


def test_limit_of_a_class_and_cases_of_a_parametrization_are_compared(tmp_path: Path) -> None:
    test = (
        "import pytest\nfrom bar import CASES, Limits\nfrom pkg.core import double\n\n\n"
        "@pytest.mark.parametrize('x', CASES)\ndef test_double(x):\n    assert double(x) < Limits.MOST\n"
    )
    before, after = ("CASES = {}\n\n\nclass Limits:\n    MOST = {}\n".format(*one) for one in (([1, 2], 9), ([1], 99)))
    assert moves(tmp_path, {"tests/test_core.py": test, "tests/bar.py": before}, {"tests/bar.py": after}) == [
        "tests/test_core.py::test_double cases of x: 2 -> 1: without 2",
        "tests/test_core.py::test_double (a wider limit): double(x) < 9 -> double(x) < 99",
    ]


NO_LESS = {
    "more": {"tests/bar.py": "LIMIT = 5\nCASES = [1, 2, 3]\n"},
    "other lines": {"tests/bar.py": f"# limits\n\n{ASKED}OTHER = 1\n"},
    "moved": {"tests/bar.py": "from limits import *\n", "tests/limits.py": ASKED},
    "moved into the test": {
        "tests/bar.py": "", "tests/test_core.py": USES.replace("{}\n\n", f"{ASKED}\n", 1).format("", ""),
    },
    "computed now": {"tests/bar.py": "import os\nLIMIT = len(os.sep) * 10\nCASES = [*range(1, 3)]\n"},
    "not read": {"tests/bar.py": "("},
}  # fmt: skip


@pytest.mark.parametrize("case", NO_LESS)
def test_imported_values_that_ask_for_as_much_are_none_of_our_business(case: str, tmp_path: Path) -> None:
    uses = {"tests/test_core.py": USES.format("from bar import CASES, LIMIT", "", "")}
    assert moves(tmp_path, {**uses, "tests/bar.py": ASKED}, NO_LESS[case]) == []


def test_limit_beside_the_tests_that_the_task_names_is_compared(tmp_path: Path) -> None:
    task = a_project(tmp_path / "of").joinpath("tasks/T1.yaml").read_text(encoding="utf-8")
    uses = {
        "tests/test_core.py": USES.format("from bar import CASES, LIMIT", "", ""),
        "tasks/T1.yaml": task.replace("tests: [tests]", "tests: [tests/test_core.py]"),
    }
    assert moves(tmp_path / "p", {**uses, "tests/bar.py": ASKED}, {"tests/bar.py": LESS}) == [FEWER, WIDER]
