"""Assertions that hold whatever the code does, as only a run of them tells; each stands in a real run of pytest."""

from pathlib import Path

import pytest
from building import a_context, a_criterion, a_task, all_evidence, pytest_options, written

from gates.checks.criteria import tested as _criterion_tests
from gates.evidence.pytest_run import PytestRun
from gates.model import Finding, Level, Outcome
from gates.stages import _outcomes

TASK = a_task(entry_points=[], criteria=[a_criterion(tests=["tests"])], measurements=[])
CODE = """
class Got:
    def __init__(self, good): self.good = good
    def is_good(self): return self.good
    def close(self): pass
    @property
    def fine(self): return self.good
    async def is_there(self): return self.good
    def go_through(self): yield self.good
def same(x): return x
NONE = {}
"""
HEAD = "import unittest, pytest; from unittest.mock import Mock\nfrom pkg import NONE, Got, same\n"
IN_CLASS = "class TestIt(unittest.TestCase):\n    def test_it(self):\n        "
IN_FUNCTION = "def test_it():\n    "
MISTAKEN = {
    "a method that is not called": IN_FUNCTION + "assert Got(0).is_good\n    assert same(1)",
    "a method of a text": IN_FUNCTION + "assert str(same('a')).isdigit\n    assert same(1)",
    "a method in unittest": IN_CLASS + "self.assertTrue(Got(0).is_good)\n        self.assertTrue(same(1))",
    "a coroutine that nobody awaits": IN_FUNCTION + "assert Got(0).is_there()\n    assert same(1)",
    "a generator that nobody goes through": IN_FUNCTION + "assert Got(0).go_through()\n    assert same(1)",
    "a coroutine that is kept": IN_FUNCTION + "c = Got(0).is_there()\n    assert c\n    c.close()",
    "a number for a message": IN_FUNCTION + "assert same(3), 6\n    assert same(1)",
    "a number beside a comparison": IN_FUNCTION + "assert same(3) == 6 or 9\n    assert same(1)",
    "a number beside one in unittest": IN_CLASS
    + "self.assertTrue(same(3) == 6 or 9)\n        self.assertTrue(same(1))",
    "a mock that is asked for what it has not": IN_FUNCTION + "m = Mock(name='x')\n    assert m.called_once_as('b')\n"
    "    assert same(1)",
    "a mock that is asked for a field": IN_FUNCTION + "m = Mock(); m()\n    assert m.called_twice\n    assert same(1)",
    "an exception that is waited for nowhere": IN_FUNCTION + "pytest.raises(TypeError)\n    assert same(1)",
    "a warning that is waited for nowhere": "from pytest import warns\n"
    + IN_FUNCTION
    + "warns(UserWarning)\n    assert same(1)",
    "an exception in unittest": IN_CLASS + "self.assertRaises(TypeError)\n        self.assertTrue(same(1))",
    "a method that fails by nothing in unittest": IN_CLASS + "self.assertEqual(same(3), 6)\n"
    "        self.assertTrue(same(1))\n    def assertEqual(self, a, b):\n        if a != b: print(a)",
    "a comprehension": IN_FUNCTION + "assert [same(x) == 3 for x in (1, 2)]\n    assert same(1)",
    "a generator": IN_FUNCTION + "assert (same(x) == 3 for x in (1, 2))\n    assert same(1)",
    "a text": IN_FUNCTION + "assert f'{same(2)} == 3'\n    assert same(1)",
}
VAIN = {
    "a method that may only be there": IN_FUNCTION + "assert Got(0).close",
    "all of none": IN_FUNCTION + "assert all(a == b for a, b in zip(same([]), [1]))",
    "all of none in unittest": IN_CLASS + "self.assertTrue(all([a == 1 for a in same([])]))",
    "a word as it should be": IN_CLASS + "self.assertTrue(same('abd'), 'abc')",
    "a number as it should be": IN_CLASS + "self.assertTrue(same(3), 4)",
    "a list as it should be": IN_CLASS + "want = [4]\n        self.assertTrue(same([3]), want)",
}
SOUND = {
    "a value": IN_FUNCTION + "assert Got(1).fine",
    "an answer": IN_FUNCTION + "assert Got(1).is_good()",
    "a list": IN_FUNCTION + "assert same([1])",
    "a message made of a number": IN_FUNCTION + "assert same(3), str(6)\n    assert same(3) == 3, 3",
    "one comparison or another": IN_FUNCTION + "assert same(3) == 6 or same(3) == 3 or False",
    "an exception of a call": IN_FUNCTION + "pytest.raises(TypeError, same)",
    "an exception of a call in unittest": IN_CLASS + "self.assertRaises(TypeError, same)",
    "an exception in a context": IN_FUNCTION + "c = pytest.raises(TypeError)\n    with c: same()",
    "a function called raises": "def raises(x): assert x\n" + IN_FUNCTION + "raises(same(1))",
    "what a mock was given": IN_FUNCTION + "m = Mock(); m.user.name = same(1)\n    assert m.user.name",
    "what a mock saw": IN_FUNCTION + "m = Mock(); same(m)()\n    assert m.called",
    "an answer of a mock": IN_FUNCTION + "m = Mock(); m.get.return_value = same(1)\n    assert m.get()",
    "a method that fails": IN_CLASS + "self.assertEqual(same(3), 3)\n    def assertEqual(self, a, b):\n"
    "        if a != b: self.fail('no')",
    "a function that is handed on": IN_FUNCTION + "assert same(Got)",
    "a method that is kept elsewhere": IN_FUNCTION + "g = Got(1)\n    g.called = g.close\n    assert g.called",
    "all of some": IN_FUNCTION + "assert all(a == b for a, b in zip(same([1]), [1]))",
    "all of none and of some": IN_FUNCTION + "for n in ([], [1]):\n        assert all(a == 1 for a in same(n))",
    "a message": IN_CLASS + "self.assertTrue(same('abc'), 'nothing came back')",
    "a message of one word": IN_CLASS + "self.assertTrue(same(3) == 3, 'three')",
    "a message in a name": IN_CLASS + "said = 'nothing'\n        self.assertTrue(same('abc'), said)",
    "a message with what came": IN_CLASS + "got = same([3])\n        self.assertTrue(got == [3], got)",
    "a message that is made": IN_CLASS + "self.assertTrue(same('abc'), f'{same}')",
    "a message of its own name": IN_CLASS + "self.assertTrue(same('abc'), msg='abc')",
}


