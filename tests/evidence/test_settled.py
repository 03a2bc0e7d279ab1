"""Which assertions hold whatever the code does: each settled one is told, and none that the code has a part in."""

import ast

import pytest

from gates.evidence._inventory import Names, written_tests
from gates.evidence._pytest_witness.asserting import asserts, expects_failure
from gates.evidence._pytest_witness.settled import Settled

HEAD = (
    "import pytest, math, unittest, re, subprocess\nfrom unittest.mock import ANY, Mock\nfrom unittest import mock\n"
    "from pkg.core import double, Calc, Base, times\nimport pkg.core as core\n"
)


def settled_in(code: str) -> list[bool]:
    tree = ast.parse(HEAD + code)
    reading = Settled(tree, frozenset({"times"}))
    return [reading.holds(node) for node in ast.walk(tree) if isinstance(node, ast.Assert)]


SETTLED = {
    "a constant": "assert 1 == 1",
    "true by its first part": "assert True or double(2)",
    "true by its last part": "assert double(2) == 5 or True",
    "everything is an object": "assert isinstance(double(2), object)",
    "no length is negative": "assert len([double(2)]) >= 0",
    "a tuple": "assert (double(2) == 5, 'not five')",
    "a name of a constant": "x = 4\n    double(2)\n    assert x == 4",
    "a name given again": "x = double(2)\n    x = 4\n    assert x == 4",
    "a list that nobody has": "x = [1]\n    x.append(2)\n    assert x == [1, 2]",
    "a function of the test": "f = lambda x: x * 2\n    assert f(2) == 4",
    "an attribute in the place of the code": "c = Calc()\n    c.times = lambda x: 4\n    assert c.times(2) == 4",
    "a mock of the test": "m = Mock(return_value=4)\n    assert m(2) == 4",
    "in a loop over constants": "for a, b in [(1, 2)]:\n        double(a)\n        assert a * 2 == b",
    "a tolerance beyond all": "assert abs(double(3) - 6) < 1e9",
    "the equal of everything": "assert double(2) == ANY",
    "the equal of everything, by its module": "assert mock.ANY == double(2)",
    "not a number is less than nothing": "assert not double(2) < float('nan')",
    "nothing is not a number": "assert double(2) != math.nan",
    "no object is one just made": "assert double(2) is not object()",
    "looked for where it was put": "x = double(2)\n    assert x in [x]",
    "a pattern that fits all": "assert re.match('.*', str(double(2)))",
    "either way": "x = double(2)\n    assert x == 4 or x != 4",
    "not or so": "x = double(2)\n    assert x or not x",
    "one of two truths": "assert bool(double(2)) in (True, False)",
    "a text is never None": "assert str(double(2)) is not None",
    "all of none": "assert all(double(x) == 5 for x in [])",
    "none of none": "assert not [x for x in () if double(x) != 5]",
    "a function is callable": "times(2)\n    assert callable(times)",
    "a module has its function": "times(2)\n    assert hasattr(core, 'times')",
    "a function is there": "times(2)\n    assert times is not None",
    "a process that has ended somehow": "r = subprocess.run(['x'])\n    assert r",
    "a process with any code": "r = subprocess.run(['x'])\n    assert r.returncode is not None",
    "what is made for each, and looked at in none": "assert (double(x) == x for x in [1, 2])",
    "a list of truths": "assert [double(x) == x for x in [1, 2]]",
    "a list of truths of what the code returned": "assert [x == 4 for x in double(2)]",
    "a set of what was gone through": "assert {double(x) for x in 'ab'}",
    "a table of truths": "seen = {x: double(x) == x for x in [1, 2]}\n    assert seen",
    "a table of truths that is shown": "s = {x: double(x) == x for x in (1,)}\n    print(s.items())\n    assert s",
    "a list of a name's parts": "words = ['a', 'b']\n    assert [double(word) for word in words]",
    "what is mapped": "assert map(lambda x: double(x) == x, [1, 2])",
    "what is mapped and gathered": "assert list(double(x) == x for x in [1, 2])",
    "pairs": "assert zip(double(2), [4])",
    "a text with something in it": "assert f'{double(2)} == 4'",
    "a text with something in it, by its name": "text = f'{double(2)} == 4'\n    assert text",
    "a function of the test that is not called": "def same(): return double(2) == 4\n    assert same",
    "a lambda that is not called": "same = lambda: double(2) == 4\n    assert same",
    "a dict": "assert {'got': double(2)}",
    "a truth is never None": "same = double(2) == 4\n    assert same is not None",
    "one of both truths": "same = double(2) == 4\n    assert same in (True, False)",
    "a truth is one": "assert isinstance(double(2) == 4, bool)",
    "a truth of several is one": "same = double(2) == 4 and not double(3)\n    assert isinstance(same, (bool, str))",
    "no length is below nothing": "assert len(double(2)) > -1",
    "nothing is not above a length": "assert 0 <= len(double(2))",
    "anything in the place of all that is asked": "assert {'a': double(2), 'b': 1} == {'a': ANY, 'b': 1}",
    "anything in the place of a part": "assert (double(2), 1) == (ANY, 1)",
    "a limit beyond all": "assert abs(double(3) - 6) < float('inf')",
    "a limit of infinity": "assert abs(double(3) - 6) <= math.inf",
    "what the test counts itself": "n = []\n    for x in [1, 2]:\n        n.append(x)\n    assert len(n) == 2",
    "a tolerance of a hundred times": "assert double(3) == pytest.approx(6, rel=100)",
}
OPEN = {
    "what the code returned": "assert double(2) == 4",
    "anything beside what is wanted": "assert {'a': double(2), 'b': 1} == {'a': 4, 'b': ANY}",
    "not equal to anything": "assert not double(2) == 5",
    "not a number": "assert math.isnan(double(float('nan')))",
    "not equal to itself": "x = double(float('nan'))\n    assert x != x",
    "in what the code returned": "x = double(2)\n    assert x in [double(1), 4]",
    "a pattern": "assert re.match('4.*', str(double(2)))",
    "a pattern that nothing fits but nothing": "assert re.match('^.*$', double(2))",
    "either of two": "x = double(2)\n    assert x == 4 or x == 5",
    "asked twice": "assert double(2) or not double(2)",
    "a truth": "assert bool(double(0)) in (False,)",
    "what is made is callable": "f = double(2)\n    assert callable(f)",
    "another function is there": "f = double.other\n    assert hasattr(f, 'x')",
    "a code of a process": "r = subprocess.run(['x'])\n    assert r.returncode == 0",
    "a process of the code": "r = double.run(['x'])\n    assert r",
    "what may be None": "assert double(2) is not None",
    "all of some": "assert all(double(x) == 5 for x in [1])",
    "a name of an ANY of its own": "from pkg.other import ANY\n    assert double(2) == ANY",
    "the same twice": "assert double(2) == double(2)",
    "itself, by an __eq__ of its own": "x = Calc()\n    assert x == x",
    "one that must not be reached": "try:\n        double(None)\n        assert False\n    except TypeError: pass",
    "a list that the code has": "x = []\n    double(x)\n    assert x == [4]",
    "a list that a callback fills": "x = []\n    def f(): x.append(1)\n    double(f)\n    assert x == [1]",
    "a list that is filled in a branch": "x = []\n    if double(2) == 4:\n        x.append(1)\n    assert x == [1]",
    "a name set in a handler": "x = 0\n    try: double(None)\n    except TypeError: x = 1\n    assert x == 1",
    "a name set in a branch": "x = 0\n    if double(2) == 4:\n        x = 1\n    assert x == 1",
    "a name set elsewhere": "x = 0\n    def f():\n        nonlocal x\n        x = 1\n    double(f)\n    assert x == 1",
    "where a loop was left": "for n in range(5):\n        if double(n) == 4: break\n    assert n == 2",
    "an instance that may be a proxy": "c = Calc()\n    c.other = lambda x: 4\n    assert c.other(2) == 4",
    "a class that rests on the code": "class A(Base):\n        def f(self): return 1\n    assert A().f() == 1",
    "a tolerance of half": "assert double(3) == pytest.approx(6, rel=0.5)",
    "a limit beside no number": "a, b = double(1), double(2)\n    assert abs(a - b) < 1e9",
    "a limit of one side": "assert double(2) < 1e12",
    "a default of a lambda": "f = double(lambda x=abs(2): x)\n    assert double(lambda y=f: y)",
    "a list of the code": "assert [x.name for x in double(2)]",
    "a list of what fits": "assert [x for x in [1, 2] if double(x) == 4]",
    "a list of truths that fit": "assert [x == 4 for x in [1, 2] if double(x)]",
    "a text of the code": "assert f'{double(2)}'",
    "a list that something is taken out of": "x = [double(n) for n in [1]]\n    x.clear()\n    assert x",
    "a list that the code may change": "x = [double(1)]\n    double((x,))\n    assert x",
    "a list of the code's list": "items = double(2)\n    assert items",
    "a truth of the code": "same = double(2)\n    assert same in (True, False)",
    "a kind of the code": "assert isinstance(double(2), bool)",
    "a truth among others": "same = double(2) == 4\n    assert same in (True,)",
    "a length": "assert len(double(2)) >= 1",
    "a length that is limited": "assert len(double(2)) <= 0",
    "all of what was gone through": "assert all([double(x) == x for x in [1, 2]])",
    "anything in the place of too much": "assert [double(2), 1] == [ANY]",
    "a number that is finite": "assert double(2) < math.inf",
    "what the test counts of the code": "n = []\n    for x in double(2):\n        n.append(x)\n    assert len(n) == 2",
    "what the code lets count": "n = []\n    for x in [1]:\n        if double(x): n.append(x)\n    assert n == [1]",
    "a map of its own": "from pkg.other import map\n    assert map(double, [1])",
    "thousands of parts": "assert " + " + ".join(["1"] * 600) + " == double(2)",
    "a default of the code": "def f(x=double(2)): return x\n    assert f() == 4",
}


