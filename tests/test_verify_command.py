"""What `gates verify` says of saved evidence: the same again, or that it is not what the run wrote."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from bar import committed
from building import Ended, a_project, gates, written

FAILING = {"tests/test_core.py": "from pkg.core import double\n\n\ndef test_double():\n    assert double(2) == 5\n"}


@pytest.fixture(scope="module", params=["sound", "failing"])
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    root = a_project(tmp_path_factory.mktemp("run"), FAILING if request.param == "failing" else {})
    committed(root)
    return root, gates(root, "run", "T1")


def test_evidence_that_is_as_it_was_gives_the_same_verdict(ran: tuple[Path, Ended]) -> None:
    root, run = ran
    again = gates(root, "verify", "reports/T1")
    assert (again.code, again.err) == (run.code, "")
    assert again.out.splitlines()[1:] == run.out.rpartition("\nreport: ")[0].splitlines()[1:]
    assert " (evidence of the run of 2" in again.out.partition("\n")[0]


def an_altered_file(root: Path) -> None:
    written(root, {"reports/T1/evidence/PytestRun.json": "{}"})


def a_file_more(root: Path) -> None:
    written(root, {"reports/T1/evidence/Leaks.json": "{}"})


def another_task(root: Path) -> None:
    written(root, {"tasks/T1.yaml": (root / "tasks/T1.yaml").read_text(encoding="utf-8") + "# less\n"})


def another_result(root: Path) -> None:
    path = root / "reports/T1/result.json"
    head, decision, rest = path.read_text(encoding="utf-8").partition('"decision": ')
    path.write_text(f'{head}{decision}"INCONCLUSIVE"{rest.partition(",")[1]}{rest.partition(",")[2]}', encoding="utf-8")


def no_result(root: Path) -> None:
    (root / "reports/T1/result.json").unlink()


@pytest.mark.parametrize(
    ("alter", "line"),
    [
        (an_altered_file, "PytestRun.json: expected the file that the run wrote, found another, or none"),
        (a_file_more, "Leaks.json: expected the file that the run wrote, found another, or none"),
        (another_task, "tasks/T1.yaml: not the task file that T1 was judged by"),
        (another_result, "or the criteria differ: it was altered, or made against another base"),
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


@pytest.mark.parametrize("name", ["pkg/core.py", "bench.py", "conftest.py"])
def test_evidence_of_other_files_is_no_pass(ran: tuple[Path, Ended], tmp_path: Path, name: str) -> None:
    root = shutil.copytree(ran[0], tmp_path / "p", symlinks=True)
    written(root, {name: "# another\n"})
    stale = gates(root, "verify", "reports/T1")
    assert stale.code == (ran[1].code or 3)
    assert f"Files changed since the run began: {name}." in stale.out or ran[1].code == 1
