"""Sound projects with odd settings, and sound tests that assert in odd ways: each must pass."""

from benchmarks.endings.ending import GOOD, Ending, Right, conftest, it, options

ALONE = ("tests/test_it.py",)
UNIT = "import unittest\nclass TestIt(unittest.TestCase):\n{}"

STANDS: tuple[tuple[str, str], ...] = (
    (
        "asserts in a helper",
        ("from pkg.core import double\ndef check(x): assert x == 4\ndef test_it():\n    check(double(2))\n"),
    ),
    (
        "expects an exception",
        (
            "import pytest\n"
            "from pkg.core import double\n"
            "def test_it():\n"
            "    with pytest.raises(TypeError): double(object())\n"
        ),
    ),
    (
        "expects a warning",
        (
            "import pytest, warnings, pkg.core\n"
            "def test_it():\n"
            "    with pytest.warns(UserWarning, match='2'): warnings.warn(str(pkg.core.double(1)))\n"
        ),
    ),
    (
        "asks unittest",
        "from pkg.core import double\n"
        + UNIT.format("    def test_it(self):\n        self.assertEqual(double(1), 2)\n"),
    ),
    (
        "asks a mock",
        (
            "import pkg.core\n"
            "from unittest import mock\n"
            "def test_it():\n"
            "    m = mock.Mock()\n"
            "    m(pkg.core.double(1))\n"
            "    m.assert_called_once_with(2)\n"
        ),
    ),
    (
        "raises where something is wrong",
        ("from pkg.core import double\ndef test_it():\n    if double(1) != 2: raise AssertionError('no')\n"),
    ),
    (
        "asserts in a thread it asks",
        (
            "from concurrent.futures import ThreadPoolExecutor\n"
            "from pkg.core import double\n"
            "def check():\n"
            "    assert double(1) == 2\n"
            "    return 1\n"
            "def test_it():\n"
            "    with ThreadPoolExecutor() as pool: assert pool.submit(check).result()\n"
        ),
    ),
    (
        "asserts in an event loop",
        (
            "import asyncio, pkg.core\n"
            "async def check():\n"
            "    assert pkg.core.double(1) == 2\n"
            "def test_it():\n"
            "    asyncio.run(check())\n"
        ),
    ),
    (
        "asserts in subtests alone",
        (
            "import pkg.core\n"
            "def test_it(subtests):\n"
            "    with subtests.test():\n"
            "        assert pkg.core.double(1) == 2\n"
        ),
    ),
    (
        "asserts in its fixture's check",
        (
            "import pkg.core, pytest\n"
            "@pytest.fixture\n"
            "def check():\n"
            "    def same(a, b): assert a == b\n"
            "    return same\n"
            "def test_it(check):\n"
            "    check(pkg.core.double(1), 2)\n"
        ),
    ),
    (
        "asserts in a lambda and a comprehension",
        ("import pkg.core\ndef test_it():\n    assert all(pkg.core.double(x) for x in [1])\n"),
    ),
)
QUICK = {"asserts in a helper", "expects an exception", "asks a mock"}

