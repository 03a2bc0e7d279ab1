"""Addresses of files on the web, from a repository's remote; never with the password that it may hold."""

from pathlib import Path

import pytest
from bar import committed, git
from building import written

from gates.model import Location
from gates.project.revision import address_of, web_of
from gates.render.markdown import link

SHA = "a" * 40


REMOTES = [
    ("git@github.com:owner/name.git", f"https://github.com/owner/name/blob/{SHA}/"),
    ("https://github.com/owner/name", f"https://github.com/owner/name/blob/{SHA}/"),
    ("https://user:secret@github.com/owner/name.git", f"https://github.com/owner/name/blob/{SHA}/"),
    ("ssh://git@git.example.org:2222/owner/name.git", f"https://git.example.org/owner/name/blob/{SHA}/"),
    ("https://gitlab.example.org/a/b/c.git", f"https://gitlab.example.org/a/b/c/-/blob/{SHA}/"),
    ("/srv/git/name.git", None),
    ("../name", None),
    ("file:///srv/git/name.git", None),
    ("https://[broken/owner/name", None),
    ("javascript://github.com/owner/name", None),
    ("git@evil host:owner/name", None),
]


@pytest.mark.parametrize(("remote", "base"), REMOTES)
def test_the_address_of_a_remote(remote: str, base: str | None) -> None:
    assert address_of(remote, SHA) == base


def test_a_link_cannot_be_left_by_the_name_of_a_file() -> None:
    web = f"https://github.com/owner/name/blob/{SHA}/"
    shown = link(Location(path="a) [x](b|c.py", line=1, last_line=3), web)
    assert shown == f"[`a) [x](b\\|c.py:1-3`]({web}a%29%20%5Bx%5D%28b%7Cc.py#L1-L3)"
    assert link(Location(path="a.py", line=1), None) == "`a.py:1`"


def a_repository(folder: Path, remote: str) -> str:
    head = committed(written(folder, {"a.py": "A = 1\n"}))
    git(folder, "remote", "add", "origin", remote)
    return head


def test_what_differs_from_the_commit_is_linked_to_nothing(tmp_path: Path) -> None:
    project = tmp_path / "project"
    head = a_repository(project, "git@github.com:owner/name.git")
    assert web_of(project) == f"https://github.com/owner/name/blob/{head}/"
    (project / "new.py").write_text("B = 2\n", encoding="utf-8")
    assert web_of(project) is None


def test_a_commit_with_submodules_is_linked_to_nothing(tmp_path: Path) -> None:
    a_repository(tmp_path, "git@github.com:owner/name.git")
    a_repository(tmp_path / "lib" / "sub", "https://github.com/other/sub.git")
    committed(tmp_path)
    assert web_of(tmp_path) is None
