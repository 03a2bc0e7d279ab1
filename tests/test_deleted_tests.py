"""A test that a task names and that the change deleted is told from one that never was."""

from pathlib import Path

from bar import committed, git
from building import written

from gates.evidence.tests.pytest_run import deleted_tests

ONE = "class TestA:\n    def test_one(self):\n        pass\n"
OLD = {"t/test_a.py": ONE, "t/test_b.py": "def test_two():\n    pass\n"}
NAMED = ["t/test_a.py::TestA::test_one[1]", "t/test_b.py", "t/test_b.py::test_two", "t/test_c.py", "t/test_a.py"]


def test_what_the_base_has_and_the_change_has_not_was_deleted(tmp_path: Path) -> None:
    written(tmp_path, OLD)
    assert deleted_tests(NAMED, tmp_path, None) == ()  # no repository
    committed(tmp_path)
    git(tmp_path, "branch", "-M", "main")
    git(tmp_path, "checkout", "-q", "-b", "change")
    assert deleted_tests(NAMED, tmp_path, None) == ()
    (tmp_path / "t/test_b.py").unlink()
    written(tmp_path, {"t/test_a.py": "class TestA:\n    pass\n"})
    assert deleted_tests(NAMED, tmp_path, None) == tuple(NAMED[:3])
