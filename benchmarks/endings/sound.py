"""Sound suites whose tests do something odd: each must pass."""

from benchmarks.endings.ending import GOOD, SKIPPED, Ending, Right, it

DOES = "import {}\ndef test_it({}):\n    {}\n    assert True\n"

ODD: tuple[tuple[str, str], ...] = (
    ("prints megabytes", DOES.format("sys", "", "print('x' * 5_000_000); print('y' * 5_000_000, file=sys.stderr)")),
    (
        "writes bytes that are no text",
        DOES.format("os", "", "os.write(1, bytes(range(256)) * 100); os.write(2, bytes(range(256)))"),
    ),
    ("changes the folder", DOES.format("os, tempfile", "", "os.chdir(tempfile.mkdtemp())")),
    (
        "removes the folder it stands in",
        DOES.format("os, tempfile", "", "d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d); os.chdir('/')"),
    ),
    (
        "empties the environment",
        DOES.format("os", "monkeypatch", "[monkeypatch.delenv(name) for name in list(os.environ)]"),
    ),
    ("empties the environment for good", DOES.format("os", "", "os.environ.clear()")),
    (
        "changes time zone and language",
        DOES.format(
            "os, time, locale",
            "",
            ("os.environ.update(TZ='Asia/Tokyo', LC_ALL='C'); time.tzset(); locale.setlocale(locale.LC_ALL, 'C')"),
        ),
    ),
    (
        "stops the clock",
        DOES.format(
            "time",
            "monkeypatch",
            "[monkeypatch.setattr(time, n, lambda: 0.0) for n in ('time', 'perf_counter', 'monotonic')]",
        ),
    ),
    ("stops the clock for good", DOES.format("time", "", "time.time = time.perf_counter = lambda: 0.0")),
    (
        "patches open, json and os",
        DOES.format(
            "builtins, json, os",
            "monkeypatch",
            (
                "[monkeypatch.setattr(*x, None) for x in ((builtins, 'open'), (json, 'dumps'), "
                "(os, 'write'), (os, 'getpid'), (os, 'open'))]"
            ),
        ),
    ),
    ("runs a trace function", DOES.format("sys", "", "sys.settrace(lambda *a: None); sys.setprofile(lambda *a: None)")),
    (
        "leaves a daemon thread running",
        DOES.format("threading, time", "", "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()"),
    ),
    (
        "leaves children running",
        DOES.format("subprocess", "", "[subprocess.Popen(['sleep', '600']) for _ in range(20)]"),
    ),
    (
        "leaves children of its own session running",
        DOES.format("subprocess", "", "[subprocess.Popen(['sleep', '600'], start_new_session=True) for _ in range(5)]"),
    ),
    (
        "forks a child that closes everything",
        DOES.format(
            "os",
            "",
            (
                "child = os.fork()\n"
                "    if not child:\n"
                "        os.closerange(3, 256)\n"
                "        os._exit(0)\n"
                "    os.waitpid(child, 0)"
            ),
        ),
    ),
    (
        "forks a child that crashes",
        DOES.format(
            "os, signal",
            "",
            (
                "child = os.fork()\n"
                "    if not child: os.kill(os.getpid(), signal.SIGKILL)\n"
                "    assert os.waitpid(child, 0)[1] == 9"
            ),
        ),
    ),
    (
        "works with processes",
        (
            "import multiprocessing\n"
            "def f(x): return x\n"
            "def test_it():\n"
            "    with multiprocessing.Pool(2) as p:\n"
            "        assert p.map(f, [1, 2]) == [1, 2]\n"
        ),
    ),
    (
        "handles the signals it sends",
        DOES.format(
            "os, signal", "", "signal.signal(signal.SIGTERM, lambda *a: None); os.kill(os.getpid(), signal.SIGTERM)"
        ),
    ),
    (
        "catches SystemExit and KeyboardInterrupt",
        (
            "import pytest, sys\n"
            "def test_it():\n"
            "    with pytest.raises(SystemExit): sys.exit(0)\n"
            "    with pytest.raises(KeyboardInterrupt): raise KeyboardInterrupt\n"
        ),
    ),
    (
        "catches a failed assertion",
        (
            "import pytest\n"
            "def check(right): assert right\n"
            "def test_it():\n"
            "    with pytest.raises(AssertionError): check(1 == 2)\n"
        ),
    ),
    ("warns", DOES.format("warnings", "", "warnings.warn('old', DeprecationWarning)")),
    (
        "leaks an error that cannot be raised",
        (
            "import gc\n"
            "class Odd:\n"
            "    def __del__(self): raise ValueError('late')\n"
            "def test_it():\n"
            "    Odd(); gc.collect()\n"
            "    assert True\n"
        ),
    ),
    (
        "logs and captures",
        (
            "import logging\n"
            "def test_it(caplog, capfd, recwarn, tmp_path):\n"
            "    logging.error('x'); print('y')\n"
            "    assert caplog.text and capfd.readouterr().out\n"
        ),
    ),
    (
        "uses numbers, texts and lines as ids",
        (
            "import pytest\n"
            "@pytest.mark.parametrize('t', ['a\\nb', '::', '[', ']', '', ' ', '\\u00e9\\u202e', "
            "'\\ud800', '\\x00', 'x' * 500, '../x', '-k', 'a|b`<i>'])\n"
            "def test_it(t):\n"
            "    assert t is not None\n"
        ),
    ),
    (
        "uses the same id twice",
        (
            "import pytest\n"
            "@pytest.mark.parametrize('t', [1, 2, 3], ids=['a', 'a', 'b'])\n"
            "def test_it(t):\n"
            "    assert t\n"
        ),
    ),
    (
        "runs pytest within itself",
        (
            "import pytest\n"
            "def test_it(tmp_path):\n"
            "    (tmp_path / 'test_in.py').write_text('def test_in(): assert 0')\n"
            "    assert pytest.main([str(tmp_path), '-p', 'no:cacheprovider', '--rootdir', "
            "str(tmp_path)]) == 1\n"
        ),
    ),
    (
        "runs pytest in a process of its own",
        (
            "import subprocess, sys\n"
            "def test_it(tmp_path):\n"
            "    (tmp_path / 'test_in.py').write_text('def test_in(): assert 0')\n"
            "    assert subprocess.run([sys.executable, '-m', 'pytest', '-q', "
            "str(tmp_path)], cwd=tmp_path).returncode == 1\n"
        ),
    ),
    (
        "writes into the tree",
        ("import pathlib\ndef test_it():\n    pathlib.Path('out.txt').write_text('x')\n    assert True\n"),
    ),
    (
        "has subtests, parametrised and of unittest",
        (
            "import unittest\n"
            "def test_it(subtests):\n"
            "    for n in range(3):\n"
            "        with subtests.test(n=n):\n"
            "            assert n >= 0\n"
            "class TestU(unittest.TestCase):\n"
            "    def test_u(self):\n"
            "        with self.subTest(): self.assertTrue(True)\n"
        ),
    ),
    (
        "is made in classes, nested and derived",
        (
            "class Base:\n"
            "    def test_base(self): assert self.x\n"
            "class TestA(Base):\n"
            "    x = 1\n"
            "    class TestIn:\n"
            "        def test_in(self): assert True\n"
            "class TestB(TestA):\n"
            "    x = 2\n"
            "    def test_base(self): assert self.x == 2\n"
        ),
    ),
    (
        "is defined where it applies",
        (
            "import sys\n"
            "if sys.platform == 'win32':\n"
            "    def test_win(): assert False\n"
            "else:\n"
            "    def test_it(): assert True\n"
            "try:\n"
            "    import nowhere_at_all\n"
            "except ImportError: pass\n"
            "else:\n"
            "    def test_no(): assert False\n"
        ),
    ),
    (
        "is generated",
        (
            "def made(n):\n"
            "    def test(): assert n >= 0\n"
            "    return test\n"
            "for n in range(3): globals()[f'test_{n}'] = made(n)\n"
        ),
    ),
    ("has a second name", GOOD + "test_alias = test_it\n"),
    (
        "is decorated",
        (
            "import functools\n"
            "def twice(f):\n"
            "    @functools.wraps(f)\n"
            "    def run(*a, **k):\n"
            "        f(*a, **k); return f(*a, **k)\n"
            "    return run\n"
            "@twice\n"
        )
        + GOOD,
    ),
    (
        "is replaced by a mock",
        (
            "from unittest import mock\n"
            "@mock.patch('os.getcwd')\n"
            "def test_it(cwd):\n"
            "    cwd()\n"
            "    cwd.assert_called_once()\n"
        ),
    ),
    (
        "has fixtures and helpers that are named like tests",
        ("import pytest\n@pytest.fixture\ndef test_data(): return 1\ndef test_it(test_data): assert test_data\n"),
    ),
    (
        "has parts that are skipped and expected to fail",
        GOOD
        + SKIPPED.replace("test_it", "test_skip")
        + (
            "@pytest.mark.xfail\n"
            "def test_xfail(): assert False\n"
            "@pytest.mark.xfail(strict=False)\n"
            "def test_xpass(): assert True\n"
        ),
    ),
    (
        "is expected to fail where a name of its module says so",
        ("import pytest\nELSEWHERE = False\n@pytest.mark.xfail('ELSEWHERE', reason='x')\n" + GOOD),
    ),
    ("lowers a limit", DOES.format("sys", "", "sys.setrecursionlimit(500)")),
    ("sets a mask that lets nobody read", DOES.format("os", "", "os.umask(0o777)")),
    ("replaces standard output", DOES.format("io, sys", "", "sys.stdout = io.StringIO()")),
    (
        "exits a thread",
        (
            "import threading, sys\n"
            "def test_it():\n"
            "    t = threading.Thread(target=sys.exit)\n"
            "    t.start(); t.join()\n"
            "    assert True\n"
        ),
    ),
    (
        "turns the collector of garbage off and grows",
        DOES.format("gc", "", "gc.disable(); x = [[] for _ in range(300000)]"),
    ),
    ("leads a session of its own", DOES.format("os", "", "os.getpid() == os.getsid(0) or os.setsid()")),
)
QUICK = {
    "prints megabytes",
    "empties the environment for good",
    "stops the clock for good",
    "patches open, json and os",
    "forks a child that closes everything",
    "uses numbers, texts and lines as ids",
    "is made in classes, nested and derived",
    "has parts that are skipped and expected to fail",
}

ENDINGS = tuple(Ending(f"sound: it {name}", Right.PASS, it(code), quick=name in QUICK) for name, code in ODD)
