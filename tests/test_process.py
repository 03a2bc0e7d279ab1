"""Commands of the tested project, as real processes: however they end, they end, and leave nobody behind."""

import os
import resource
import sys
import venv
from pathlib import Path

import pytest
from building import PATIENCE_S, awaited, patient
from killing import gone

from gates.child import process
from gates.child.process import ProcessRun
from gates.errors import EvidenceUnavailable


def run(tmp_path: Path, code: str, *, timeout_s: float = PATIENCE_S, python: str = sys.executable) -> ProcessRun:
    return process.run([python, "-c", code], cwd=tmp_path, timeout_s=timeout_s, log=tmp_path / "log")


def leaving(start: str) -> str:
    """Code that starts a sleeper in a way of its own, and notes its id."""
    return (
        "import os, subprocess, sys\n"
        "sleeper = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        f"child = {start}\n"
        "open('pid', 'w').write(str(child.pid))\n"
    )


PLAIN = "subprocess.Popen(sleeper)"
SETSID = "subprocess.Popen(sleeper, start_new_session=True)"
DETACHED = (
    "subprocess.Popen(sleeper, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, "
    "stderr=subprocess.DEVNULL)"
)


@pytest.mark.parametrize("code", [0, 1, 3, 77, 255])
def test_exit_code_is_kept(tmp_path: Path, code: int) -> None:
    ended = run(tmp_path, f"raise SystemExit({code})")
    assert (ended.exit_code, ended.signal, ended.timed_out) == (code, None, False)
    assert ended.ended == f"exit code {code}"


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGTERM", "SIGABRT"])
def test_signal_is_no_exit_code(tmp_path: Path, name: str) -> None:
    ended = run(tmp_path, f"import os, signal; os.kill(os.getpid(), signal.{name})")
    assert (ended.exit_code, ended.signal, ended.ended) == (None, name, f"killed by {name}")


def test_both_streams_are_kept_apart_and_beside_the_log(tmp_path: Path) -> None:
    ended = run(tmp_path, "import sys; print('out'); print('first\\nlast words', file=sys.stderr)")
    assert (ended.stdout.tail, ended.stderr.tail) == ("out\n", "first\nlast words\n")
    assert (tmp_path / "log.stdout.txt").read_bytes() == b"out\n"
    assert (tmp_path / "log.stderr.txt").read_bytes() == b"first\nlast words\n"
    assert ended.last_words == "last words"
    refused = "import sys; print('error: no such option\\n\\nfor more try --help', file=sys.stderr)"
    chained = "try:\n    int('x')\nexcept ValueError:\n    raise StopIteration('at last')"
    counted = "print('= 2 deselected in 61.19s (0:01:01) =')"
    told = [run(tmp_path, each).last_words for each in (refused, chained, counted)]
    assert told == ["error: no such option", "StopIteration: at last", "= 2 deselected ="]  # the same each time


def test_output_that_is_not_utf8_is_shown_escaped(tmp_path: Path) -> None:
    ended = run(tmp_path, "import os; os.write(1, b'caf\\xe9')")
    assert (ended.stdout.tail, ended.stdout.bytes) == ("caf\\xe9", 4)


def test_command_that_cannot_be_started_raises(tmp_path: Path) -> None:
    with pytest.raises(EvidenceUnavailable, match="'/no/such/python' cannot be started: No such file"):
        run(tmp_path, "", python="/no/such/python")


def test_arguments_go_through_no_shell(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "import sys; print(sys.argv[1:])", "$(touch x); `touch x` > x", "*"]
    ended = process.run(argv, cwd=tmp_path, timeout_s=PATIENCE_S, log=tmp_path / "log")
    assert ended.stdout.tail.strip() == repr(argv[3:])
    assert not (tmp_path / "x").exists()


def test_process_that_ignores_sigterm_is_killed_at_the_limit(tmp_path: Path) -> None:
    code = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)"
    ended = run(tmp_path, code, timeout_s=0.5)
    assert (ended.exit_code, ended.signal, ended.timed_out) == (None, None, True)
    assert ended.ended == "stopped at the time limit of 0.5 s"


def test_programs_of_the_environment_are_found_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.defpath)
    venv.create(tmp_path / "venv", symlinks=True)
    python = str(tmp_path / "venv/bin/python")
    assert run(tmp_path, "import shutil; print(shutil.which('python'))", python=python).stdout.tail.strip() == python


@pytest.mark.parametrize("start", [PLAIN, SETSID], ids=["in its group", "in its own session"])
def test_time_limit_ends_the_grandchildren_too(tmp_path: Path, start: str) -> None:
    (pid := tmp_path / "pid").touch()
    code = leaving(start) + "import time; time.sleep(600)"
    assert patient(1.5, lambda limit_s: run(tmp_path, code, timeout_s=limit_s), lambda _: pid.read_text()).timed_out
    assert awaited(lambda: gone(int(pid.read_text())))


@pytest.mark.parametrize("start", [PLAIN, SETSID, DETACHED], ids=["in its group", "in its own session", "detached"])
def test_grandchild_that_outlives_its_parent_is_gone_and_its_pipe_does_not_hold_us(tmp_path: Path, start: str) -> None:
    ended = run(tmp_path, "print('done', flush=True)\n" + leaving(start))
    assert awaited(lambda: gone(int((tmp_path / "pid").read_text())))
    assert (ended.exit_code, ended.stdout.tail, ended.timed_out) == (0, "done\n", False)


def test_flood_is_bounded_on_disk_and_in_memory(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    code = "import os\nfor _ in range(800): os.write(1, b'x' * 65500)\n"
    ended = run(tmp_path, code + "os.write(1, b'TAIL\\n')")
    size = (tmp_path / "log.stdout.txt").stat().st_size
    assert ended.stdout.bytes == 800 * 655 * 100 + 5
    assert size < 2 * 1024 * 1024
    kept = (tmp_path / "log.stdout.txt").read_bytes()
    assert kept.startswith(b"[... ") and kept.endswith(b"TAIL\n")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20 * 1024


def test_flood_on_both_streams_does_not_stall(tmp_path: Path) -> None:
    ended = run(tmp_path, "import os\nfor _ in range(200): os.write(1, b'o' * 65536); os.write(2, b'e' * 65536)")
    assert (ended.exit_code, ended.stdout.bytes, ended.stderr.bytes) == (0, 200 * 65536, 200 * 65536)


def test_child_has_no_input(tmp_path: Path) -> None:
    assert run(tmp_path, "import sys; print(repr(sys.stdin.read()))").stdout.tail == "''\n"


def test_what_would_change_a_test_run_is_not_inherited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "COV_CORE_SOURCE"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("KEPT", "x")
    code = "import os; print(sorted({'PYTEST_ADDOPTS', 'PYTEST_PLUGINS', 'COV_CORE_SOURCE', 'KEPT'} & set(os.environ)))"
    assert run(tmp_path, code).stdout.tail == "['KEPT']\n"
