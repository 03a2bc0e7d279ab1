"""What `gates verify` says of saved evidence: the same again, or that it is not what the run wrote."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from building import Ended, a_project, gates, written

FAILING = {"tests/test_core.py": "from pkg.core import double\n\n\ndef test_double():\n    assert double(2) == 5\n"}


@pytest.fixture(scope="module", params=["sound", "failing"])
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    root = a_project(tmp_path_factory.mktemp("run"), FAILING if request.param == "failing" else {})
    return root, gates(root, "run", "T1")


def test_evidence_that_is_as_it_was_gives_the_same_verdict(ran: tuple[Path, Ended]) -> None:
    root, run = ran
    again = gates(root, "verify", "reports/T1")
    assert (again.code, again.err) == (run.code, "")
    assert again.out.splitlines()[1:] == run.out.rpartition("\nreport: ")[0].splitlines()[1:]
    assert " (evidence saved by the run of 2" in again.out.partition("\n")[0]


def edited(root: Path, name: str, old: str, new: str) -> None:
    path = root / name
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def an_altered_file(root: Path) -> None:
    edited(root, "reports/T1/evidence/PytestRun.json", '"outcome"', '"outcome" ')


def a_file_more(root: Path) -> None:
    written(root, {"reports/T1/evidence/Leaks.json": "{}"})


def another_task(root: Path) -> None:
    edited(root, "tasks/T1.yaml", "id: T1", "id: T1  # less")


def another_decision(root: Path) -> None:
    path = root / "reports/T1/result.json"
    head, decision, rest = path.read_text(encoding="utf-8").partition('"decision": ')
    path.write_text(f'{head}{decision}"INCONCLUSIVE",{rest.partition(",")[2]}', encoding="utf-8")


def another_finding(root: Path) -> None:
    edited(root, "reports/T1/result.json", "is live code", "is fast code")


def no_result(root: Path) -> None:
    (root / "reports/T1/result.json").unlink()


@pytest.mark.parametrize(
    ("alter", "line"),
    [
        (an_altered_file, "PytestRun.json: expected the file that the run wrote, found another, or none"),
        (a_file_more, "Leaks.json: expected the file that the run wrote, found another, or none"),
        (another_task, "tasks/T1.yaml: not the task file that T1 was judged by"),
        (another_decision, "result.json: says something else than its evidence"),
        (another_finding, "result.json: says something else than its evidence"),
        (no_result, "reports/T1: holds no result.json"),
    ],
)
def test_what_the_run_did_not_write_is_refused(
    ran: tuple[Path, Ended], tmp_path: Path, alter: Callable[[Path], None], line: str
) -> None:
    root = shutil.copytree(ran[0], tmp_path / "p", symlinks=True)
    alter(root)
    refused = gates(root, "verify", "reports/T1")
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert line in refused.err


def test_evidence_of_other_files_is_no_pass(ran: tuple[Path, Ended], tmp_path: Path) -> None:
    root = shutil.copytree(ran[0], tmp_path / "p", symlinks=True)
    edited(root, "pkg/core.py", "def ", "def  ")
    stale = gates(root, "verify", "reports/T1")
    assert stale.code == (ran[1].code or 3)
    assert "Files changed since the run began: pkg/core.py" in stale.out or ran[1].code == 1