@pytest.mark.parametrize("case", SETTLED)
def test_what_holds_whatever_the_code_does_is_settled(case: str) -> None:
    assert settled_in(f"def test_it():\n    {SETTLED[case]}\n") == [True]


@pytest.mark.parametrize("case", OPEN)
def test_what_the_code_has_a_part_in_is_open(case: str) -> None:
    assert settled_in(f"def test_it():\n    {OPEN[case]}\n") == [False]


TABLE = "@pytest.mark.parametrize('text, good', [('1', True), ('x', False)])\ndef test_it(text, good):\n    "


def test_parameter_is_settled_only_where_the_test_has_one_way() -> None:
    assert settled_in(TABLE + "double(text)\n    assert (text == '1') is good\n") == [True]
    assert settled_in(TABLE + "try: double(text)\n    except ValueError: assert not good\n    else: assert good\n") == [
        False, False,
    ]  # fmt: skip


def test_names_of_modules_are_settled_where_nothing_can_change_them() -> None:
    assert settled_in("CASES = [(1, 2)]\ndef test_it():\n    for a, b in CASES:\n        assert a < b\n") == [True]
    assert settled_in("CASES = [(1, 2)]\ndouble(CASES)\ndef test_it():\n    assert CASES == [(1, 2)]\n") == [False]
    assert settled_in("N = 0\ndef f():\n    global N\n    N = 1\ndef test_it():\n    assert N == 0\n") == [False]
    assert settled_in("from pkg.core import *\ndef test_it():\n    assert sum([1, 1]) == 2\n") == [False]


