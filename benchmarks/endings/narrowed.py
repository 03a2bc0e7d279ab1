"""Runs that a setting of the project narrows, so that a failing test is never heard of."""

from benchmarks.endings.ending import BAD, GOOD, PLAIN, SOUND, Ending, Right, conftest, it, options

PYTEST = f"[pytest]\naddopts = {PLAIN} -k double\n"
NEITHER: tuple[tuple[str, str], ...] = (
    ("only collects", "--collect-only"),
    ("only sets up", "--setup-only"),
    ("only plans the set-up", "--setup-plan"),
    ("only prints the version", "--version"),
    ("only prints the help", "--help"),
    ("only prints the markers", "--markers"),
    ("only prints the fixtures", "--fixtures"),
    ("only shows the cache", "--cache-show"),
    ("turns the collector of Python files off", "-p no:python"),
    ("turns the runner off", "-p no:runner"),
    ("knows an option that pytest does not", "--no-such-option"),
)
QUICKLY = {"only collects", "leaves a test out by name"}
HIDING: tuple[tuple[str, str], ...] = (
    ("leaves a test out by name", "-k double"),
    ("deselects a test", "--deselect tests/test_it.py::test_it"),
    ("ignores a file", "--ignore=tests/test_it.py"),
    ("ignores files by a pattern", "--ignore-glob=*it.py"),
    ("takes other names for test functions", "-o python_functions=check_*"),
    ("takes other names for test files", "-o python_files=test_core.py"),
    ("runs none where no last failure is known", "--last-failed --last-failed-no-failures=none"),
    ("takes another root and settings", "-c other.ini"),
)
DIRECTORY = {"tests/hidden/test_deep.py": BAD}

