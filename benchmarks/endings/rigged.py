"""Runs whose harness is rigged: a conftest.py, a patch or a forged file makes a failing test look like a good one."""

from benchmarks.endings.ending import BAD, FILE, GOOD, Ending, Right, conftest

UNITTEST = "import unittest\nclass TestIt(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(1, 2)\n"
SUBTESTS = "def test_it(subtests):\n    with subtests.test():\n        assert 1 == 2\n"
MODIFY = "def pytest_collection_modifyitems(config, items):\n    {}\n"
HOOK = "import pytest\n@pytest.hookimpl({})\ndef {}:\n    {}\n"
SWALLOW = "try: return (yield)\n    except BaseException: return True"
WHERE = (
    "import os, sys, pathlib\n"
    "def told(option): return pathlib.Path([a.split('=', 1)[1] for a in sys.argv if "
    "a.startswith(option)][0])\n"
)

HOOKS: tuple[tuple[str, str, str, str], ...] = (
    (
        "a report is rewritten as it is made",
        "hookwrapper=True, tryfirst=True",
        "pytest_runtest_makereport(item, call)",
        "report = (yield).get_result()\n    report.outcome, report.longrepr = 'passed', None",
    ),
    (
        "a report is rewritten by the innermost wrapper",
        "wrapper=True, trylast=True",
        "pytest_runtest_makereport(item, call)",
        "report = yield\n    report.outcome, report.longrepr = 'passed', None\n    return report",
    ),
    (
        "a report becomes a skip",
        "wrapper=True",
        "pytest_runtest_makereport(item, call)",
        (
            "report = yield\n"
            "    if report.failed: report.outcome, report.longrepr = 'skipped', ('a', 1, "
            "'Skipped: b')\n"
            "    return report"
        ),
    ),
    (
        "a report becomes an expected failure",
        "wrapper=True",
        "pytest_runtest_makereport(item, call)",
        (
            "report = yield\n"
            "    if report.failed: report.outcome, report.wasxfail = 'skipped', 'known'\n"
            "    return report"
        ),
    ),
    (
        "a report is rewritten as it is logged",
        "tryfirst=True",
        "pytest_runtest_logreport(report)",
        "report.outcome, report.longrepr = 'passed', None",
    ),
    (
        "a report is made by somebody else",
        "tryfirst=True",
        "pytest_runtest_makereport(item, call)",
        "return pytest.TestReport(item.nodeid, item.location, {}, 'passed', None, call.when)",
    ),
    (
        "the exception is forgotten",
        "hookwrapper=True, tryfirst=True",
        "pytest_runtest_makereport(item, call)",
        "call.excinfo = None\n    yield",
    ),
    ("the exception is swallowed around the call", "wrapper=True", "pytest_runtest_call(item)", SWALLOW),
    (
        "the exception is swallowed closest to the call",
        "wrapper=True, trylast=True",
        "pytest_runtest_call(item)",
        SWALLOW,
    ),
    ("the exception is swallowed around the function", "wrapper=True", "pytest_pyfunc_call(pyfuncitem)", SWALLOW),
    (
        "the exception is swallowed closest to the function",
        "wrapper=True, trylast=True",
        "pytest_pyfunc_call(pyfuncitem)",
        SWALLOW,
    ),
    ("the function is never called", "tryfirst=True", "pytest_pyfunc_call(pyfuncitem)", "return True"),
    ("the function is never called, said last", "trylast=True", "pytest_pyfunc_call(pyfuncitem)", "return True"),
    ("the protocol is never run", "tryfirst=True", "pytest_runtest_protocol(item, nextitem)", "return True"),
    (
        "the protocol is never run and told as if it were",
        "tryfirst=True",
        "pytest_runtest_protocol(item, nextitem)",
        (
            "item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)\n"
            "    for when in ('setup', 'call', 'teardown'):\n"
            "        r = pytest.TestReport(item.nodeid, item.location, {}, 'passed', None, when)\n"
            "        item.ihook.pytest_runtest_logreport(report=r)\n"
            "    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)\n"
            "    return True"
        ),
    ),
    ("the loop is never run", "tryfirst=True", "pytest_runtestloop(session)", "return True"),
    ("pytest's main is answered with 0", "tryfirst=True", "pytest_cmdline_main(config)", "return 0"),
    ("the exit code is set to 0", "trylast=True", "pytest_sessionfinish(session)", "session.exitstatus = 0"),
    (
        "the count of failures is set to 0",
        "tryfirst=True",
        "pytest_runtest_logfinish(nodeid)",
        "import gc\n    for s in gc.get_objects():\n        if type(s) is pytest.Session: s.testsfailed = 0",
    ),
    (
        "a file is not collected",
        "tryfirst=True",
        "pytest_ignore_collect(collection_path)",
        "return True if collection_path.name == 'test_it.py' else None",
    ),
    (
        "nothing is made of a test function",
        "tryfirst=True",
        "pytest_pycollect_makeitem(collector, name, obj)",
        "return [] if name == 'test_it' else None",
    ),
    ("every failing test is skipped first", "tryfirst=True", "pytest_runtest_setup(item)", "pytest.skip('not now')"),
)
STANDING = {"a file is not collected", "nothing is made of a test function", "every failing test is skipped first"}

