"""Addresses of files on the web, from a repository's remote; never with the password that it may hold."""

import pytest

from gates.model import Location
from gates.permalinks import base_of
from gates.render.escape import link

SHA = "a" * 40


@pytest.mark.parametrize(
    ("remote", "base"),
    [
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
    ],
)
def test_the_address_of_a_remote(remote: str, base: str | None) -> None:
    assert base_of(remote, SHA) == base


def test_a_link_cannot_be_left_by_the_name_of_a_file() -> None:
    web = f"https://github.com/owner/name/blob/{SHA}/"
    shown = link(Location(path="a) [x](b|c.py", line=1, last_line=3), web)
    assert shown == f"[`a) [x](b\\|c.py:1-3`]({web}a%29%20%5Bx%5D%28b%7Cc.py#L1-L3)"
    assert link(Location(path="a.py", line=1), None) == "`a.py:1`"
