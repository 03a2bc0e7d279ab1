"""What `gates verify` says of saved evidence: the same again, or that it is not what the run wrote."""

import shutil
from pathlib import Path

import pytest
from bar import committed, git
from building import Ended, a_project, gates, written

FAILING = {"tests/test_core.py": "from pkg.core import double\n\n\ndef test_double():\n    assert double(2) == 5\n"}


@pytest.fixture(scope="module", params=["sound", "failing"])
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    root = a_project(tmp_path_factory.mktemp("run"), FAILING if request.param == "failing" else {})
    gates(root, "measure", "T1", "--on", "cpu")  # a bundle that no gate looks at where another one blocks
    committed(root)
    return root, gates(root, "run", "T1")


def test_evidence_that_is_as_it_was_gives_the_same_verdict(ran: tuple[Path, Ended]) -> None:
    root, run = ran
    again = gates(root, "verify", "reports/T1")
    assert (again.code, again.err) == (run.code, "")
    assert again.out.splitlines()[1:] == run.out.rpartition("\nreport: ")[0].splitlines()[1:]
    assert " (evidence saved by the run of 2" in again.out.partition("\n")[0]
    assert "tests: holds no result.json" in gates(root, "verify", "tests").err


def edited(root: Path, name: str, old: str, new: str) -> None:
    path = root / name
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


OTHER = "not as the run left it, new or gone"


@pytest.mark.parametrize(
    ("name", "old", "new", "line"),
    [
        ("reports/T1/evidence/PytestRun.json", '"outcome"', '"outcome" ', f"PytestRun.json (1 of 1): {OTHER}"),
        ("reports/T1/evidence/Leaks.json", "", "{}", f"Leaks.json (1 of 1): {OTHER}"),
        ("tasks/T1.yaml", "id: T1", "id: T1  # less", "tasks/T1.yaml: not the task file that T1 was judged by"),
        (
            "reports/T1/result.json",
            "is live code",
            "is fast code",
            "result.json: says something else than its evidence",
        ),
    ],
)
def test_what_the_run_did_not_write_is_refused(
    ran: tuple[Path, Ended], tmp_path: Path, name: str, old: str, new: str, line: str
) -> None:
    root = shutil.copytree(ran[0], tmp_path / "p", symlinks=True)
    edited(root, name, old, new)
    refused = gates(root, "verify", "reports/T1")
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert line in refused.err


@pytest.mark.parametrize("name", ["pkg/core.py", "bench.py", "conftest.py", ".git"])
def test_evidence_of_other_files_is_no_pass(ran: tuple[Path, Ended], tmp_path: Path, name: str) -> None:
    root = shutil.copytree(ran[0], tmp_path / "p", symlinks=True)
    told = f"Files changed since the run began: {name}."
    if name == ".git":  # another history
        told = f"since the run began is not known: git does not know {git(root, 'rev-parse', 'HEAD')}."
        shutil.rmtree(root / name)
        committed(root, "another")
    else:
        written(root, {name: "# another\n"})
    stale = gates(root, "verify", "reports/T1")
    assert stale.code == (ran[1].code or 3)
    assert told in stale.out or ran[1].code == 1
