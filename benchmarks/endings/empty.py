"""Runs in which nothing failed, because the tests that should have were skipped, empty, or never there."""

from benchmarks.endings.ending import BAD, FILE, GOOD, IT, SKIPPED, Ending, Right, conftest, it, options

ALONE = ("tests/test_it.py",)
UNIT = "import unittest\nclass TestIt(unittest.TestCase):\n{}"

STANDING: tuple[tuple[str, str], ...] = (
    ("skipped by a mark", SKIPPED),
    ("skipped by a condition", SKIPPED.replace("skip(", "skipif(True, ")),
    ("skipped inside", "import pytest\ndef test_it():\n    pytest.skip('no device')\n"),
    (
        "skipped by its fixture",
        (
            "import pytest\n"
            "@pytest.fixture\n"
            "def gpu():\n"
            "    pytest.skip('CUDA not available')\n"
            "def test_it(gpu):\n"
            "    assert gpu\n"
        ),
    ),
    ("skipped with its module", "import pytest\npytest.skip('not here', allow_module_level=True)\n" + BAD),
    ("skipped for an import", "import pytest\npytest.importorskip('nowhere_at_all')\n" + BAD),
    (
        "skipped by unittest",
        UNIT.format("    @unittest.skip('no')\n    def test_it(self):\n        self.assertTrue(False)\n"),
    ),
    ("skipped by raising SkipTest", "import unittest\ndef test_it():\n    raise unittest.SkipTest('no')\n"),
    (
        "skipped in setUpClass",
        UNIT.format(
            "    @classmethod\n"
            "    def setUpClass(cls):\n"
            "        raise unittest.SkipTest('no')\n"
            "    def test_it(self): pass\n"
        ),
    ),
    ("expected to fail", "import pytest\n@pytest.mark.xfail(reason='known')\n" + BAD),
    ("expected to fail and never run", "import pytest\n@pytest.mark.xfail(run=False)\n" + BAD),
    ("expected to fail and passed", "import pytest\n@pytest.mark.xfail(strict=False)\n" + GOOD),
    ("expected to fail from inside", "import pytest\ndef test_it():\n    pytest.xfail('known')\n"),
    (
        "expected to fail by unittest",
        UNIT.format("    @unittest.expectedFailure\n    def test_it(self):\n        self.assertTrue(False)\n"),
    ),
    (
        "parametrised over nothing",
        ("import pytest\n@pytest.mark.parametrize('x', [])\ndef test_it(x):\n    assert x\n"),
    ),
    (
        "only subtests that are skipped",
        ("import pytest\ndef test_it(subtests):\n    with subtests.test():\n        pytest.skip('no')\n"),
    ),
    ("without any assertion", "from pkg.core import double\ndef test_it():\n    double(2)\n"),
    ("a mere pass", "def test_it():\n    pass\n"),
    (
        "asserting after it returned",
        ("from pkg.core import double\ndef test_it():\n    return\n    assert double(2) == 5\n"),
    ),
    (
        "asserting where it never comes",
        ("from pkg.core import double\ndef test_it():\n    if double(2) == 9:\n        assert double(2) == 5\n"),
    ),
    ("asserting over an empty list", "def test_it():\n    for case in []:\n        assert case == 5\n"),
    (
        "asserting in a function that nobody calls",
        ("def test_it():\n    def check():\n        assert 1 == 2\n    check\n"),
    ),
    (
        "asserting in a generator that nobody reads",
        ("def test_it():\n    def cases():\n        assert 1 == 2\n        yield\n    cases()\n"),
    ),
    ("returning what it should assert", "def test_it():\n    return 1 == 2\n"),
    ("a generator itself", "def test_it():\n    yield\n    assert 1 == 2\n"),
    (
        "a coroutine that nobody awaits",
        ("async def check():\n    assert 1 == 2\ndef test_it():\n    check().close()\n"),
    ),
    (
        "asserting in a thread that nobody asks",
        (
            "import threading\n"
            "def check():\n"
            "    assert 1 == 2\n"
            "def test_it():\n"
            "    t = threading.Thread(target=check)\n"
            "    t.start()\n"
            "    t.join()\n"
        ),
    ),
    (
        "asserting where errors cannot be raised",
        (
            "import gc\n"
            "class Odd:\n"
            "    def __del__(self):\n"
            "        assert 1 == 2\n"
            "def test_it():\n"
            "    Odd()\n"
            "    gc.collect()\n"
        ),
    ),
    (
        "asserting in a child whose end nobody asks for",
        (
            "import os\n"
            "def test_it():\n"
            "    child = os.fork()\n"
            "    if not child:\n"
            "        try:\n"
            "            assert 1 == 2\n"
            "        finally:\n"
            "            os._exit(0)\n"
            "    os.waitpid(child, 0)\n"
        ),
    ),
    (
        "asserting in a task that nobody asks",
        (
            "import asyncio\n"
            "async def check():\n"
            "    assert 1 == 2\n"
            "async def main():\n"
            "    task = asyncio.ensure_future(check())\n"
            "    await asyncio.sleep(0)\n"
            "def test_it():\n"
            "    asyncio.run(main())\n"
        ),
    ),
    (
        "in a class with a constructor",
        ("class TestIt:\n    def __init__(self): pass\n    def test_it(self):\n        assert 1 == 2\n"),
    ),
    (
        "in a class that says it is none",
        ("class TestIt:\n    __test__ = False\n    def test_it(self):\n        assert 1 == 2\n"),
    ),
    ("in a file that is ignored", BAD),
)
QUICK = {
    "skipped by its fixture",
    "parametrised over nothing",
    "without any assertion",
    "asserting after it returned",
    "asserting in a thread that nobody asks",
    "asserting over an empty list",
}
IGNORING = {"in a file that is ignored": {"tests/conftest.py": "collect_ignore = ['test_it.py']\n"}}

