"""A run that is killed leaves nobody and nothing behind, and the last reports as they were."""

import signal
from pathlib import Path

import pytest
from building import a_project, gates
from killing import Left, busy, killed, snapshot, torn


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with good reports, whose suite now takes longer than anybody waits."""
    project = a_project(tmp_path_factory.mktemp("killed") / "project")
    assert gates(project, "run", "T1").code == 0
    return busy(project, takes_s=600)


@pytest.mark.parametrize("until", ["guardian.py", "sleep"])  # at its start, and in the middle of a test
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_killed_run_leaves_nothing(reported: Path, tmp_path: Path, number: signal.Signals, until: str) -> None:
    left = killed(reported, tmp_path, number=number, until=until, name=f"{number.name}-{until}")
    assert left == Left(number.name, 0.0, left.exit_code, (), (), ())
    assert left.exit_code == (-signal.SIGKILL if number is signal.SIGKILL else 130)


def test_interrupted_run_tells_what_it_saw_beside_the_last_reports(tmp_path: Path) -> None:
    body = "import os, signal, time; os.kill(os.getppid(), signal.SIGINT); time.sleep(60)"
    stops = f"def test_stops() -> None:\n    {body}\n"
    project = a_project(tmp_path, {"tests/test_core.py": stops, "reports/T1/result.json": "the whole"})
    ended = gates(project, "run", "T1", "--quiet")
    assert (ended.code, ended.out) == (130, "")
    assert "what was seen so far: reports/T1/partial/summary.md" in ended.err
    assert (project / "reports/T1/result.json").read_text(encoding="utf-8") == "the whole"
    page = (project / "reports/T1/partial/summary.md").read_text(encoding="utf-8")
    assert page.startswith("# INCONCLUSIVE: merge blocked until AC1 and AC2 are verified (partial run: interrupted)")


def test_torn_reports_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "reports/T1").mkdir(parents=True)
    (tmp_path / "reports/T1/result.json").write_text("{}", encoding="utf-8")
    before = snapshot(tmp_path)
    assert torn(tmp_path, before) == ()
    (tmp_path / "reports/T1/.gates-x").write_text("", encoding="utf-8")
    assert torn(tmp_path, before) == (".gates-x",)
    (tmp_path / "reports/T1/result.json").unlink()
    assert torn(tmp_path, before) == (".gates-x", "T1/result.json")
