"""Stored bytecode of the project: what no source compiles to does not run in a source's place."""

import importlib.util
import os
import py_compile
import time
from pathlib import Path

import pytest
from building import a_project, gates, written

from gates.project.files import of_its_sources, outdated

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
def test_bytecode_that_python_would_mistake_for_its_source_is_found(mode: Mode, tmp_path: Path) -> None:
    cached = compiled(a_source(tmp_path), OTHER, mode)
    assert [*outdated(tmp_path)] == [cached]


def test_bytecode_of_its_source_and_that_of_environments_is_left(tmp_path: Path) -> None:
    source = a_source(tmp_path)
    py_compile.compile(str(source))
    env = "env/lib/site-packages/a"
    written(tmp_path, {f"{env}/__pycache__/b.pyc": ""})
    written(tmp_path, {f"{env}/b.py": ""})
    assert not [*outdated(tmp_path)]


def test_only_what_python_would_mistake_is_removed(tmp_path: Path) -> None:
    source = a_source(tmp_path)
    cached = compiled(source, OTHER)
    of_its_sources(tmp_path)
    assert not cached.exists()
    py_compile.compile(str(source))
    of_its_sources(tmp_path)
    assert cached.exists()


def test_source_is_judged_and_not_what_is_stored_in_its_place(tmp_path: Path) -> None:
    project = a_project(tmp_path, {"pkg/core.py": SOURCE.replace("2 * x", "5 * x")})
    cached = compiled(project / "pkg/core.py", SOURCE, Mode.UNCHECKED_HASH)
    assert importlib.util.cache_from_source(project / "pkg/core.py") == str(cached)
    assert gates(project, "run", "T1", "--gate", "execution").code == 1
