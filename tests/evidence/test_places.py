"""Which files are the project's own, told the same by all programs that run in its process."""

import pytest

from gates.child.recorder import places as recorder
from gates.evidence._concurrency import places as probe


@pytest.mark.parametrize("places", [probe.Places, recorder.Places], ids=["probe", "recorder"])
@pytest.mark.parametrize("root", ["/home/p", "/usr/lib/python3/site-packages/p"])
def test_what_is_installed_inside_of_the_project_is_not_its_own(
    places: type[probe.Places | recorder.Places], root: str
) -> None:
    own, foreign = [f"{root}/pkg/a.py", f"{root}/site-packages-mirror/b.py"], f"{root}/.venv/lib/site-packages/c.py"
    found = places(root)
    assert [found.shown(path) for path in own] == ["pkg/a.py", "site-packages-mirror/b.py"]
    assert [found.shown(path) for path in (foreign, "/home/other/a.py", "<string>")] == [None] * 3