UNREACHED = {
    "after the line that raises": (IN_FUNCTION + "assert same(1)\n    with pytest.raises(TypeError):\n"
                                   "        same()\n        assert same(2) == 3", 7),
    "in a loop over an empty table": ("CASES = []\n" + IN_FUNCTION + "assert same(1)\n    for case in CASES:\n"
                                      "        assert same(case) == 3", 7),
    "in a loop over an empty table of the code": (IN_FUNCTION + "assert same(1)\n    for a, b in NONE.items():\n"
                                                  "        assert same(a) == b", 6),
    "after a return": (IN_FUNCTION + "assert same(1)\n    return\n    assert same(2) == 3", 6),
}  # fmt: skip
REACHED = {
    "after a branch that returns": IN_FUNCTION + "assert same(1)\n    if same(1): return\n    assert same(2) == 3",
    "in a branch": IN_FUNCTION + "assert same(1)\n    if not same(1): assert same(2) == 3",
    "in a loop over what the code found wrong": IN_FUNCTION + "wrong = same([])\n    assert same(1)\n"
    "    for one in wrong: assert one.fine",
    "in a helper": "def assert_same(x): assert same(x) == x\n" + IN_FUNCTION + "assert_same(1)",
    "what must not be reached": IN_FUNCTION + "with pytest.raises(TypeError):\n        same()\n        assert False",
    "what must not be reached, by pytest": IN_FUNCTION + "with pytest.raises(TypeError):\n        same()\n"
    "        pytest.fail('nothing was raised')",
    "in a class": IN_CLASS + "with self.subTest(1):\n            self.assertEqual(same(1), 1)",
    "in a base class": "class Base:\n    def test_it(self):\n        assert same(1) == 1\nclass TestIt(Base): pass",
    "in one of several": "@pytest.mark.parametrize('n', [1, 2])\ndef test_it(n):\n    if n == 1: pytest.skip()\n"
    "    assert same(n) == 2",
}  # fmt: skip


IN_HANDLER = "try:\n        same('a')\n    except TypeError as e:\n        assert str(e)"
SILENT = {
    "in a handler that nothing comes to": IN_HANDLER,
    "after an early return": "if not same(0): return\n    assert same(1) == 3",
    "in a loop over nothing": "for one in same([]):\n        assert one == 3",
    "in all of its cases": "if same(0):\n        assert same(1) == 3",
}
LISTED = {
    "in a handler that nothing comes to": (IN_HANDLER, 8),
    "after an early return": ("if not same(0): return\n    assert same(1) == 3", 6),
    "in a loop over nothing": ("for one in same([]):\n        assert one == 3", 6),
}  # fmt: skip
SAID = {
    "that nothing is raised": IN_FUNCTION + "try:\n        same('a')\n    except TypeError:\n        pytest.fail('no')",
    "in another of its cases": "@pytest.mark.parametrize('n', [0, 1])\ndef test_it(n):\n    if n: assert same(n) == 1",
    "in a function that another process would run": IN_FUNCTION + "def run(): assert same(1)\n    same(run)",
}
BESIDE = "\ndef test_beside(): assert same(4) == 4"
EXAMPLES = '''
def same(x):
    """Same.

    >>> same(1)
    1
    >>> same(2)  # doctest: +SKIP
    3
    """
    return x
'''


def run_of(tmp_path: Path, code: str) -> PytestRun:
    files = {"pyproject.toml": pytest_options(), "pkg/__init__.py": CODE, "tests/test_one.py": f"{HEAD}{code}\n"}
    return PytestRun.collect(TASK, a_context(written(tmp_path / "project", files), timeout_s=60))


