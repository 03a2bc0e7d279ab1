"""What differs from the commit, seen by contents: git may have been told not to look, or to go by times alone."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from bar import committed, git
from building import a_context, a_project, a_task, gates, result, written

from gates.project.revision import observe, unlike_head

WORSE, PATHS = "def double(x):\n    return x * 3\n", ("pkg", "tests/test_core.py::test_double", "tasks/T1.yaml")


def told(flag: str) -> Callable[[Path], None]:
    def hide(root: Path) -> None:
        git(root, "update-index", flag, "pkg/core.py")
        written(root, {"pkg/core.py": WORSE})

    return hide


def by_times(root: Path) -> None:
    git(root, "config", "core.trustctime", "false")
    git(root, "config", "core.checkStat", "minimal")
    path, seen = root / "pkg/core.py", (root / "pkg/core.py").stat()
    os.utime(path, (seen.st_atime, seen.st_mtime - 100))
    git(root, "update-index", "--refresh")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("+", "*"), encoding="utf-8")
    os.utime(path, (seen.st_atime, seen.st_mtime - 100))


def gone(root: Path) -> None:
    git(root, "update-index", "--skip-worktree", "pkg/core.py")
    (root / "pkg/core.py").unlink()


HIDDEN: dict[str, Callable[[Path], None]] = {
    "skip-worktree": told("--skip-worktree"), "assume-unchanged": told("--assume-unchanged"), "times": by_times,
    "gone": gone,
}  # fmt: skip


def a_commit(root: Path, files: dict[str, str] | None = None) -> Path:
    committed(a_project(root, files or {}))
    return root


@pytest.mark.parametrize("how", HIDDEN)
def test_what_git_was_told_not_to_see_is_seen(how: str, tmp_path: Path) -> None:
    root = a_commit(tmp_path / "project")
    assert unlike_head(root, PATHS) == ()
    assert observe(a_task(), a_context(root)).dirty is False
    HIDDEN[how](root)
    assert git(root, "status", "--porcelain") == ""
    seen = observe(a_task(), a_context(root))
    assert (seen.dirty, seen.hidden, seen.web) == (True, ("pkg/core.py",), None)


def test_what_git_says_itself_is_not_hidden(tmp_path: Path) -> None:
    top = written(tmp_path / "top", {})
    root = a_project(top / "project", {"pkg/old.py": "B = 1\n", "pkg/ü.py": "C = 1\n"})
    committed(top)
    HIDDEN["skip-worktree"](root)
    git(root, "mv", "pkg/old.py", "pkg/new.py")
    written(root, {"pkg/ü.py": "C = 2\n", "pkg/__init__.py": "D = 1\n"})
    seen = observe(a_task(), a_context(root))
    assert (seen.dirty, seen.hidden) == (True, ("pkg/core.py",))


def test_the_report_names_what_is_hidden(tmp_path: Path) -> None:
    root = a_commit(tmp_path / "project")
    written(root, {"pkg/core.py": (root / "pkg/core.py").read_text(encoding="utf-8") + "# a change\n"})
    git(root, "update-index", "--assume-unchanged", "pkg/core.py")
    ended = gates(root, "run", "T1", "--gate", "performance")
    assert "\nnot of the commit: pkg/core.py differs from it unseen by git\n" in ended.out
    assert result(root)["revision"]["hidden"] == ["pkg/core.py"]
    page = (root / "reports/T1/partial/summary.md").read_text(encoding="utf-8")
    assert "- **Not of the commit**: pkg/core.py differs from it unseen by git" in page


def test_what_is_not_of_the_task_is_not_asked_for(tmp_path: Path) -> None:
    root = a_commit(tmp_path / "project", {"notes/a.txt": "a\n"})
    git(root, "update-index", "--skip-worktree", "notes/a.txt")
    (root / "notes/a.txt").unlink()
    assert unlike_head(root, PATHS) == ()
    assert unlike_head(root, (".",)) == ("notes/a.txt",)


def test_line_ends_encodings_filters_and_links_are_as_git_puts_them_in(tmp_path: Path) -> None:
    attributes = "*.bat eol=crlf\n*.txt working-tree-encoding=UTF-16\n*.up filter=up\n*.id ident\n"
    top = written(tmp_path / "top", {".gitattributes": attributes})
    root = a_project(top / "project", {"pkg/a.bat": "dir\n", "pkg/d.id": "$Id$\n"})
    (root / "pkg/b.txt").write_bytes("ü\n".encode("utf-16"))
    (root / "pkg/c.up").write_text("up", encoding="utf-8")
    (root / "pkg/linked").symlink_to("core.py")
    git(top, "init", "-q")
    for name, words in (("clean", "tr a-z A-Z"), ("smudge", "tr A-Z a-z")):
        git(top, "config", f"filter.up.{name}", words)
    git(top, "add", "-A")
    git(top, "commit", "-qm", "one")
    for path in ("a.bat", "d.id"):
        (root / "pkg" / path).unlink()
        git(top, "checkout", "-q", "--", f"project/pkg/{path}")
    assert b"\r\n" in (root / "pkg/a.bat").read_bytes()
    assert unlike_head(root, ("pkg",)) == ()
    (root / "pkg/c.up").write_text("down", encoding="utf-8")
    (root / "pkg/linked").unlink()
    (root / "pkg/linked").symlink_to("other.py")
    assert unlike_head(root, ("pkg",)) == ("pkg/c.up", "pkg/linked")


def test_a_submodule_is_looked_into(tmp_path: Path) -> None:
    inner = written(tmp_path / "inner", {"inside.py": "A = 1\n"})
    committed(inner)
    root = a_commit(tmp_path / "project")
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "pkg/lib")
    git(root, "commit", "-qm", "two")
    assert unlike_head(root, ("pkg",)) == ()
    written(root, {"pkg/lib/inside.py": "A = 2\n"})
    assert unlike_head(root, ("pkg",)) == ("pkg/lib",)
    assert observe(a_task(implementation=["pkg/lib/inside.py"]), a_context(root)).dirty


def test_without_a_commit_there_is_nothing_to_differ_from(tmp_path: Path) -> None:
    root = a_project(tmp_path / "project")
    assert unlike_head(root, PATHS) == ()
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    assert unlike_head(root, PATHS) == ()
