"""A revision laid out in a folder of its own."""

from pathlib import Path

import pytest
from bar import committed, git
from building import written

from gates.checkout import lay_out
from gates.errors import EvidenceUnavailable


def test_files_modes_and_links_are_those_of_the_commit(tmp_path: Path) -> None:
    root = written(tmp_path / "p", {"a/b.txt": "one\n", "run.sh": "#!/bin/sh\n"})
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("a/b.txt")
    first = committed(root)
    git(root, "tag", "-a", "v1.5", "-m", "a version")
    written(root, {"a/b.txt": "two\n", "new.txt": ""})
    committed(root)
    target = tmp_path / "laid"
    assert lay_out(root, first, target) == ()
    assert (target / "a/b.txt").read_text() == "one\n"
    assert (target / "run.sh").stat().st_mode & 0o111
    assert (target / "link").readlink() == Path("a/b.txt")
    assert not (target / "new.txt").exists()
    assert git(target, "describe") == "v1.5"
    assert git(target, "status", "--porcelain") == ""
    assert git(root, "worktree", "list").count("\n") == 0


def test_submodules_come_from_the_clones_that_are_here_and_others_are_named(tmp_path: Path) -> None:
    inner = written(tmp_path / "inner", {"inside.txt": "pinned\n"})
    committed(inner)
    root = written(tmp_path / "p", {"a.txt": ""})
    committed(root)
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "lib")
    pinned = committed(root)
    written(root / "lib", {"inside.txt": "later\n"})
    assert lay_out(root, pinned, tmp_path / "laid") == ()
    assert (tmp_path / "laid/lib/inside.txt").read_text() == "pinned\n"
    bare = tmp_path / "bare"
    git(tmp_path, "clone", "-q", str(root), str(bare))
    assert lay_out(bare, pinned, tmp_path / "again") == ("lib",)


def test_a_commit_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    root = written(tmp_path / "p", {"a.txt": ""})
    committed(root)
    with pytest.raises(EvidenceUnavailable, match="cannot lay the baseline out: "):
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
