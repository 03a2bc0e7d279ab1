"""The files that a task speaks of; and stored bytecode, which does not run in the place of a source that changed."""

import functools
import importlib.util
import os
import py_compile
import sys
import time
from pathlib import Path
from types import CodeType

import pytest
from _pytest.assertion import rewrite
from building import a_project, gates, written

from gates.child.witness.rewriting import keep
from gates.project.files import files_of, of_its_sources

SOURCE = "def double(x: float) -> float:\n    return 2 * x\n"
OTHER = SOURCE.replace("2 * x", "x + x")
Mode = py_compile.PycInvalidationMode


def compiled(source: Path, text: str, mode: Mode = Mode.TIMESTAMP) -> Path:
    """Store bytecode of an earlier text of the same size, then write the source as it is, within the same second."""
    own, at = source.read_bytes(), source.stat()
    source.write_text(text, encoding="utf-8")
    os.utime(source, ns=(at.st_atime_ns, at.st_mtime_ns))
    cached = Path(py_compile.compile(str(source), doraise=True, invalidation_mode=mode) or "")
    while source.stat().st_ctime_ns <= cached.stat().st_ctime_ns:  # the file system's clock ticks
        time.sleep(0.001)
        source.write_bytes(own)
        os.utime(source, ns=(at.st_atime_ns, at.st_mtime_ns))
    return cached


def a_source(folder: Path) -> Path:
    return written(folder, {"pkg/core.py": SOURCE}) / "pkg/core.py"


@pytest.mark.parametrize("mode", [Mode.TIMESTAMP, Mode.UNCHECKED_HASH])
def test_bytecode_that_python_would_mistake_for_its_source_is_removed(mode: Mode, tmp_path: Path) -> None:
    cached = compiled(a_source(tmp_path), OTHER, mode)
    of_its_sources(tmp_path)
    assert not cached.exists()


def test_bytecode_of_its_source_and_that_of_environments_is_left(tmp_path: Path) -> None:
    own = Path(str(py_compile.compile(str(a_source(tmp_path)), doraise=True)))
    env = "env/lib/site-packages/a"
    written(tmp_path, {f"{env}/__pycache__/b.pyc": ""})
    written(tmp_path, {f"{env}/b.py": ""})
    of_its_sources(tmp_path)
    assert own.exists()
    assert (tmp_path / env / "__pycache__/b.pyc").exists()


def test_source_is_judged_and_not_what_is_stored_in_its_place(tmp_path: Path) -> None:
    project = a_project(tmp_path, {"pkg/core.py": SOURCE.replace("2 * x", "5 * x")})
    cached = compiled(project / "pkg/core.py", SOURCE, Mode.UNCHECKED_HASH)
    assert importlib.util.cache_from_source(project / "pkg/core.py") == str(cached)
    assert gates(project, "run", "T1", "--gate", "execution").code == 1


def test_code_of_tests_that_pytest_rewrote_is_kept_by_their_text_and_not_in_ci(tmp_path: Path) -> None:
    project, tests = a_project(tmp_path), tmp_path / "tests/test_core.py"
    before, seen = tests.read_text(), list[dict[Path, int]]()
    other = before.replace("==", "!=")
    for ci, text, code in (("yes", before, 3), ("", before, 3), ("", other, 1), ("", before, 3), ("", before, 3)):
        tests.write_text(text)
        assert gates(project, "run", "T1", "--gate", "execution", "--fresh", env={"CI": ci}).code == code
        seen.append({path: path.stat().st_mtime_ns for path in (tmp_path / ".gates/rewritten").glob("*")})
    assert not seen[0]
    assert seen[1] != seen[2] != seen[3] == seen[4]
    assert not [*project.rglob("*.pyc")]
    tests.write_text(before.replace("2)", "2) * len('\\d') / 2"))  # Python warns as it compiles it, each time
    for settings, code in (("", 3), ("", 3), ("filterwarnings = ['error']\n", 1)):
        written(project, {"pyproject.toml": (project / "pyproject.toml").read_text() + settings})
        assert gates(project, "run", "T1", "--gate", "execution", "--fresh", env={"CI": ""}).code == code


def test_code_that_pytest_rewrote_is_taken_in_a_copy_as_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    made, make = list[Path](), rewrite._rewrite_test

    @functools.wraps(make)
    def counted(path: Path, config: pytest.Config) -> tuple[object, CodeType]:
        made.append(path)
        return make(path, config)

    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    text = {"test_it.py": "def test_it():\n    assert True\n"}
    home, copy = (written(tmp_path / name, text) / "test_it.py" for name in ("home", "copy"))
    states = []
    for path, place in ((home, ""), (copy, str(copy.parent))):
        monkeypatch.setattr(rewrite, "_rewrite_test", counted)
        keep(home.parent / ".gates/rewritten", place)
        state, code = rewrite._rewrite_test(path, pytestconfig)
        (inner,) = (each for each in code.co_consts if isinstance(each, CodeType))
        assert (code.co_filename, inner.co_filename) == (str(path), str(path))
        states.append(state)
    assert type(states[0]) is type(states[1])
    copy.write_text(text["test_it.py"].replace("True", "1"))
    rewrite._rewrite_test(copy, pytestconfig)
    assert made == [home, copy]


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