HELPERS = (
    "def verify(got, want):\n    text = str(got)\n    return text == want\n"
    "def verify_all(got): return [x == 4 for x in got]\n"
    "def verify_here(got):\n    if not got: raise ValueError\n    return got == 4\n"
)


def statement(code: str) -> tuple[Settled, ast.stmt]:
    tree = ast.parse(
        HEAD + f"{HELPERS}def check(x):\n    assert x\nclass TestIt:\n    def test_it(self):\n        {code}\n"
    )
    return Settled(tree), next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) if node.args.args
                               if node.name == "test_it").body[0]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "expected"),
    [("self.assertEqual(1, 1)", True), ("self.assertEqual(double(1), 2)", False), ("check(4)", True),
     ("check(double(2))", False), ("self.assertConverts('a', 'b')", False),
     ("with pytest.raises(ValueError): raise ValueError('x')", True),
     ("with pytest.raises(ValueError): double('x')", False),
     ("with pytest.raises(Exception):\n            double(2)\n            raise KeyError", True),
     ("with pytest.raises(NameError): doubel(2)", True),
     ("with pytest.raises(Exception):\n            double(2)\n            nothing_of_that_name", True),
     ("with pytest.raises(TypeError):\n            nothing_of_that_name(2)", False),
     ("self.assertAlmostEqual(double(2), 5, places=-12)", True),
     ("self.assertAlmostEqual(double(2), 5, places=3)", False),
     ("self.assertIsNotNone(double(2) == 4)", True), ("self.assertIsNotNone(double(2))", False),
     ("self.assertIn(double(2) == 4, (True, False))", True), ("self.assertIn(double(2), (True, False))", False),
     ("self.assertEqual(double(2), ANY)", True), ("self.assertIsInstance(double(2) == 4, bool)", True),
     ("self.assertGreaterEqual(len(double(2)), 0)", True), ("self.assertGreaterEqual(len(double(2)), 1)", False),
     ("self.assertTrue(double(x) == x for x in [1])", True), ("self.assertFalse(double(2))", False),
     ("self.assertFalse(double(2) < float('nan'))", True), ("verify(double(2), 4)", True),
     ("verify_all(double(2))", False), ("verify_here(double(2))", False)],
)  # fmt: skip
def test_statements_that_assert_are_settled_by_what_they_are_given(code: str, expected: bool) -> None:
    reading, found = statement(code)
    assert asserts(found)
    assert reading.holds(found) is expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [("assert (double(x) == x for x in [1])", True), ("assert (x for x in [1])", False), ("verify(double(2), 4)", True),
     ("verify(2, 4)", False), ("self.assertTrue(f'{double(2)} = 4')", True), ("assert double(2) == 4", False),
     ("assert map(double, [1])", True), ("assert isinstance(double(2), object)", False)],
)  # fmt: skip
def test_assertion_that_would_have_asked_is_mistaken(code: str, expected: bool) -> None:
    reading, found = statement(code)
    assert reading.is_mistaken(found) is expected


