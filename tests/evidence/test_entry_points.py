"""Entry points, run for real: how they end, and the line of the project that a crash comes from."""

from pathlib import Path

import pytest
from building import a_context, a_task, written

from gates.evidence.entry_points import EntryPointRuns, EntryRun, innermost

CRASHING = "import json\n\n\ndef go():\n    json.loads('{')\n\n\ngo()\n"


def ran(tmp_path: Path, run: list[str], files: dict[str, str | bytes] | None = None, **limits: float) -> EntryRun:
    root = written(tmp_path / "project", {"pkg/__init__.py": "", **(files or {})})
    task = a_task(entry_points=[{"run": run, **limits}])
    (one,) = EntryPointRuns.collect(task, a_context(root)).runs
    return one


def test_good_entry_point_ends_with_0(tmp_path: Path) -> None:
    one = ran(tmp_path, ["python", "-c", "open(r'{out}', 'w').write('x')"])
    assert one.process is not None
    assert (one.process.exit_code, one.crash, one.problem) == (0, None, "")
    assert (tmp_path / "project-evidence/entry_points/0.out").read_text(encoding="utf-8") == "x"


def test_crash_is_located_at_the_innermost_line_of_the_project(tmp_path: Path) -> None:
    one = ran(tmp_path, ["python", "-m", "pkg.go"], {"pkg/go.py": CRASHING})
    assert one.process is not None
    assert one.process.exit_code == 1
    assert str(one.crash) == "pkg/go.py:5"


def test_entry_point_that_hangs_is_stopped_at_its_own_limit(tmp_path: Path) -> None:
    one = ran(tmp_path, ["python", "-c", "import time; time.sleep(60)"], timeout_s=0.5)
    assert one.process is not None
    assert one.process.ended == "stopped at the time limit of 0.5 s"


def test_command_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    one = ran(tmp_path, ["no-such-command"])
    assert (one.process, one.problem) == (None, "cannot be started: No such file or directory")


FRAME = 'Traceback (most recent call last):\n  File "pkg/{}.py", line {}, in f\n'
TRACES = {
    "first line of none": ("ValueError: x\n", None),
    "outside only": ('Traceback (most recent call last):\n  File "/usr/lib/x.py", line 3, in f\n', None),
    "installed": ('Traceback (most recent call last):\n  File "ROOT/v/site-packages/x.py", line 3, in f\n', None),
    "relative": (FRAME.format("m", 3), "pkg/m.py:3"),
    "the last of two": (
        FRAME.format("a", 1) + "\nDuring handling\n\n" + FRAME.format("b", 2),
        "pkg/b.py:2",
    ),
    "a forged line of nothing": (FRAME.format("m", 0), None),
}


@pytest.mark.parametrize("case", TRACES)
def test_innermost_frame_of_the_project(tmp_path: Path, case: str) -> None:
    text, expected = TRACES[case]
    (tmp_path / "project").mkdir()
    context = a_context(tmp_path / "project")
    found = innermost(text.replace("ROOT", str(context.root)), context)
    assert (str(found) if found else None) == expected
