"""Runs that never come to an end by themselves; the limit must hold, and the running test be named."""

from benchmarks.endings.ending import FILE, GOOD, IT, Ending, Right, conftest, it

LIMIT_S = 8
SLEEP = "import time\ndef {}:\n    time.sleep(600)\n"
FIXTURE = "import pytest, time\n@pytest.fixture\ndef odd():\n    {}\n\ndef test_it(odd):\n    assert odd is None\n"

HANGING: tuple[tuple[str, dict[str, str | bytes], str], ...] = (
    ("a test sleeps", it(SLEEP.format("test_it()")), IT),
    ("a test spins", it("def test_it():\n    while True: pass\n"), IT),
    (
        "a test spins in C and never lets go",
        it("import re\ndef test_it():\n    re.match('(a+)+$', 'a' * 60 + 'b')\n"),
        IT,
    ),
    (
        "a test waits for a lock that nobody frees",
        it("import threading\ndef test_it():\n    lock = threading.Lock()\n    lock.acquire()\n    lock.acquire()\n"),
        IT,
    ),
    (
        "a test ignores every wish to end",
        it(
            "import signal, time\n"
            "def test_it():\n"
            "    for name in ('SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR1'):\n"
            "        signal.signal(getattr(signal, name), signal.SIG_IGN)\n"
            "    time.sleep(600)\n"
        ),
        IT,
    ),
    (
        "a test stops its own process",
        it("import os, signal\ndef test_it():\n    os.kill(os.getpid(), signal.SIGSTOP)\n"),
        IT,
    ),
    (
        "a test waits for a child that never ends",
        it("import subprocess\ndef test_it():\n    subprocess.run(['sleep', '600'])\n"),
        IT,
    ),
    ("a fixture sleeps", it(FIXTURE.format("time.sleep(600)")), IT),
    ("a teardown sleeps", it(FIXTURE.format("yield; time.sleep(600)")), IT),
    ("an import sleeps", it("import time\ntime.sleep(600)\n"), FILE),
    ("conftest.py sleeps", conftest("import time\ntime.sleep(600)\n"), ""),
    ("the end of the session sleeps", conftest(SLEEP.format("pytest_sessionfinish()"), GOOD), ""),
    ("the interpreter's exit sleeps", conftest("import atexit, time\natexit.register(time.sleep, 600)\n", GOOD), ""),
    (
        "a thread that is no daemon outlives the session",
        it(
            "import threading, time\n"
            "def test_it():\n"
            "    threading.Thread(target=time.sleep, args=(600,)).start()\n"
            "    assert True\n"
        ),
        "",
    ),
)
QUICK = {"a teardown sleeps"}

ENDINGS = tuple(
    Ending(name, Right.NOT_PASS, files, running=running, timeout_s=LIMIT_S, quick=name in QUICK)
    for name, files, running in HANGING
)
