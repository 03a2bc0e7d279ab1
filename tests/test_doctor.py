"""What `gates doctor` tells."""

import json
import sys
from pathlib import Path

import pytest
from building import a_project, gates, written

from gates.commands.doctor import perform

TOLD = {
    "python": "3.12.0", "implementation": "cpython", "versions": {"pytest": "9.0", "torch": "2.13"},
    "clocks": {"perf_counter": ["monotonic", 1e-9]}, "devices": ["cpu", "cuda: a big one"],
}  # fmt: skip


def test_it_tells_what_the_machine_can_verify(tmp_path: Path) -> None:
    ended = gates(a_project(tmp_path / "p"), "doctor", "--python", a_python(tmp_path, f"echo '{json.dumps(TOLD)}'"))
    assert ended.code == 0
    assert "cores may be used" in ended.out
    for line in ("can verify   tests", "can verify   numbers on the cpu", "can verify   numbers on cuda"):
        assert line in ended.out
    assert "cannot       numbers on rocm: this machine shows no rocm device" in ended.out
    assert "cannot       lines that tests execute: coverage is not installed" in ended.out


def test_this_interpreter_tells_of_itself(tmp_path: Path) -> None:
    code = "import sys; sys.modules['torch'] = None; from gates.child.importing import about; about()"
    text = "\n".join(perform(a_python(tmp_path, f'{sys.executable} -c "{code}"')))
    assert "pytest" in text
    assert "torch        cannot be imported" in text


def a_python(folder: Path, says: str) -> str:
    """An interpreter that does one thing."""
    path = written(folder, {"python": f"#!/bin/sh\n{says}\n"}) / "python"
    path.chmod(0o755)
    return str(path)


def test_an_interpreter_that_is_not_there_is_said(tmp_path: Path) -> None:
    text = "\n".join(perform("/no/python"))
    assert "'/no/python' cannot be started: No such file or directory: nothing of a project can be run" in text


@pytest.mark.parametrize("says", ["exit 3", "echo garbage", "echo '[]'", "true"])
def test_an_interpreter_that_is_none_is_said(tmp_path: Path, says: str) -> None:
    assert "nothing of a project can be run" in "\n".join(perform(a_python(tmp_path, says)))
