"""Runs that a signal, an exit or an exhausted limit cuts short."""

from benchmarks.endings.ending import BAD, FILE, GOOD, IT, Ending, Right, conftest, it

LEAVE = "import os\nos._exit(0)\n"
LEAVE_IN = "import os\ndef {}:\n    os._exit(0)\n"
FIXTURE = "import os, pytest\n@pytest.fixture\ndef odd():\n    {}\n\ndef test_it(odd):\n    assert odd is None\n"
DOES = "import {}\ndef test_it():\n    {}\n"

SIGNALS = tuple(
    Ending(
        f"a test is ended by {name}",
        Right.BLOCK,
        it(DOES.format("os, signal", f"os.kill(os.getpid(), signal.{name})")),
        running=IT,
        quick=name == "SIGTERM",
    )
    for name in ("SIGKILL", "SIGTERM", "SIGBUS", "SIGFPE", "SIGQUIT", "SIGUSR1")
)

ENDINGS = (
    *SIGNALS,
    Ending(
        "segmentation fault in a test",
        Right.BLOCK,
        it(DOES.format("ctypes", "ctypes.string_at(0)")),
        running=IT,
    ),
    Ending(
        "segmentation fault in a thread of a test",
        Right.BLOCK,
        it(
            DOES.format(
                "ctypes, threading, time", "threading.Thread(target=ctypes.string_at, args=(0,)).start(); time.sleep(5)"
            )
        ),
        running=IT,
    ),
    Ending(
        "segmentation fault in a fixture",
        Right.BLOCK,
        it("import ctypes\n" + FIXTURE.format("ctypes.string_at(0)")),
        running=IT,
    ),
    Ending(
        "segmentation fault in a teardown",
        Right.BLOCK,
        it("import ctypes\n" + FIXTURE.format("yield; ctypes.string_at(0)")),
        running=IT,
    ),
    Ending(
        "segmentation fault at import",
        Right.BLOCK,
        it("import ctypes\nctypes.string_at(0)\n"),
        running=FILE,
        quick=True,
    ),
    Ending(
        "segmentation fault after the session",
        Right.BLOCK,
        conftest("import atexit, ctypes\natexit.register(ctypes.string_at, 0)\n", GOOD),
    ),
    Ending("abort in a test", Right.BLOCK, it(DOES.format("os", "os.abort()")), running=IT),
    Ending(
        "abort at the end of the session",
        Right.BLOCK,
        conftest("import os\ndef pytest_unconfigure(): os.abort()\n", GOOD),
    ),
    Ending(
        "stack overflow in C",
        Right.BLOCK,
        it(
            "import sys\n"
            "def deeper(x):\n"
            "    return sorted([x], key=deeper)\n"
            "def test_it():\n"
            "    sys.setrecursionlimit(10**7)\n"
            "    deeper(1)\n"
        ),
        running=IT,
    ),
    Ending("endless recursion in Python", Right.BLOCK, it("def test_it():\n    test_it()\n"), running=IT),
    Ending(
        "a test's alarm goes off",
        Right.BLOCK,
        it(DOES.format("signal, time", "signal.alarm(1); time.sleep(20)")),
        running=IT,
    ),
    Ending(
        "processor time runs out",
        Right.BLOCK,
        it(
            "import resource\n"
            "def test_it():\n"
            "    resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\n"
            "    while True: pass\n"
        ),
        running=IT,
    ),
    Ending(
        "the whole process group is killed",
        Right.BLOCK,
        it(DOES.format("os, signal", "os.killpg(0, signal.SIGKILL)")),
        running=IT,
    ),
    Ending(
        "the parent is sent SIGTERM",
        Right.NOT_PASS,
        it(DOES.format("os, signal, time", "os.kill(os.getppid(), signal.SIGTERM); time.sleep(2); assert True")),
        outside=True,
    ),
    Ending("more memory than there is", Right.BLOCK, it(DOES.format("sys", "bytearray(sys.maxsize)")), running=IT),
    Ending(
        "the address space is exhausted",
        Right.NOT_PASS,
        it(
            "import resource\n"
            "def test_it():\n"
            "    resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))\n"
            "    kept = [bytearray(1 << 20) for _ in range(1000)]\n"
            "    assert kept\n"
        ),
        running=IT,
    ),
    Ending(
        "no file may grow any more",
        Right.NOT_PASS,
        it(DOES.format("resource", "resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))")),
    ),
    Ending("every descriptor is closed", Right.NOT_PASS, it(DOES.format("os", "os.closerange(0, 256)"))),
    Ending("os._exit(0) in a test", Right.NOT_PASS, it(LEAVE_IN.format("test_it()")), running=IT),
    Ending(
        "os._exit(0) in the last of many tests",
        Right.NOT_PASS,
        it(
            "import os, pytest\n"
            "@pytest.mark.parametrize('n', range(50))\n"
            "def test_it(n):\n"
            "    if n == 49: os._exit(0)\n"
            "    assert n < 49\n"
        ),
        running=f"{IT}[49]",
    ),
    Ending("os._exit(1) in a test", Right.NOT_PASS, it(DOES.format("os", "os._exit(1)")), running=IT),
    Ending("os._exit(0) in a fixture", Right.NOT_PASS, it(FIXTURE.format("os._exit(0)")), running=IT),
    Ending("os._exit(0) in a teardown", Right.NOT_PASS, it(FIXTURE.format("yield; os._exit(0)")), running=IT),
    Ending("os._exit(0) at import", Right.NOT_PASS, it(LEAVE), running=FILE),
    Ending("os._exit(0) in conftest.py", Right.NOT_PASS, conftest(LEAVE), running="tests/conftest.py"),
    Ending(
        "os._exit(0) when the session finishes",
        Right.NOT_PASS,
        conftest(LEAVE_IN.format("pytest_sessionfinish()")),
        quick=True,
    ),
    Ending(
        "os._exit(0) when pytest is unconfigured, after a failure",
        Right.NOT_PASS,
        conftest(LEAVE_IN.format("pytest_unconfigure()")),
    ),
    Ending(
        "os._exit(0) at the interpreter's exit, after a failure",
        Right.NOT_PASS,
        conftest("import atexit, os\natexit.register(os._exit, 0)\n"),
    ),
    Ending(
        "os._exit(0) in a thread while another test runs",
        Right.NOT_PASS,
        it(
            "import os, threading, time\n"
            "def test_first():\n"
            "    threading.Timer(0.3, os._exit, (0,)).start()\n"
            "    assert True\n"
            "def test_it():\n"
            "    time.sleep(20)\n"
        ),
        running=IT,
    ),
    Ending(
        "the process becomes another one",
        Right.NOT_PASS,
        it(DOES.format("os", "os.execv('/bin/true', ['true'])")),
        running=IT,
    ),
    Ending(
        "the parent of a fork leaves with 0",
        Right.NOT_PASS,
        it("import os\ndef test_it():\n    if os.fork(): os._exit(0)\n    assert 1 == 2\n"),
        running=IT,
    ),
    Ending(
        "both sides of a fork go on",
        Right.NOT_PASS,
        it("import os\ndef test_it():\n    if child := os.fork(): os.waitpid(child, 0)\n    else: assert 1 == 2\n"),
    ),
    Ending("sys.exit(0) in a test", Right.BLOCK, it(DOES.format("sys", "sys.exit(0)")), running=IT),
    Ending("sys.exit(0) at import", Right.NOT_PASS, it("import sys\nsys.exit(0)\n" + BAD), running=FILE),
    Ending("sys.exit(0) in conftest.py", Right.NOT_PASS, conftest("import sys\nsys.exit(0)\n")),
    Ending(
        "pytest.exit(returncode=0) in a test",
        Right.NOT_PASS,
        it(DOES.format("pytest", "pytest.exit('enough', returncode=0)") + BAD.replace("it", "after")),
    ),
    Ending(
        "pytest.exit(returncode=0) in a fixture",
        Right.NOT_PASS,
        it(FIXTURE.format("pytest.exit('enough', returncode=0)")),
    ),
    Ending(
        "pytest.exit(returncode=0) at import",
        Right.NOT_PASS,
        it("import pytest\npytest.exit('enough', returncode=0)\n"),
    ),
    Ending(
        "pytest.exit(returncode=0) before anything",
        Right.NOT_PASS,
        conftest("import pytest\ndef pytest_sessionstart(): pytest.exit('enough', returncode=0)\n"),
    ),
    Ending(
        "pytest.exit(returncode=0) after the last test",
        Right.NOT_PASS,
        conftest(
            "import pytest\n"
            "def pytest_runtest_logfinish(nodeid):\n"
            "    if 'test_it' in nodeid: pytest.exit('enough', returncode=0)\n"
        ),
    ),
    Ending("a test interrupts the run", Right.NOT_PASS, it("def test_it():\n    raise KeyboardInterrupt\n")),
    Ending(
        "a test sends itself SIGINT",
        Right.NOT_PASS,
        it(DOES.format("os, signal", "os.kill(os.getpid(), signal.SIGINT)")),
    ),
    Ending(
        "a watchdog of faulthandler ends the run",
        Right.NOT_PASS,
        it(DOES.format("faulthandler, time", "faulthandler.dump_traceback_later(1, exit=True); time.sleep(20)")),
        running=IT,
    ),
    Ending(
        "a crash beside the reports of an earlier run",
        Right.NOT_PASS,
        {
            **it(LEAVE_IN.format("test_it()")),
            "report.json": '{"exitcode": 0, "summary": {"passed": 2, "total": 2, "collected": 2}, "tests": []}',
            "junit.xml": (
                '<testsuites><testsuite tests="2" failures="0" errors="0"><testcase '
                'name="test_it"/></testsuite></testsuites>'
            ),
        },
        running=IT,
        quick=True,
    ),
)