def judged(tmp_path: Path, code: str) -> tuple[PytestRun, Finding]:
    run = run_of(tmp_path, code)
    (finding,) = _criterion_tests.judge_tests(TASK, TASK.criteria[0], all_evidence(TASK, run))
    return run, finding


@pytest.mark.parametrize("case", MISTAKEN)
def test_assertion_that_would_have_compared_leaves_the_criterion_open(tmp_path: Path, case: str) -> None:
    _, finding = judged(tmp_path, MISTAKEN[case])
    line = 5 if "unittest" in case or "kept" in case or "mock" in case or "warning" in case else 4
    assert finding.outcome is Outcome.UNKNOWN
    assert f"its assertion in line {line} cannot fail" in finding.message


@pytest.mark.parametrize("case", VAIN)
def test_assertion_that_holds_as_it_ran_is_no_evidence(tmp_path: Path, case: str) -> None:
    run, finding = judged(tmp_path, VAIN[case])
    assert [(test.passed, test.executed, test.idle, test.empty) for test in run.tests] == [(True, 0, True, False)]
    assert (finding.outcome, finding.actual) == (Outcome.UNKNOWN, "no assertion on the code")


@pytest.mark.parametrize("case", SOUND)
def test_assertion_that_could_fail_is_evidence(tmp_path: Path, case: str) -> None:
    run, finding = judged(tmp_path, SOUND[case])
    assert [(test.passed, test.mistaken) for test in run.tests] == [(True, None)]
    assert finding.outcome is Outcome.PASSED


@pytest.mark.parametrize("case", UNREACHED)
def test_assertion_that_ran_in_no_test_leaves_the_criterion_open(tmp_path: Path, case: str) -> None:
    code, line = UNREACHED[case]
    run, finding = judged(tmp_path, code)
    assert [test.unreached for test in run.tests] == [line]
    assert finding.outcome is Outcome.UNKNOWN
    assert f"its assertion in line {line} ran in no test" in finding.message


@pytest.mark.parametrize("case", SILENT)
def test_a_test_that_executes_none_of_its_assertions_leaves_the_criterion_open(tmp_path: Path, case: str) -> None:
    head = "@pytest.mark.parametrize('n', [1, 2])\ndef test_it(n):\n    " if "cases" in case else IN_FUNCTION
    run = run_of(tmp_path, head + SILENT[case] + BESIDE)
    seen = [*_criterion_tests.judge_tests(TASK, TASK.criteria[0], all_evidence(TASK, run))]
    assert {finding.outcome for finding in seen} == {Outcome.UNKNOWN}
    assert all("executed none of the assertions that are written in it" in finding.message for finding in seen)


@pytest.mark.parametrize("case", LISTED)
def test_an_assertion_that_ran_in_no_case_beside_others_is_listed(tmp_path: Path, case: str) -> None:
    code, line = LISTED[case]
    run, finding = judged(tmp_path, IN_FUNCTION + "assert same(1)\n    " + code + BESIDE)
    assert finding.outcome is Outcome.PASSED
    (listed,) = _outcomes.judge_empty(run, {test.id for test in run.tests})
    assert (listed.outcome, listed.level) == (Outcome.UNKNOWN, Level.ADVISORY)
    assert str(listed.location) == f"tests/test_one.py:{line}"
    assert [other.outcome for other in _outcomes.judge_empty(run, set())] == [Outcome.PASSED]


@pytest.mark.parametrize("case", SAID)
def test_a_test_that_says_something_without_an_assertion_leaves_nothing_open(tmp_path: Path, case: str) -> None:
    _, finding = judged(tmp_path, SAID[case] + BESIDE)
    assert finding.outcome is Outcome.PASSED, finding.message


def test_an_example_of_a_doctest_that_is_skipped_is_listed(tmp_path: Path) -> None:
    files = {"pyproject.toml": pytest_options("--doctest-modules"), "tests/core.py": EXAMPLES}
    run = PytestRun.collect(TASK, a_context(written(tmp_path / "project", files)))
    (listed,) = _outcomes.judge_empty(run, {test.id for test in run.tests})
    assert str(listed.location) == "tests/core.py:7"


@pytest.mark.parametrize("case", REACHED)
def test_assertion_that_need_not_run_leaves_nothing_open(tmp_path: Path, case: str) -> None:
    run = run_of(tmp_path, REACHED[case])
    assert [test.unreached for test in run.tests if test.passed] == [None]


def test_failure_tells_as_much_as_without_us(tmp_path: Path) -> None:
    code = IN_FUNCTION + "assert Got(0).fine\n" + "def test_all():\n    assert all(x == 2 for x in same([1]))\n"
    told = [test.message for test in run_of(tmp_path, code).tests]
    assert "+  where 0 = <pkg.Got object" in told[0]
    assert "where False = all(<generator object" in told[1]
    assert "gates_" not in "".join(told)
