"""What a task speaks of and nobody read keeps the verdict from being a pass."""

from pathlib import Path
from typing import Any

import pytest
from building import TASK_FILE, a_project, every_finding, gates

ONE = TASK_FILE.partition("  - id: AC2")[0]
NO_PYTHON = "is part of the implementation and could not be read: "


def unknowns(project: Path, rule: str) -> list[dict[str, Any]]:
    return [f for f in every_finding(project) if f["rule"] == rule]


def test_folder_without_a_file_leaves_the_verdict_open(tmp_path: Path) -> None:
    task = ONE.replace("[pkg]", "[pkg, empty]")
    project = a_project(tmp_path, {"tasks/T1.yaml": task, "empty/.keep": ""})
    assert gates(project, "run", "T1").code == 3
    (found,) = unknowns(project, "GT006")
    assert "'empty' (tasks/T1.yaml:3:23), and that folder has no file." in found["message"]
    assert found["location"]["line"] == 3


@pytest.mark.parametrize(("content", "said"), [
    ("x = 'a' + \\\n", f"pkg/more.py {NO_PYTHON}"),
    (b"x = '\xff'\n", f"pkg/more.py {NO_PYTHON}it is not UTF-8."),
    ("x = '" + "a" * 3_000_000 + "'\n", f"pkg/more.py {NO_PYTHON}3000007 bytes, more than 2097152: not read."),
    (f"x = 1{' + 1' * 20_000}\n", f"pkg/more.py {NO_PYTHON}nested too deeply to be read."),
], ids=["syntax", "encoding", "size", "nesting"])  # fmt: skip
def test_file_that_cannot_be_read_leaves_the_verdict_open(tmp_path: Path, content: str | bytes, said: str) -> None:
    project = a_project(tmp_path, {"tasks/T1.yaml": ONE, "pkg/more.py": content})
    assert gates(project, "run", "T1").code != 0
    (found,) = unknowns(project, "GT007")
    assert (found["outcome"], found["location"]["path"], said in found["message"]) == ("unknown", "pkg/more.py", True)


def test_template_beside_what_is_named_is_no_matter(tmp_path: Path) -> None:
    files = {"tasks/T1.yaml": ONE, "pkg/templates/new/{{name}}.py": "import {{ name }}\n"}
    project = a_project(tmp_path, files)
    assert gates(project, "run", "T1").code == 3
    (found,) = unknowns(project, "GT007")
    assert found["location"] == {"path": "pkg/templates/new/{{name}}.py", "line": 1, "last_line": None}
    (project / "tasks/T1.yaml").write_text(ONE.replace("[pkg]", "[pkg/core.py, pkg/__init__.py]"), encoding="utf-8")
    assert gates(project, "run", "T1").code == 0


def test_many_files_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    bad = {f"pkg/t/{{{i}}}.py": "import {{ name }}\n" for i in range(8)}
    project = a_project(tmp_path, {"tasks/T1.yaml": ONE, **bad})
    assert gates(project, "run", "T1").code == 3
    found = unknowns(project, "GT007")
    assert (len(found), found[-1]["message"].endswith(" 3 more were not.")) == (5, True)