ENDINGS = (
    *(Ending(f"pytest.ini {name}", Right.NOT_PASS, options(words), quick=name in QUICKLY) for name, words in NEITHER),
    *(
        Ending(
            f"pytest.ini {name}",
            Right.NOT_PASS,
            {**options(words), "other.ini": "[pytest]\npython_functions = check_*\n"},
            stands=("tests",),
            quick=name in QUICKLY,
        )
        for name, words in HIDING
    ),
    Ending("tox.ini leaves a test out by name", Right.NOT_PASS, {**it(), "tox.ini": PYTEST, "pyproject.toml": ""}),
    Ending(
        "setup.cfg leaves a test out by name",
        Right.NOT_PASS,
        {**it(), "setup.cfg": PYTEST.replace("[pytest]", "[tool:pytest]"), "pyproject.toml": ""},
    ),
    Ending(
        "pyproject.toml leaves a test out by name",
        Right.NOT_PASS,
        {**it(), "pyproject.toml": f"[tool.pytest.ini_options]\naddopts = '{PLAIN} -k double'\n"},
    ),
    Ending("a pytest.ini among the tests leaves a test out", Right.NOT_PASS, {**it(), "tests/pytest.ini": PYTEST}),
    Ending(
        "a mark leaves out the test that stands for the criterion",
        Right.NOT_PASS,
        options("-m 'not slow'", "import pytest\n@pytest.mark.slow\n" + BAD, more="markers =\n    slow\n"),
        stands=("tests",),
    ),
    Ending(
        "PYTEST_ADDOPTS leaves a failing test out", Right.BLOCK, it(), env={"PYTEST_ADDOPTS": "-k double"}, quick=True
    ),
    Ending("PYTEST_ADDOPTS only collects", Right.BLOCK, it(), env={"PYTEST_ADDOPTS": "--co"}),
    Ending("PYTHONOPTIMIZE turns assertions off", Right.BLOCK, it(), env={"PYTHONOPTIMIZE": "1"}),
    Ending(
        "PYTEST_PLUGINS brings a plugin that changes outcomes",
        Right.BLOCK,
        {
            **it(),
            "rig.py": "def pytest_runtest_logreport(report):\n    report.outcome = 'passed'\n",
        },
        env={"PYTEST_PLUGINS": "rig"},
    ),
    Ending(
        "PYTEST_CURRENT_TEST and PYTEST_XDIST_WORKER are set from outside",
        Right.BLOCK,
        it(),
        env={"PYTEST_XDIST_WORKER": "gw0", "PYTEST_CURRENT_TEST": "x"},
    ),
    Ending(
        "norecursedirs hides a folder",
        Right.NOT_PASS,
        {**options("", GOOD, more="norecursedirs = hidden\n"), **DIRECTORY},
        stands=("tests",),
    ),
    Ending(
        "python_classes hides a class",
        Right.NOT_PASS,
        options("", "class TestIt:\n    def test_it(self):\n        assert 1 == 2\n", more="python_classes = Check\n"),
        stands=("tests",),
    ),
    Ending(
        "the first failure ends the run",
        Right.BLOCK,
        options("-x", BAD + "def test_next():\n    assert 1 == 2\n"),
        running="tests/test_it.py::test_it",
        quick=True,
    ),
    Ending(
        "the second of three failures ends the run",
        Right.BLOCK,
        options(
            "--maxfail=2",
            ("import pytest\n@pytest.mark.parametrize('n', range(3))\ndef test_it(n):\n    assert n > 9\n"),
        ),
    ),
    Ending("stepwise stops at a failure", Right.BLOCK, options("--stepwise", BAD + BAD.replace("it", "next"))),
    Ending(
        "a file that does not import is passed over",
        Right.BLOCK,
        {**options("--continue-on-collection-errors", GOOD), "tests/test_no.py": "import nowhere_at_all\n"},
    ),
    Ending(
        "a file that does not import", Right.BLOCK, it("import nowhere_at_all\n" + GOOD), running="tests/test_it.py"
    ),
    Ending("a file with a syntax error", Right.BLOCK, it("def test_it(:\n"), running="tests/test_it.py"),
    Ending("a file that is no text", Right.BLOCK, it("def test_it(): assert '\x00'\n"), running="tests/test_it.py"),
    Ending(
        "two files of one name, no package", Right.BLOCK, {"tests/a/test_one.py": GOOD, "tests/b/test_one.py": GOOD}
    ),
    Ending(
        "a plugin that is required and not there",
        Right.NOT_PASS,
        options("", GOOD, more="required_plugins = pytest-nowhere\n"),
    ),
    Ending("a plugin that is asked for and not there", Right.NOT_PASS, options("-p nowhere_at_all", GOOD)),
    Ending("a version of pytest that does not exist yet", Right.NOT_PASS, options("", GOOD, more="minversion = 999\n")),
    Ending("settings that cannot be read", Right.NOT_PASS, {**it(GOOD), "pytest.ini": "[pytest\naddopts\n"}),
    Ending(
        "a plugin of the project's own changes outcomes",
        Right.NOT_PASS,
        {
            **options("-p rig", more="pythonpath = .\n"),
            "rig.py": "def pytest_runtest_logreport(report):\n    report.outcome, report.longrepr = 'passed', None\n",
        },
        quick=True,
    ),
    Ending(
        "a module of the project stands in for pytest",
        Right.NOT_PASS,
        {
            **it(),
            "pytest.py": "print('2 passed in 0.01s')\n",
            "pytest/__main__.py": "print('2 passed in 0.01s')\n",
            "pytest/__init__.py": "",
        },
        quick=True,
    ),
    Ending(
        "a module of the project stands in for the witness",
        Right.NOT_PASS,
        {
            **it(),
            "gates_probe.py": "",
        },
    ),
    Ending(
        "modules of the project stand in for the report plugins",
        Right.NOT_PASS,
        {**it(), "pytest_jsonreport/__init__.py": "", "pytest_jsonreport/plugin.py": ""},
    ),
    Ending(
        "conftest.py asks for fewer files",
        Right.NOT_PASS,
        conftest("def pytest_configure(config):\n    config.args[:] = ['tests/test_core.py']\n"),
    ),
    Ending(
        "conftest.py starts pytest anew with fewer tests",
        Right.NOT_PASS,
        {
            **conftest(
                "import os, sys\n"
                "if 'AGAIN' not in os.environ:\n"
                "    os.environ['AGAIN'] = '1'\n"
                "    os.execv(sys.executable, [*sys.orig_argv, '-k', 'double'])\n"
            ),
        },
    ),
    Ending(
        "conftest.py starts pytest anew without assertions",
        Right.NOT_PASS,
        {
            **conftest(
                "import os, sys\n"
                "if not sys.flags.optimize:\n"
                "    os.execv(sys.executable, [sys.executable, '-O', *sys.orig_argv[1:]])\n"
            ),
        },
    ),
    Ending("no test is there at all", Right.NOT_PASS, {"tests/test_core.py": "x = 1\n"}, stands=("tests",)),
    Ending(
        "the tests run only as a script",
        Right.NOT_PASS,
        {
            "tests/test_core.py": "import pkg.core\nif __name__ == '__main__':\n    assert pkg.core.double(2) == 4\n",
        },
        stands=("tests",),
    ),
    Ending(
        "the package itself does not import",
        Right.BLOCK,
        {"pkg/core.py": SOUND["pkg/core.py"] + "import nowhere_at_all\n"},
        running="tests/test_core.py",
    ),
)
