"""Runs under plugins that many projects use; each needs its plugin in the interpreter that runs the tests."""

from benchmarks.endings.ending import BAD, GOOD, IT, Ending, Right, it, options

MANY = "import pytest\n@pytest.mark.parametrize('n', range(20))\ndef test_it(n):\n    {}\n"
FLAKY = (
    "import pathlib\n"
    "def test_it():\n"
    "    seen = pathlib.Path('seen')\n"
    "    first = not seen.exists()\n"
    "    seen.touch()\n"
    "    assert not first\n"
)
XDIST = ("xdist",)

ENDINGS = (
    Ending("sound: two workers", Right.PASS, options("-n 2", MANY.format("assert n >= 0")), needs=XDIST),
    Ending(
        "sound: two workers by file, one at a time",
        Right.PASS,
        options("-n 2 --dist=loadfile --maxprocesses=2", GOOD),
        needs=XDIST,
    ),
    Ending(
        "a test fails in a worker",
        Right.BLOCK,
        options("-n 2", MANY.format("assert n != 7")),
        running=f"{IT}[7]",
        needs=XDIST,
    ),
    Ending(
        "a worker crashes",
        Right.NOT_PASS,
        options("-n 2", MANY.format("import os\n    if n == 7: os.abort()\n    assert True")),
        running=f"{IT}[7]",
        needs=XDIST,
    ),
    Ending(
        "a worker leaves with 0",
        Right.NOT_PASS,
        options("-n 2", MANY.format("import os\n    if n == 7: os._exit(0)\n    assert True")),
        running=f"{IT}[7]",
        needs=XDIST,
    ),
    Ending(
        "a worker is killed and may not be replaced",
        Right.NOT_PASS,
        options(
            "-n 2 --max-worker-restart=0",
            MANY.format("import os\n    if n == 7: os.kill(os.getpid(), 9)\n    assert True"),
        ),
        running=f"{IT}[7]",
        needs=XDIST,
    ),
    Ending(
        "a worker hangs",
        Right.NOT_PASS,
        options("-n 2", MANY.format("import time\n    if n == 7: time.sleep(600)\n    assert True")),
        running=f"{IT}[7]",
        needs=XDIST,
        timeout_s=10,
    ),
    Ending(
        "a worker kills the one that leads it",
        Right.NOT_PASS,
        options("-n 2", MANY.format("import os\n    if n == 7: os.kill(os.getppid(), 9)\n    assert True")),
        needs=XDIST,
    ),
    Ending(
        "a worker rewrites its reports",
        Right.NOT_PASS,
        {
            **options("-n 2"),
            "tests/conftest.py": (
                "import pytest\n"
                "@pytest.hookimpl(wrapper=True)\n"
                "def pytest_runtest_makereport(item, call):\n"
                "    report = yield\n"
                "    report.outcome, report.longrepr = 'passed', None\n"
                "    return report\n"
            ),
        },
        needs=XDIST,
    ),
    Ending(
        "workers drop tests without a word",
        Right.NOT_PASS,
        {
            **options("-n 2"),
            "tests/conftest.py": (
                "def pytest_collection_modifyitems(items):\n    items[:] = [i for i in items if i.name != 'test_it']\n"
            ),
        },
        needs=XDIST,
    ),
    Ending(
        "workers disagree on what there is",
        Right.NOT_PASS,
        {
            **options("-n 2"),
            **it("import os, pytest\n@pytest.mark.parametrize('n', [os.getpid()])\ndef test_it(n):\n    assert n\n"),
        },
        needs=XDIST,
    ),
    Ending(
        "sound: reruns are allowed and none is needed",
        Right.PASS,
        options("--reruns 2", GOOD),
        needs=("pytest_rerunfailures",),
    ),
    Ending(
        "a rerun hides a failure",
        Right.NOT_PASS,
        options("--reruns 2", FLAKY),
        needs=("pytest_rerunfailures",),
        running=IT,
    ),
    Ending(
        "a test fails in every rerun", Right.BLOCK, options("--reruns 2"), needs=("pytest_rerunfailures",), running=IT
    ),
    Ending(
        "sound: async tests under their plugin",
        Right.PASS,
        options("", ("import pytest\n@pytest.mark.asyncio\nasync def test_it():\n    assert True\n")),
        needs=("pytest_asyncio",),
    ),
    Ending(
        "sound: async tests in automatic mode, the only ones",
        Right.PASS,
        options("--asyncio-mode=auto", "import pkg.core\nasync def test_it():\n    assert pkg.core.double(1) == 2\n"),
        needs=("pytest_asyncio",),
        stands=("tests/test_it.py",),
    ),
    Ending(
        "an async test fails",
        Right.BLOCK,
        options("--asyncio-mode=auto", "async def test_it():\n    assert 1 == 2\n"),
        needs=("pytest_asyncio",),
        running=IT,
    ),
    Ending(
        "an async test without a mark, in strict mode",
        Right.BLOCK,
        options("", "async def test_it():\n    assert 1 == 2\n"),
        needs=("pytest_asyncio",),
        running=IT,
    ),
    Ending(
        "sound: async tests under anyio",
        Right.PASS,
        {
            "pytest.ini": "[pytest]\n",
            **it(
                "import pytest\n"
                "@pytest.fixture\n"
                "def anyio_backend(): return 'asyncio'\n"
                "@pytest.mark.anyio\n"
                "async def test_it():\n"
                "    assert True\n"
            ),
        },
        needs=("anyio",),
    ),
    Ending(
        "sound: properties",
        Right.PASS,
        {
            "pytest.ini": "[pytest]\n",
            **it(
                "import pkg.core\n"
                "from hypothesis import given, strategies as st\n"
                "@given(st.integers())\n"
                "def test_it(n):\n"
                "    assert pkg.core.double(n) == 2 * n\n"
            ),
        },
        needs=("hypothesis",),
        stands=("tests/test_it.py",),
    ),
    Ending(
        "a property fails",
        Right.BLOCK,
        {
            "pytest.ini": "[pytest]\n",
            **it(
                "from hypothesis import given, strategies as st\n"
                "@given(st.integers())\n"
                "def test_it(n):\n"
                "    assert n < 1000\n"
            ),
        },
        needs=("hypothesis",),
        running=IT,
    ),
    Ending(
        "a property that never holds its assumption",
        Right.BLOCK,
        {
            "pytest.ini": "[pytest]\n",
            **it(
                "from hypothesis import assume, given, strategies as st\n"
                "@given(st.integers())\n"
                "def test_it(n):\n"
                "    assume(False)\n"
                "    assert n == 1\n"
            ),
        },
        needs=("hypothesis",),
        running=IT,
    ),
    Ending(
        "sound: random order",
        Right.PASS,
        {"pytest.ini": "[pytest]\n", **it(MANY.format("assert n >= 0"))},
        needs=("pytest_randomly",),
    ),
    Ending("sound: coverage is measured", Right.PASS, options("--cov=pkg --cov-report=", GOOD), needs=("pytest_cov",)),
    Ending(
        "a limit of coverage is not reached",
        Right.BLOCK,
        {
            **options("--cov=pkg --cov-report= --cov-fail-under=100", GOOD),
            "pkg/other.py": "def unused():\n    return 1\n",
        },
        needs=("pytest_cov",),
    ),
    Ending("sound: a limit for each test", Right.PASS, options("--timeout=30", GOOD), needs=("pytest_timeout",)),
    Ending(
        "a test runs into its own limit",
        Right.BLOCK,
        options("--timeout=1", ("import time\ndef test_it():\n    time.sleep(20)\n")),
        needs=("pytest_timeout",),
        running=IT,
    ),
    Ending(
        "a limit ends the whole process",
        Right.NOT_PASS,
        options("--timeout=1 --timeout-method=thread", ("import time\ndef test_it():\n    time.sleep(20)\n")),
        needs=("pytest_timeout",),
        running=IT,
    ),
    Ending(
        "one worker, one failure, the reports silenced",
        Right.NOT_PASS,
        {**options("-n 1 -q --tb=no --no-summary"), **it(BAD)},
        needs=XDIST,
        running=IT,
    ),
)