FAILING: tuple[tuple[str, str], ...] = (
    ("a test fails", BAD),
    ("a test raises", "def test_it():\n    raise ValueError('no')\n"),
    (
        "a fixture raises",
        ("import pytest\n@pytest.fixture\ndef odd():\n    raise OSError('no')\ndef test_it(odd):\n    assert True\n"),
    ),
    (
        "a teardown raises",
        (
            "import pytest\n"
            "@pytest.fixture\n"
            "def odd():\n"
            "    yield\n"
            "    raise OSError('no')\n"
            "def test_it(odd):\n"
            "    assert True\n"
        ),
    ),
    ("a strict expectation of failure passes", "import pytest\n@pytest.mark.xfail(strict=True)\n" + GOOD),
    (
        "unittest expected a failure that did not come",
        UNIT.format("    @unittest.expectedFailure\n    def test_it(self): pass\n"),
    ),
    (
        "one of many subtests fails",
        (
            "def test_it(subtests):\n"
            "    for n in range(3):\n"
            "        with subtests.test(n=n):\n"
            "            assert n != 1\n"
        ),
    ),
    (
        "one of unittest's subtests fails",
        UNIT.format(
            "    def test_it(self):\n"
            "        for n in range(3):\n"
            "            with self.subTest(n=n):\n"
            "                self.assertNotEqual(n, 1)\n"
        ),
    ),
    (
        "setUpModule raises",
        ("import unittest\ndef setUpModule():\n    raise OSError('no')\n")
        + UNIT.format("    def test_it(self): pass\n"),
    ),
    ("an async test that no plugin runs", "async def test_it():\n    assert 1 == 1\n"),
    ("a fixture that is not there", "def test_it(no_such_fixture):\n    assert True\n"),
    (
        "a test whose message is hostile",
        ("def test_it():\n    raise ValueError('</testcase>\\x00\\x1b[31m ]]> \\ud800 | `x`')\n"),
    ),
    ("a test raises what is no Exception", "class Odd(BaseException): pass\ndef test_it():\n    raise Odd\n"),
    ("a test raises a group", "def test_it():\n    raise ExceptionGroup('both', [ValueError(1), TypeError(2)])\n"),
    (
        "an exception whose text raises",
        (
            "class Odd(Exception):\n"
            "    def __str__(self): raise ValueError('no')\n"
            "    __repr__ = __str__\n"
            "def test_it():\n"
            "    raise Odd\n"
        ),
    ),
)

