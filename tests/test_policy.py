"""`--policy-from`: the base's task file, settings and templates judge the code of the work tree."""

import re
from pathlib import Path

import pytest
from bar import committed, git
from building import GOOD, TASK_FILE, a_project, every_finding, gates, result, written

from gates.config import Settings
from gates.errors import UsageError
from gates.project.policy import found_at, judging

LOWER = TASK_FILE.replace("at_least: 1.5", "at_least: 0.5")
MEASURED = re.sub(r"tests: .*?criteria:\n.*?(?=  - id: AC2)", "criteria:\n", TASK_FILE, flags=re.DOTALL)
LESS, MORE = (MEASURED.replace("at_least: 1.5", f"at_least: {least}") for least in (0.5, 9))


def a_repository(folder: Path, **files: str) -> Path:
    project = a_project(folder, files)
    committed(project)
    return project


def test_lowered_bar_does_not_judge_itself(tmp_path: Path) -> None:
    project = a_repository(tmp_path, **{"tasks/T1.yaml": MORE})
    written(project, {"tasks/T1.yaml": LESS})
    ended = gates(project, "run", "T1", "--policy-from", "main")
    assert ended.code == 1
    assert gates(project, "verify", "reports/T1").code == 1  # by the base's task file, too
    assert "misses the target" in ended.out
    assert "policy changes: 1; the first: AC2" in ended.out
    task = result(project)["task"]
    policy = {"revision": "main", "commit": git(project, "rev-parse", "main")}
    assert (task["path"], task["policy"]) == ("tasks/T1.yaml", policy)
    assert "`tasks/T1.yaml @ main (" in (project / "reports/T1/audit.md").read_text(encoding="utf-8")
    assert gates(project, "run", "T1").code == 1
    assert {each["outcome"] for each in every_finding(project) if each["rule"] == "BL011"} == {"failed"}
    assert gates(project, "run", "T1", "--goalposts", "list").code == 3  # nothing but tests is wanting
    assert not [each for each in every_finding(project) if each["outcome"] == "failed" and each["level"] == "must"]


def test_lowered_bar_that_is_not_needed_passes_by_the_bar_of_the_base(tmp_path: Path) -> None:
    project = a_repository(tmp_path)
    written(project, {"tasks/T1.yaml": LOWER})
    written(project, {"reports/templates/summary.md.j2": "all is well\n"})
    written(project, {"pyproject.toml": GOOD["pyproject.toml"].replace("[tool.gates]", "[tool.gates]\ntasks = 'gone'")})
    ended = gates(project, "run", "tasks/T1.yaml", "--policy-from", "HEAD")
    assert (ended.code, ended.err.count("error")) == (0, 0)
    assert "all is well" not in (project / "reports/T1/summary.md").read_text(encoding="utf-8")


WRONG = {
    "nope": "--policy-from nope: there is no such revision; fetch it, or name another",
    "-x": "--policy-from -x: there is no such revision",
    "--output=x": "there is no such revision",
    "main:tasks/T1.yaml": "there is no such revision",
    "": "there is no such revision",
}


def test_revision_that_there_is_not_is_one_clear_line(tmp_path: Path) -> None:
    project = a_repository(tmp_path)
    for revision, said in WRONG.items():
        with pytest.raises(UsageError, match=said), judging(project, Settings(), revision):
            pass
        with pytest.raises(UsageError, match="there is no such revision"):
            found_at(project, revision, "--base")


def test_task_that_the_revision_does_not_have_is_wrong_usage(tmp_path: Path) -> None:
    project = a_repository(tmp_path)
    written(project, {"tasks/T2.yaml": TASK_FILE.replace("T1", "T2")})
    for name in ("T2", "tasks/T2.yaml"):
        ended = gates(project, "run", name, "--policy-from", "main")
        assert (ended.code, ended.out, len(ended.err.splitlines())) == (2, "", 1)
        assert "at main (" in ended.err


def test_broken_policy_is_named_with_its_revision_and_place(tmp_path: Path) -> None:
    project = a_repository(tmp_path, **{"tasks/T1.yaml": TASK_FILE + "extra: 1\n"})
    written(project, {"tasks/T1.yaml": TASK_FILE})
    ended = gates(project, "run", "T1", "--policy-from", "main")
    assert (ended.code, "tasks/T1.yaml:20:1: unknown key 'extra'" in ended.err) == (2, True)
    written(project, {"pyproject.toml": "[tool.gates]\nextra = 1\n"})
    committed(project)
    written(project, {"pyproject.toml": GOOD["pyproject.toml"]})
    ended = gates(project, "run", "T1", "--policy-from", "main")
    assert (ended.code, "pyproject.toml:2:1: unknown key 'extra'" in ended.err) == (2, True)


def test_project_without_a_repository_has_no_other_policy(tmp_path: Path) -> None:
    ended = gates(a_project(tmp_path), "run", "T1", "--policy-from", "main")
    assert (ended.code, "the project is not in a git repository" in ended.err) == (2, True)
    assert gates(tmp_path, "run", "T1", "--base", "main").code == 2


def test_links_of_the_revision_are_not_followed(tmp_path: Path) -> None:
    project = a_project(tmp_path)
    (project / "tasks/T1.yaml").unlink()
    (project / "tasks/T1.yaml").symlink_to("/etc/hostname")
    committed(project)
    (project / "tasks/T1.yaml").unlink()
    written(project, {"tasks/T1.yaml": TASK_FILE})
    ended = gates(project, "run", "T1", "--policy-from", "main")
    assert (ended.code, "no task 'T1'" in ended.err) == (2, True)
    git(project, "status", "--porcelain")


def test_folder_that_is_a_link_in_the_revision_is_said_to_be_one(tmp_path: Path) -> None:
    project = a_project(tmp_path / "p")
    (project / "tasks").rename(project / "elsewhere")
    (project / "tasks").symlink_to("elsewhere")
    committed(project)
    with pytest.raises(UsageError, match="tasks is a link or a submodule there"), judging(project, Settings(), "main"):
        pass
