"""Lines of each criterion, seen for real: which of its own tests executed which, and which none of them did."""

from pathlib import Path

import pytest
from building import a_criterion, a_project, a_task, all_evidence, evidence, gates, result
from covering import executed

from gates.evidence.source_tree import SourceTree
from gates.stages import _own_lines

CORE = '''\
import functools


def double(x):
    """Twice."""
    if x < 0:
        raise ValueError(
            "negative",
        )
    try:
        with open(__file__) as file:
            file.read()
    except OSError:
        return None
    finally:
        y = (
            x
            + x
        )

    @functools.wraps(double)
    def inner(z):
        global w
        v: int
        match z:
            case 0:
                return 0
            case _:
                pass
        for _ in range(z):
            continue
        return z

    return inner(y)


def half(x): return x / 2


class Counter:
    step = 1

    def __init__(self, start):
        self.value = start

    def up(self):
        self.value += self.step
        return self.value


LIMIT = 3
'''
TESTS = """\
import pytest
from pkg.core import Counter, double


@pytest.fixture(scope="module")
def counter():
    return Counter(1)


@pytest.mark.parametrize("x", [1, 2, 3, 4, 5])
def test_double(x):
    assert double(x) == 2 * x


def test_zero():
    assert double(0) == 0


def test_negative():
    with pytest.raises(ValueError):
        double(-1)


def test_up(counter):
    assert counter.up() == 2
"""
TASK = """\
id: T1
title: Doubling
implementation: [pkg]
tests: [tests]
criteria:
  - id: AC1
    text: Double
    code: [{symbol: 'pkg.core:double'}, {pattern: 'range($X)'}, {symbol: 'pkg.core:LIMIT'}, {symbol: 'pkg.core:none'}]
    tests: ['tests/test_core.py::test_double']
  - {id: AC2, text: Refuse, code: [{symbol: 'pkg.core:double'}], tests: ['tests/test_core.py::test_negative']}
  - {id: AC3, text: Count, code: [{symbol: 'pkg.core:Counter'}], tests: ['tests/test_core.py::test_up']}
  - {id: AC4, text: Nothing, code: [{symbol: 'pkg.core:half'}, {symbol: 'pkg.core:double'}]}
"""
ONE = "tests/test_core.py::test_double"
EXPECTED = [
    ("AC1", "pkg.core:double (pkg/core.py:4-34)", "11 of 14", f"{ONE}[1], {ONE}[2], {ONE}[3] and 2 more",
     "7-9, 14, 27"),
    ("AC1", "pattern range($X) (pkg/core.py:30)", "1 of 1", f"{ONE}[1], {ONE}[2], {ONE}[3] and 2 more", "-"),
    ("AC1", "pkg.core:LIMIT (pkg/core.py:51)", "-", "-", "no call runs a line of it"),
    ("AC1", "pkg.core:none", "-", "-", "no code was found"),
    ("AC2", "pkg.core:double (pkg/core.py:4-34)", "2 of 14", "tests/test_core.py::test_negative", "11-34"),
    ("AC3", "pkg.core:Counter (pkg/core.py:40-48)", "2 of 3", "tests/test_core.py::test_up",
     "44 (1 at import or in shared fixtures)"),
    ("AC4", "pkg.core:half (pkg/core.py:37)", "0 of 1", "no test is bound to it", "37"),
    ("AC4", "pkg.core:double (pkg/core.py:4-34)", "0 of 14", "no test is bound to it", "6-34"),
]  # fmt: skip


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = a_project(
        tmp_path_factory.mktemp("own") / "project",
        {"pkg/core.py": CORE, "tests/test_core.py": TESTS, "tasks/T1.yaml": TASK},
    )
    gates(root, "run", "T1", "--keep-going")
    return root


def test_each_code_of_a_criterion_is_told_by_its_own_tests_alone(project: Path) -> None:
    (gate,) = [gate for gate in result(project)["gates"] if gate["name"] == "business-logic"]
    (section,) = [section for section in gate["sections"] if section["title"] == _own_lines.TITLE]
    assert [tuple(row) for row in section["rows"]] == EXPECTED
    page = (project / "reports/T1/business-logic.md").read_text(encoding="utf-8")
    assert f"## {_own_lines.TITLE}\n" in page


def test_a_criterion_is_explained_with_the_same_lines(project: Path) -> None:
    told = gates(project, "explain", "T1", "AC2").out
    assert (
        "  lines        pkg.core:double (pkg/core.py:4-34): 2 of 14 executed by tests/test_core.py::test_negative; "
        "executed by none of its tests: 11-34\n" in told
    )
    assert "test_double" not in told.partition("lines  ")[2].partition("\n")[0]


def test_without_a_record_of_lines_it_says_why() -> None:
    tree = all_evidence(a_task()).get(SourceTree)
    assert tree
    (section,) = _own_lines.describe(a_task(), evidence(tree))
    assert section.text.startswith("Not measured: ")


def test_what_was_not_seen_is_said() -> None:
    task = a_task(criteria=[a_criterion()])
    seen = executed(children={"test:tests/test_core.py::test_double": "sh"})
    (section,) = _own_lines.describe(task, all_evidence(task, seen))
    assert "Not all was seen: tests/test_core.py::test_double started another process (sh)" in section.text
