"""Which files are the project's own."""

import pytest

from gates.child.asking import Places


@pytest.mark.parametrize("root", ["/home/p", "/usr/lib/python3/site-packages/p"])
def test_what_is_installed_inside_of_the_project_is_not_its_own(root: str) -> None:
    own, foreign = [f"{root}/pkg/a.py", f"{root}/site-packages-mirror/b.py"], f"{root}/.venv/lib/site-packages/c.py"
    places = Places(root)
    assert [places.shown(path) for path in own] == ["pkg/a.py", "site-packages-mirror/b.py"]
    assert [places.shown(path) for path in (foreign, "/home/other/a.py", "<string>")] == [None] * 3