ENDINGS = (
    *(
        Ending(f"sound: its only test {name}", Right.PASS, it(code), stands=ALONE, quick=name in QUICK)
        for name, code in STANDS
    ),
    Ending("sound: the plainest suite", Right.PASS, {}),
    Ending(
        "sound: it ends by os._exit(0) when all is said",
        Right.PASS,
        conftest("import atexit, os\natexit.register(os._exit, 0)\n", GOOD),
    ),
    Ending(
        "sound: the first failure would end it",
        Right.PASS,
        options("-x --maxfail=1 -ra --tb=short -q", GOOD),
        quick=True,
    ),
    Ending(
        "sound: the last failures are asked for, of which there are none",
        Right.PASS,
        {
            **options("--last-failed --failed-first", GOOD),
            ".pytest_cache/v/cache/lastfailed": '{"tests/test_core.py::test_double": true}',
        },
    ),
    Ending(
        "sound: a mark leaves slow tests out",
        Right.PASS,
        options(
            "-m 'not slow' --strict-markers",
            GOOD + ("import pytest\n@pytest.mark.slow\ndef test_slow():\n    assert 0\n"),
            more="markers =\n    slow\n",
        ),
    ),
    Ending(
        "sound: a conftest.py in each folder",
        Right.PASS,
        {
            **conftest(("import pytest\n@pytest.fixture\ndef x(): return 1\n"), "def test_it(x):\n    assert x == 1\n"),
            "conftest.py": "import pytest\n@pytest.fixture(autouse=True)\ndef everywhere(): yield\n",
            "tests/sub/conftest.py": "import pytest\n@pytest.fixture\ndef x(x): return x + 1\n",
            "tests/sub/test_sub.py": "def test_sub(x):\n    assert x == 2\n",
        },
    ),
    Ending(
        "sound: pytest takes another folder for its root",
        Right.PASS,
        {**it(GOOD), "tests/pytest.ini": "[pytest]\naddopts = -p no:hypothesispytest -p no:anyio\n"},
    ),
    Ending(
        "sound: two files of one name, imported by path",
        Right.PASS,
        {**options("--import-mode=importlib", GOOD), "tests/a/test_one.py": GOOD, "tests/b/test_one.py": GOOD},
    ),
    Ending(
        "sound: two files of one name, in packages",
        Right.PASS,
        {
            "tests/__init__.py": "",
            "tests/a/__init__.py": "",
            "tests/b/__init__.py": "",
            "tests/a/test_one.py": GOOD,
            "tests/b/test_one.py": GOOD,
        },
    ),
    Ending(
        "sound: doctests of modules and texts",
        Right.PASS,
        {
            **options("--doctest-modules --doctest-glob=*.rst", GOOD),
            "tests/guide.rst": ">>> 1 + 1\n2\n",
            "tests/helper.py": 'def f():\n    """\n    >>> f()\n    1\n    """\n    return 1\n',
        },
        quick=True,
    ),
    Ending(
        "sound: tests of other names",
        Right.PASS,
        {
            **options(
                "",
                "def check_it():\n    assert True\n",
                more=("python_files = *.py\npython_functions = check_* test_*\n"),
            )
        },
    ),
    Ending(
        "sound: items of the project's own kind",
        Right.PASS,
        conftest(
            (
                "import pytest\n"
                "def pytest_collect_file(parent, file_path):\n"
                "    return Case.from_parent(parent, path=file_path) if file_path.suffix == '.case' else None\n"
                "class Case(pytest.File):\n"
                "    def collect(self): yield One.from_parent(self, name='one')\n"
                "class One(pytest.Item):\n"
                "    def runtest(self): assert self.path.read_text() == 'x'\n"
                "    def reportinfo(self): return self.path, 0, 'one'\n"
            ),
            GOOD,
        )
        | {"tests/a.case": "x"},
    ),
    Ending(
        "sound: tests made by a hook",
        Right.PASS,
        conftest(
            (
                "def pytest_generate_tests(metafunc):\n"
                "    if 'n' in metafunc.fixturenames: metafunc.parametrize('n', range(4))\n"
            ),
            "def test_it(n):\n    assert n >= 0\n",
        ),
    ),
    Ending(
        "sound: conftest.py reorders, marks and decorates",
        Right.PASS,
        conftest(
            (
                "import pytest\n"
                "def pytest_collection_modifyitems(items):\n"
                "    items.reverse()\n"
                "    [i.add_marker('odd') for i in items]\n"
                "@pytest.hookimpl(wrapper=True)\n"
                "def pytest_runtest_makereport(item, call):\n"
                "    report = yield\n"
                "    report.sections.append(('more', 'x'))\n"
                "    item.stash[pytest.StashKey()] = report\n"
                "    return report\n"
                "def pytest_configure(config): config.addinivalue_line('markers', 'odd: x')\n"
            ),
            GOOD,
        ),
        quick=True,
    ),
    Ending(
        "sound: conftest.py skips what cannot run here",
        Right.PASS,
        conftest(
            (
                "import pytest\n"
                "def pytest_collection_modifyitems(items):\n"
                "    for i in items:\n"
                "        if 'gpu' in i.name: i.add_marker(pytest.mark.skip(reason='needs a GPU'))\n"
            ),
            GOOD + "def test_gpu():\n    assert 0\n",
        ),
    ),
    Ending(
        "sound: warnings are errors",
        Right.PASS,
        options("-W error -p no:asyncio --strict-markers --strict-config", GOOD),
    ),
    Ending(
        "sound: no output is captured",
        Right.PASS,
        options("-s -vv", ('def test_it():\n    print(\'{"event": "end"}\')\n    assert 1\n')),
    ),
    Ending("sound: assertions are not rewritten", Right.PASS, options("--assert=plain", GOOD)),
    Ending(
        "sound: pytest's tools for plugins",
        Right.PASS,
        {
            "conftest.py": "pytest_plugins = ['pytester']\n",
            **it(
                "def test_it(pytester):\n"
                "    pytester.makepyfile(test_in='def test_in(): assert 0')\n"
                "    pytester.runpytest_inprocess('-p', 'no:cacheprovider').assert_outcomes(failed=1)\n"
            ),
        },
    ),
    Ending(
        "sound: the reports of an earlier run lie in the tree",
        Right.PASS,
        {
            **it(GOOD),
            "report.json": '{"exitcode": 1, "summary": {"failed": 1}, "tests": []}',
            "junit.xml": '<testsuites><testsuite failures="1"/></testsuites>',
        },
    ),
    Ending(
        "sound: five hundred small tests",
        Right.PASS,
        it("import pytest\n@pytest.mark.parametrize('n', range(500))\ndef test_it(n):\n    assert n >= 0\n"),
    ),
    Ending(
        "sound: a file of tests that is not for this machine",
        Right.PASS,
        {
            **it(GOOD),
            "tests/test_gpu.py": ("import pytest\npytest.importorskip('nowhere_at_all')\ndef test_gpu(): assert 0\n"),
        },
    ),
)
