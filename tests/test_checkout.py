"""A revision laid out in a folder of its own, and the history of a copy."""

import shutil
from pathlib import Path

import pytest
from bar import committed, git
from building import written

from gates.errors import EvidenceUnavailable
from gates.project.copies import copy_project, give_history, lay_out, placed
from gates.project.history import MAX_BLOB_BYTES, History, TwoStates


def test_files_modes_and_links_are_those_of_the_commit(tmp_path: Path) -> None:
    root = written(tmp_path / "p", {"a/b.txt": "one\n", "run.sh": "#!/bin/sh\n"})
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("a/b.txt")
    first = committed(root)
    git(root, "tag", "-a", "v1.5", "-m", "a version")
    written(root, {"a/b.txt": "two\n", "new.txt": ""})
    committed(root)
    target = tmp_path / "laid"
    lay_out(root, first, target)
    assert (target / "a/b.txt").read_text() == "one\n"
    assert (target / "run.sh").stat().st_mode & 0o111
    assert (target / "link").readlink() == Path("a/b.txt")
    assert not (target / "new.txt").exists()
    assert git(target, "describe") == "v1.5"
    assert git(target, "status", "--porcelain") == ""
    assert git(root, "worktree", "list").count("\n") == 0


def test_what_is_written_into_a_copy_stays_in_it(tmp_path: Path) -> None:
    outside, copy = written(tmp_path / "outside", {"a.py": "theirs"}), written(tmp_path / "copy", {"in/a.py": "ours"})
    for name, to in (("out", outside), ("b.py", outside / "a.py"), ("near", Path("in"))):
        (copy / name).symlink_to(to)
    for path in ("out/a.py", "b.py", "near/a.py"):
        placed(copy, path).write_text("base", encoding="utf-8")
    texts = [(folder / "a.py").read_text(encoding="utf-8") for folder in (outside, copy / "out", copy / "in")]
    assert texts == ["theirs", "base", "base"]


def test_a_commit_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    root = written(tmp_path / "p", {"a.txt": ""})
    committed(root)
    with pytest.raises(EvidenceUnavailable, match="cannot lay out a copy "):
        lay_out(root, "a" * 40, tmp_path / "laid")


def test_a_work_tree_of_its_own_and_a_shallow_clone_can_be_laid_out(tmp_path: Path) -> None:
    root = written(tmp_path / "p", {"a.txt": "one\n"})
    committed(root)
    written(root, {"a.txt": "two\n"})
    last = committed(root)
    git(root, "worktree", "add", "-q", "--detach", str(tmp_path / "tree"))
    lay_out(tmp_path / "tree", last, tmp_path / "one")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{root}", str(tmp_path / "shallow"))
    lay_out(tmp_path / "shallow", last, tmp_path / "two")
    assert (tmp_path / "one/a.txt").read_text() == (tmp_path / "two/a.txt").read_text() == "two\n"


@pytest.mark.parametrize("kind", ["here", "a work tree of its own", "a shallow clone"])
def test_a_copy_has_history_branch_and_index_and_writes_none_back(tmp_path: Path, kind: str) -> None:
    root = written(tmp_path / "p", {"a.txt": "one\n", "new.txt": "", ".gitignore": "ignored\n"})
    committed(root)
    git(root, "tag", "v1")
    git(root, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{root}", str(tmp_path / "shallow"))
    place = {"here": root, "a shallow clone": tmp_path / "shallow"}.get(kind, tmp_path / "tree")
    written(place, {"a.txt": "two\n", "untracked.txt": ""})
    git(place, "add", "a.txt")
    asked = (("status", "--porcelain"), ("branch", "--show-current"), ("rev-parse", "HEAD"), ("describe", "--tags"))
    before = [git(place, *words) for words in asked]
    copy = Path(shutil.copytree(place, tmp_path / "copy", ignore=shutil.ignore_patterns(".git")))
    give_history(place, copy)
    assert [git(copy, *words) for words in asked] == before
    committed(copy)
    git(copy, "tag", "v2")
    assert [git(place, *words) for words in asked] == before
    assert git(copy, "remote") == ""


def test_a_folder_that_is_no_top_of_a_work_tree_has_no_history_to_give(tmp_path: Path) -> None:
    root = written(tmp_path / "p", {"inner/a.txt": "one\n"})
    committed(root)
    (tmp_path / "copy").mkdir()
    for folder in (root / "inner", tmp_path):
        give_history(folder, tmp_path / "copy")
    assert list((tmp_path / "copy").iterdir()) == []


def test_a_copy_of_a_project_in_a_repository_has_what_lies_above_and_links_what_is_large(tmp_path: Path) -> None:
    repository = tmp_path / "all"
    committed(written(repository, {"one/code.py": "", "two/other.py": "", "conftest.py": "A = 1\n"}))
    (repository / "weights.bin").write_bytes(bytes(5 * 1024**2))
    copy = copy_project(repository / "one", tmp_path / "copy", 1)
    assert copy == tmp_path / "copy" / "one"
    assert {path.name for path in copy.parent.iterdir() if path.is_symlink()} == {"two", "weights.bin"}
    assert (copy.parent / "conftest.py").read_text(encoding="utf-8") == "A = 1\n"


def test_what_is_too_large_to_compare_is_named_once_in_the_order_asked(tmp_path: Path) -> None:
    names = [f"{number}.bin" for number in range(9)]
    commit = committed(written(tmp_path, {name: bytes(MAX_BLOB_BYTES + 1) for name in names}))
    states = TwoStates(History(tmp_path), commit, tmp_path)
    assert states.named(names) == ({}, {})
    here, there = ([f"{name} (too large{where})" for name in names] for where in ("", ", at the base"))
    assert [*states.skipped] == [*here, *there]