ITEMS: tuple[tuple[str, str], ...] = (
    ("tests are dropped without a word", "items[:] = [i for i in items if i.name != 'test_it']"),
    (
        "tests are dropped and said to be deselected",
        (
            "gone = [i for i in items if i.name == 'test_it']; items[:] = [i for i in items "
            "if i not in gone]; config.hook.pytest_deselected(items=gone)"
        ),
    ),
    ("a test runs another function", "\n    for i in items: i.obj = lambda: None"),
    ("a test's code is replaced", "\n    for i in items: i.function.__code__ = (lambda: None).__code__"),
    ("a test runs a method that does nothing", "\n    for i in items: i.runtest = lambda: None"),
    (
        "a test swallows its own exceptions",
        (
            "\n"
            "    def calm(run):\n"
            "        def runtest():\n"
            "            try: run()\n"
            "            except AssertionError: pass\n"
            "        return runtest\n"
            "    for i in items: i.runtest = calm(i.runtest)"
        ),
    ),
    ("one test stands in for all", "items[:] = [items[0]] * len(items)"),
    ("all tests are expected to fail", "\n    import pytest\n    for i in items: i.add_marker(pytest.mark.xfail)"),
    ("all tests are skipped", ("\n    import pytest\n    for i in items: i.add_marker(pytest.mark.skip(reason='no'))")),
)

FORGED: tuple[tuple[str, str], ...] = (
    (
        "the JSON report is forged at the exit",
        (
            "import atexit\n"
            "atexit.register(lambda: told('--json-report-file').write_text('{\"exitcode\": 0, "
            '"tests": [], "summary": {}}\'))\n'
        ),
    ),
    (
        "the JUnit file is forged at the exit",
        "import atexit\natexit.register(lambda: told('--junit').write_text('<testsuites/>'))\n",
    ),
    (
        "the folder of the evidence is deleted",
        (
            "import shutil\n"
            "def pytest_sessionfinish(session):\n"
            "    session.exitstatus = 0\n"
            "    shutil.rmtree(told('--json-report-file').parent)\n"
        ),
    ),
    (
        "every file beside the reports is emptied",
        (
            "import atexit\n"
            "def empty():\n"
            "    for path in told('--json-report-file').parent.rglob('*.jsonl'): path.write_text('')\n"
            "    os._exit(0)\n"
            "atexit.register(empty)\n"
        ),
    ),
)
QUICK = {
    "the exception is swallowed closest to the call",
    "the protocol is never run and told as if it were",
    "a test's code is replaced",
    "a test swallows its own exceptions",
    "the folder of the evidence is deleted",
}

ENDINGS = (
    *(
        Ending(
            name,
            Right.NOT_PASS,
            conftest(HOOK.format(how, hook, code)),
            quick=name in QUICK,
            stands=("tests",) if name in STANDING else ("tests/test_core.py",),
        )
        for name, how, hook, code in HOOKS
    ),
    *(Ending(name, Right.NOT_PASS, conftest(MODIFY.format(code)), quick=name in QUICK) for name, code in ITEMS),
    *(Ending(name, Right.NOT_PASS, conftest(WHERE + code), quick=name in QUICK) for name, code in FORGED),
    Ending(
        "a report of unittest is rewritten", Right.NOT_PASS, conftest(HOOK.format(*HOOKS[0][1:]), UNITTEST), quick=True
    ),
    Ending("a report of a subtest is rewritten", Right.NOT_PASS, conftest(HOOK.format(*HOOKS[0][1:]), SUBTESTS)),
    Ending(
        "an autouse fixture fakes the code under test",
        Right.NOT_PASS,
        {
            **conftest("import pytest, pkg.core\npkg.core.double = lambda x: x + x\n", GOOD),
            "pkg/core.py": "def double(x: int) -> int:\n    return x * x * x\n",
        },
    ),
    Ending(
        "the tests change the implementation as they run",
        Right.NOT_PASS,
        conftest(
            (
                "import pathlib\n"
                "pathlib.Path('pkg/core.py').write_text('def double(x: int) -> int:\\n    return "
                "x + x\\n')\n"
            ),
            GOOD,
        )
        | {"pkg/core.py": "def double(x: int) -> int:\n    return x\n"},
    ),
    Ending(
        "the tests rewrite their own sources",
        Right.NOT_PASS,
        conftest(f"import pathlib\npathlib.Path({FILE!r}).write_text({GOOD!r})\n", BAD),
    ),
    Ending(
        "the exit code is set to 1 though nothing failed",
        Right.NOT_PASS,
        conftest(
            (
                "import pytest\n"
                "@pytest.hookimpl(trylast=True)\n"
                "def pytest_sessionfinish(session):\n"
                "    session.exitstatus = 1\n"
            ),
            GOOD,
        ),
    ),
)
