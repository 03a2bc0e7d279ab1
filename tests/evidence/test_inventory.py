"""The test functions that are written in a file, by its syntax alone."""

import pytest

from gates.evidence.tests.records import Names, Written, written_tests

NAMES = Names(functions=("test",), classes=("Test",))


def written(source: str) -> dict[str, Written]:
    return {test.shown: test for test in written_tests(source.encode(), NAMES)}


PLAIN = """
import pytest

def test_one():
    assert double(2)

@pytest.mark.parametrize("x", [one])
async def test_two(x):
    def test_inside(): assert x

class TestOf:
    def test_method(self):
        if self:
            assert self.one
    def helper(self): pass

def helper(): assert True
"""


def test_functions_and_methods_are_found_with_their_lines() -> None:
    found = written(PLAIN)
    assert {name: (test.line, test.certain) for name, test in found.items()} == {
        "test_one": (4, True), "test_two": (8, True), "TestOf::test_method": (12, True),
    }  # fmt: skip
    assert found["test_two"].first_line == 7


UNCERTAIN = {
    "under a condition": "import sys\nif sys.platform == 'x':\n    def test_x(): pass\n",
    "in a class with arguments": "class TestX:\n    def __init__(self): pass\n    def test_x(self): pass\n",
    "in a class with a base": "class TestX(Base):\n    def test_x(self): pass\n",
    "in a class that says no": "class TestX:\n    __test__ = False\n    def test_x(self): pass\n",
    "in a module that says no": "__test__ = False\ndef test_x(): pass\n",
    "told apart by an attribute": "def test_x(): pass\ntest_x.__test__ = False\n",
    "decorated by somebody": "@other\ndef test_x(): pass\n",
    "bound again": "def test_x(): pass\ntest_x = other(test_x)\n",
}


@pytest.mark.parametrize("case", UNCERTAIN)
def test_what_pytest_may_leave_out_is_not_certain(case: str) -> None:
    (test,) = written(UNCERTAIN[case]).values()
    assert not test.certain


@pytest.mark.parametrize(
    "source",
    ["def helper(): pass\n", "import pytest\n@pytest.fixture\ndef test_data(): pass\n", "def test_x(:\n", "x = '\0'"],
)
def test_what_is_no_test_is_not_found(source: str) -> None:
    assert written(source) == {}


def test_only_the_earlier_of_two_is_shadowed_and_not_where_a_branch_chooses() -> None:
    both = "def test_x(): assert 0\ndef test_x(): assert 1\n"
    assert [test.shadowed for test in written_tests(both.encode(), NAMES)] == [True, False]
    branches = "if a:\n    def test_x(): assert 0\nelse:\n    def test_x(): assert 1\n"
    assert [test.shadowed for test in written_tests(branches.encode(), NAMES)] == [False, False]