def test_assertion_of_unittest_that_a_class_makes_nothing_of_is_none() -> None:
    for body, left in (("return None", True), ("pass", True), ("self.seen = a", False)):
        test = "  def test_it(self):\n    self.assertEqual(1, x())\n"
        tree = ast.parse(f"class TestIt:\n  def assertEqual(self, a, b):\n    {body}\n{test}")
        (found,) = [node.body[0] for node in ast.walk(tree) if getattr(node, "name", "") == "test_it"]  # type: ignore[attr-defined]  # a function
        assert Settled(tree).is_left_to_others(found) is left


def test_call_of_a_function_with_assertions_is_left_to_these() -> None:
    for code, left in (("check(double(2))", True), ("other.check(double(2))", False), ("self.check(2)", False)):
        reading, found = statement(code)
        assert reading.is_left_to_others(found) is left


@pytest.mark.parametrize(
    ("caught", "expected"), [("ValueError", True), ("(KeyError, ValueError)", True), ("AssertionError", False),
                             ("(KeyError, Exception)", False), ("", False)],
)  # fmt: skip
def test_try_expects_a_failure_unless_it_catches_its_own(caught: str, expected: bool) -> None:
    (found,) = ast.parse(f"try:\n    double(2)\n    assert False\nexcept {caught}: pass\n").body
    assert expects_failure(found) is expected


def test_test_is_read_with_the_line_of_what_is_settled_in_it() -> None:
    source = b"def test_it():\n    assert 1\n    assert double(2) == 4\n"
    (test,) = written_tests(source, Names(functions=("test",), classes=("Test",)))
    assert (test.settled, test.assertion) == (2, 3)
