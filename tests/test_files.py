"""The files that a task speaks of."""

from pathlib import Path

from building import written

from gates.project.files import files_of


def test_files_of_caches_and_hidden_folders_are_left_out(tmp_path: Path) -> None:
    names = ["b.py", "a/c.py", "a/d.txt", ".git/e.py", "a/.venv/lib/f.py", "a/__pycache__/g.py", "h.pyc", ".i.py"]
    written(tmp_path, dict.fromkeys(names, ""))
    found = [path.relative_to(tmp_path).as_posix() for path in files_of((".", "a/c.py::test_x"), tmp_path)]
    assert found == ["a/c.py", "a/d.txt", "b.py"]


def test_hidden_folder_is_read_where_it_is_asked_for(tmp_path: Path) -> None:
    written(tmp_path, {".hidden/a.py": ""})
    assert files_of((".hidden",), tmp_path) == [tmp_path / ".hidden/a.py"]


def test_links_are_no_way_out_and_no_circle(tmp_path: Path) -> None:
    written(tmp_path, {"p/a.py": "", "other/b.py": ""})
    (tmp_path / "p/round").symlink_to(tmp_path / "p")
    (tmp_path / "p/away").symlink_to(tmp_path / "other")
    (tmp_path / "p/nothing.py").symlink_to(tmp_path / "missing.py")
    (tmp_path / "p/file.py").symlink_to(tmp_path / "other/b.py")
    assert [path.name for path in files_of(("p",), tmp_path)] == ["a.py", "file.py"]
