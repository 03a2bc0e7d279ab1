"""Stored bytecode of the project: what no source compiles to does not run in a source's place."""

import importlib.util
import os
import py_compile
import time
from pathlib import Path

import pytest
from bar import committed, git
from building import a_project, gates, written

from gates.project.files import PREFIX, of_its_sources, outdated

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


@pytest.mark.parametrize(("mode", "is_taken"), [(Mode.TIMESTAMP, True), (Mode.UNCHECKED_HASH, True),
                                                (Mode.CHECKED_HASH, False)])  # fmt: skip
def test_bytecode_that_python_would_mistake_for_its_source_is_found(mode: Mode, is_taken: bool, tmp_path: Path) -> None:
    source = a_source(tmp_path)
    cached = compiled(source, OTHER, mode)
    assert [*outdated(tmp_path)] == [cached] * is_taken
    os.utime(source, (1, 1))  # of another time than its bytecode: Python sees it
    assert bool([*outdated(tmp_path)]) == (mode is Mode.UNCHECKED_HASH)


def test_what_is_of_its_source_or_can_be_no_bytecode_is_left(tmp_path: Path) -> None:
    source = a_source(tmp_path)
    py_compile.compile(str(source))
    written(tmp_path, {"pkg/__pycache__/notes.pyc": "", "env/lib/site-packages/a/__pycache__/b.pyc": "",
                       "pkg/notes.py": ""})  # fmt: skip
    assert not [*outdated(tmp_path)]


def test_caches_are_used_where_they_can_be_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PREFIX, raising=False)
    said: list[str] = []
    project = a_project(tmp_path, {"pkg/core.py": SOURCE})
    cached = compiled(project / "pkg/core.py", OTHER)
    with of_its_sources(project, said.append):
        assert (PREFIX in os.environ, cached.exists(), said) == (False, False, [])
    py_compile.compile(str(project / "pkg/core.py"))
    committed(project)
    git(project, "add", "-f", str(cached))
    with of_its_sources(project, said.append):
        assert (Path(os.environ[PREFIX]).exists(), cached.exists(), len(said)) == (False, True, 1)
    monkeypatch.setenv(PREFIX, "mine")
    with of_its_sources(tmp_path / "pkg", said.append):
        assert os.environ[PREFIX] != "mine"
    assert os.environ[PREFIX] == "mine"


@pytest.mark.parametrize("is_committed", [False, True])
def test_source_is_judged_and_not_what_is_stored_in_its_place(is_committed: bool, tmp_path: Path) -> None:
    project = a_project(tmp_path, {"pkg/core.py": SOURCE.replace("2 * x", "5 * x")})
    cached = compiled(project / "pkg/core.py", SOURCE, Mode.UNCHECKED_HASH)
    assert importlib.util.cache_from_source(project / "pkg/core.py") == str(cached)
    if is_committed:
        committed(project)
        git(project, "add", "-f", str(cached))
    ended = gates(project, "run", "T1", "--gate", "execution")
    assert (ended.code, "is committed" in ended.err) == (1, is_committed)
