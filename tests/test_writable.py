"""Names that are not UTF-8: no command falls over them, and reports show them as escapes."""

import json
import os
from pathlib import Path

import pytest
from building import GOOD, Ended, a_project, a_record, a_run, every_finding, gates, written

from gates.check import writable
from gates.errors import UsageError
from gates.model import Location
from gates.task import loading as spec

NAME = os.fsdecode(b"\xff")
SHOWN = r"\udcff"
FAILING = "def test_it():\n    raise ValueError('\\udcfe')\n"


def files_of_any_name(folder: Path) -> Path:
    try:
        return written(folder, {f"{NAME}.py": ""})
    except OSError:
        pytest.skip("this file system takes UTF-8 names alone")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = files_of_any_name(a_project(tmp_path_factory.mktemp("named")) / "pkg").parent
    broken: dict[str, str | bytes] = {f"pkg/bad_{NAME}.py": "def f(:\n", f"tests/data_{NAME}.bin": b"\xff"}
    return written(root, {**broken, f"tests/test_{NAME}.py": FAILING})


@pytest.fixture(scope="module")
def ran(project: Path) -> Ended:
    return gates(project, "run", "T1", "--keep-going")


def test_run_names_what_failed_in_such_a_file(project: Path, ran: Ended) -> None:
    assert (ran.code, "Traceback" in ran.err) == (1, False)
    failed = next(f["message"] for f in every_finding(project) if f["rule"] == "EX002" and f["outcome"] == "failed")
    assert f"tests/test_{SHOWN}.py::test_it failed: ValueError: \\udcfe" in failed


def test_evidence_is_saved_whole(project: Path, ran: Ended) -> None:
    assert ran.code == 1
    for path in (project / "reports/T1/evidence").glob("*.json"):
        assert json.loads(path.read_bytes()), path
    assert SHOWN in json.loads((project / "reports/T1/evidence/SourceTree.json").read_bytes())["unparsed"][0]


@pytest.mark.parametrize(
    ("words", "code"),
    [(("check",), 3), (("trace", "T1"), 3), (("trace", "--format", "json"), 3), (("trace", "--format", "markdown"), 3)],
    ids=str,
)
def test_other_commands_name_what_they_cannot_read(project: Path, words: tuple[str, ...], code: int) -> None:
    ended = gates(project, *words)
    assert (ended.code, "Traceback" in ended.err) == (code, False)
    assert f"{SHOWN}.py" in ended.out.replace("\\\\", "\\")


def test_project_in_such_a_folder_is_checked_and_traced(tmp_path: Path) -> None:
    root = files_of_any_name(tmp_path / NAME)
    written(root, GOOD)
    assert [gates(root, *words).code for words in (["check"], ["check"], ["trace", "T1"])] == [0, 0, 0]


def test_task_file_of_such_a_name_is_refused(tmp_path: Path) -> None:
    root = files_of_any_name(tmp_path)
    written(root, {f"tasks/T{NAME}.yaml": GOOD["tasks/T1.yaml"]})
    with pytest.raises(UsageError, match="its name is not UTF-8, so no report can name it; rename the file"):
        spec.load(root / f"tasks/T{NAME}.yaml", root)


def test_what_is_no_text_is_shown_as_escapes() -> None:
    assert writable(run := a_run()) is run
    run = a_run(a_record(location=Location(path=f"tests/{NAME}.py", line=3)))
    changed = writable(run)
    assert [str(test.location) for test in changed.tests] == [f"tests/{SHOWN}.py:3"]
    assert changed == type(run).model_validate_json(changed.model_dump_json())
