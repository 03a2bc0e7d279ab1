"""Tests of the child that cleans up after a killed run."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from building import PATIENCE_S, awaited
from killing import gone

from gates.child.guardian import MARK, guarded_folder

GUARDED = """
import subprocess, sys, time
from gates.child.guardian import guarded_folder
with guarded_folder() as folder:
    (folder / "locked").mkdir()
    (folder / "locked" / "file").write_text("x")
    (folder / "locked").chmod(0o500)
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    print(folder, child.pid, flush=True)
    {then}
"""


def guarded(then: str, temporary: Path) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", GUARDED.format(then=then)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=os.environ | {"TMPDIR": str(temporary)})


def test_a_killed_process_leaves_neither_folder_nor_child(tmp_path: Path) -> None:
    process = guarded("time.sleep(600)", tmp_path)
    assert process.stdout is not None
    folder, pid = process.stdout.readline().split()
    assert Path(folder).is_dir()
    process.send_signal(signal.SIGKILL)
    process.wait(PATIENCE_S)
    process.stdout.close()
    assert awaited(lambda: gone(int(pid)) and not Path(folder).exists())
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_ends_by_itself_leaves_no_folder_and_no_guardian(tmp_path: Path) -> None:
    process = guarded("child.kill(); child.wait()", tmp_path)
    out, _ = process.communicate(timeout=PATIENCE_S)
    folder, pid = out.split()
    assert process.returncode == 0
    assert awaited(lambda: gone(int(pid)) and not Path(folder).exists())
    assert list(tmp_path.iterdir()) == []


def test_what_an_interrupt_left_running_is_ended(tmp_path: Path) -> None:
    process = guarded("__import__('gates').child.guardian._come.append(2)", tmp_path)
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert awaited(lambda: gone(int(out.split()[1])))


def test_the_folder_is_fresh_and_private_and_the_environment_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, "outer")
    with guarded_folder() as one, guarded_folder() as other:
        assert one != other
        assert one.stat().st_mode & 0o777 == 0o700
        assert os.environ[MARK].startswith("outer:")
    assert os.environ[MARK] == "outer"
    assert not one.exists()
    assert not other.exists()


def test_an_error_inside_is_raised_and_the_folder_is_gone() -> None:
    with pytest.raises(KeyError), guarded_folder() as folder:
        raise KeyError
    assert not folder.exists()
