"""What a task speaks of and nobody read keeps the verdict from being a pass."""

from pathlib import Path

import pytest
from building import TASK_FILE, a_context, a_project, every_finding, gates

from gates.evidence.source_tree import SourceTree
from gates.model import Finding, Outcome
from gates.project.what_was_read import not_read
from gates.task import loading

ONE = TASK_FILE.partition("  - id: AC2")[0]
TEMPLATE = {"pkg/templates/new/{{name}}.py": "import {{ name }}\n"}


def unread(root: Path) -> list[Finding]:
    task = loading.load(root / "tasks/T1.yaml", root)
    return [*not_read(SourceTree.collect(task, a_context(root)), task, root)]


def test_what_was_not_read_leaves_the_verdict_open_unless_it_is_no_part_of_the_task(tmp_path: Path) -> None:
    task = ONE.replace("[pkg]", "[pkg, empty]")
    project = a_project(tmp_path / "p", {"tasks/T1.yaml": task, "empty/.keep": "", **TEMPLATE})
    assert gates(project, "run", "T1").code == 3
    found = {each["rule"]: each for each in every_finding(project) if each["rule"] in {"GT006", "GT007"}}
    assert "'empty' (tasks/T1.yaml:3:23), and that folder has no file." in found["GT006"]["message"]
    assert found["GT006"]["location"]["line"] == 3
    assert found["GT007"]["location"] == {"path": "pkg/templates/new/{{name}}.py", "line": 1, "last_line": None}
    assert {each["outcome"] for each in found.values()} == {"unknown"}
    (project / "tasks/T1.yaml").write_text(ONE.replace("[pkg]", "[pkg/core.py, pkg/__init__.py]"), encoding="utf-8")
    assert gates(project, "run", "T1").code == 0


@pytest.mark.parametrize(("content", "said"), [
    ("x = 'a' + \\\n", ""),
    (b"x = '\xff'\n", "it is not UTF-8."),
    ("x = '" + "a" * 3_000_000 + "'\n", "3000007 bytes, more than 2097152: not read."),
    (f"x = 1{' + 1' * 20_000}\n", "nested too deeply to be read."),
], ids=["syntax", "encoding", "size", "nesting"])  # fmt: skip
def test_file_that_cannot_be_read_is_unknown_with_its_reason(tmp_path: Path, content: str | bytes, said: str) -> None:
    (found,) = unread(a_project(tmp_path / "p", {"tasks/T1.yaml": ONE, "pkg/more.py": content}))
    assert (found.rule, found.outcome, found.leaves_open) == ("GT007", Outcome.UNKNOWN, True)
    assert found.location and found.location.path == "pkg/more.py"
    assert f"pkg/more.py is part of the implementation and could not be read: {said}" in found.message


def test_many_files_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    bad = {f"pkg/t/{{{i}}}.py": "import {{ name }}\n" for i in range(8)}
    found = unread(a_project(tmp_path / "p", {"tasks/T1.yaml": ONE, **bad}))
    assert (len(found), found[-1].message.endswith(" 3 more were not.")) == (5, True)


def test_notebook_is_said_to_be_unread_and_leaves_nothing_open(tmp_path: Path) -> None:
    (found,) = unread(a_project(tmp_path / "p", {"tasks/T1.yaml": ONE, "pkg/demo.ipynb": "{}"}))
    assert (found.rule, found.outcome, found.leaves_open) == ("GT007", Outcome.UNKNOWN, False)
    assert found.message == "Notebooks of the implementation are read by no check: pkg/demo.ipynb."