ENDINGS = (
    *(
        Ending(
            f"the only test of the criterion is {name}",
            Right.NOT_PASS,
            {**it(code), **IGNORING.get(name, {})},
            stands=ALONE,
            quick=name in QUICK,
        )
        for name, code in STANDING
    ),
    *(
        Ending(name, Right.BLOCK, it(code), running=FILE, quick="subtests fail" in name or "teardown raises" in name)
        for name, code in FAILING
    ),
    Ending("every test is skipped", Right.NOT_PASS, {**it(SKIPPED), "tests/test_core.py": SKIPPED}, stands=("tests",)),
    Ending(
        "a failing doctest",
        Right.BLOCK,
        {
            **options("--doctest-modules --doctest-glob=*.rst", GOOD),
            "tests/guide.rst": ">>> 1 + 1\n3\n",
        },
        running="tests/guide.rst",
        quick=True,
    ),
    Ending(
        "a warning that is an error",
        Right.BLOCK,
        options(
            "-W error -p no:asyncio",
            ("import warnings\ndef test_it():\n    warnings.warn('old', DeprecationWarning)\n    assert True\n"),
        ),
        running=IT,
    ),
    Ending(  # pytest has the next test fail for it, and ends with 1 where there is none
        "what the last test leaves raises when it is dropped, and warnings are errors",
        Right.NOT_PASS,
        options(
            "-W error",
            "import pytest\nclass Left:\n    def __del__(self): raise ValueError('late')\n"
            "@pytest.fixture\ndef left(): return Left()\ndef test_it(left): assert left\n",
        ),
        quick=True,
    ),
    Ending(
        "a hook raises for what was logged when a test was imported",
        Right.BLOCK,
        conftest(
            "import logging\nlogged = []\n"
            "class Kept(logging.Handler):\n    def emit(self, record): logged.append(record.getMessage())\n"
            "logging.getLogger().addHandler(Kept(logging.ERROR))\n"
            "def pytest_runtest_teardown(item):\n"
            "    if logged: raise AssertionError([logged.pop() for _ in [*logged]])\n",
            "import logging\nlogging.error('no settings')\n" + GOOD,
        ),
        quick=True,
    ),
    Ending(
        "a filter hides the warnings of tests, and not one that pytest's frame is told for",
        Right.BLOCK,
        options(
            "",
            "import warnings\ndef test_it():\n    warnings.warn('old', DeprecationWarning, stacklevel=2)\n",
            more="filterwarnings =\n    error\n    ignore:::test_.*\n",
        ),
        running=IT,
    ),
    Ending(  # pytest lets its file go when nobody listens any more
        "sound: the last test is expected to fail and leaves a file open, and warnings are errors",
        Right.PASS,
        options(
            "-W error",
            "import pytest\n@pytest.mark.xfail(reason='x')\ndef test_it():\n    f = open(__file__)\n    assert not f\n",
        ),
    ),
    Ending(
        "a later test of the same name hides a failing one", Right.NOT_PASS, it(BAD + GOOD), stands=ALONE, quick=True
    ),
    Ending(
        "a later class of the same name hides a failing one",
        Right.NOT_PASS,
        it(
            "class TestIt:\n"
            "    def test_one(self):\n"
            "        assert 1 == 2\n"
            "class TestIt:\n"
            "    def test_two(self):\n"
            "        assert True\n"
        ),
        stands=ALONE,
    ),
    Ending(
        "a later method of the same name hides a failing one",
        Right.NOT_PASS,
        it(
            "class TestIt:\n"
            "    def test_one(self):\n"
            "        assert 1 == 2\n"
            "    def test_one(self):\n"
            "        assert True\n"
        ),
        stands=ALONE,
    ),
    Ending(
        "a test function is deleted below",
        Right.NOT_PASS,
        it(BAD + "del test_it\n" + GOOD.replace("it", "other")),
        stands=ALONE,
    ),
    Ending(
        "a fixture for all skips everything",
        Right.NOT_PASS,
        conftest(
            "import pytest\n@pytest.fixture(autouse=True)\ndef nothing():\n    pytest.skip('not on this machine')\n"
        ),
    ),
)
