"""Stored bytecode of the project: what no source compiles to does not run in a source's place."""

import importlib.util
import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest
from building import a_project, gates, written

from gates.project.bytecode import PREFIX, in_doubt, of_its_sources

SOURCE = "def double(x: float) -> float:\n    return 2 * x\n"
OTHER = SOURCE.replace("2 * x", "x + x")
Mode = py_compile.PycInvalidationMode


def compiled(source: Path, text: str, mode: Mode = Mode.TIMESTAMP, optimize: int = 0) -> Path:
    """Store bytecode of another text in the place where that of a source is looked for, as if it were of it."""
    own, at = source.read_bytes(), source.stat()
    cached = Path(importlib.util.cache_from_source(source, optimization=optimize or ""))
    source.write_text(text, encoding="utf-8")
    os.utime(source, ns=(at.st_atime_ns, at.st_mtime_ns))
    py_compile.compile(str(source), str(cached), doraise=True, invalidation_mode=mode, optimize=optimize)
    source.write_bytes(own)
    os.utime(source, ns=(at.st_atime_ns, at.st_mtime_ns))
    stored = bytearray(cached.read_bytes())
    if mode is Mode.TIMESTAMP:
        stored[12:16] = len(own).to_bytes(4, "little")
    else:
        stored[8:16] = importlib.util.source_hash(own)
    cached.write_bytes(stored)
    return cached


def a_source(folder: Path) -> Path:
    return written(folder, {"pkg/core.py": SOURCE}) / "pkg/core.py"


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("optimize", [0, 1])
def test_bytecode_of_its_source_is_told_from_that_of_another(mode: Mode, optimize: int, tmp_path: Path) -> None:
    source = a_source(tmp_path)
    cached = compiled(source, SOURCE, mode, optimize)
    assert in_doubt(tmp_path, sys.executable) == ""
    compiled(source, OTHER, mode, optimize)
    assert in_doubt(tmp_path, sys.executable) == cached.relative_to(tmp_path).as_posix()


def test_bytecode_that_would_not_be_loaded_is_passed_over(tmp_path: Path) -> None:
    source = a_source(tmp_path)
    cached = compiled(source, OTHER)
    os.utime(source, (1, 1))
    assert in_doubt(tmp_path, sys.executable) == ""
    cached.rename(cached.with_name("core.cpython-27.pyc"))
    written(tmp_path, {"pkg/__pycache__/notes.txt": "", "env/lib/site-packages/a/__pycache__/b.pyc": ""})
    assert in_doubt(tmp_path, sys.executable) == ""


@pytest.mark.parametrize("content", [b"", b"\xff" * 40, b"\xe9\xff\xff\xff\x7f"])
def test_bytecode_that_cannot_be_read_is_in_doubt(content: bytes, tmp_path: Path) -> None:
    cached = compiled(a_source(tmp_path), SOURCE, Mode.UNCHECKED_HASH)
    cached.write_bytes(cached.read_bytes()[:16] + content)
    assert in_doubt(tmp_path, sys.executable)
    assert in_doubt(tmp_path, "/nowhere/python") == "pkg/__pycache__"


def test_other_lines_in_the_same_code_are_in_doubt(tmp_path: Path) -> None:
    compiled(a_source(tmp_path), SOURCE.replace("return", "\\\n    return"))
    assert in_doubt(tmp_path, sys.executable)


def test_what_pytest_stores_of_its_tests_is_compared_too(tmp_path: Path) -> None:
    test = "from pkg.core import double\n\n\ndef test_double():\n    assert double(2) == 4, 'no'\n"
    written(tmp_path, {"pkg/core.py": SOURCE, "tests/test_core.py": test, "conftest.py": ""})
    env = {name: value for name, value in os.environ.items() if name not in {"PYTHONDONTWRITEBYTECODE", PREFIX}}
    subprocess.run([sys.executable, "-m", "pytest", "-q"], cwd=tmp_path, env=env, check=True, timeout=60)
    (stored,) = tmp_path.glob("tests/__pycache__/*-pytest-*.pyc")
    assert in_doubt(tmp_path, sys.executable) == ""
    stored.write_bytes(stored.read_bytes().replace(b"no", b"on"))
    assert in_doubt(tmp_path, sys.executable) == stored.relative_to(tmp_path).as_posix()


def test_prefix_is_set_only_while_it_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PREFIX, raising=False)
    said: list[str] = []
    source = a_source(tmp_path)
    with of_its_sources(tmp_path, sys.executable, said.append):
        assert (PREFIX in os.environ, said) == (False, [])
    compiled(source, OTHER)
    with of_its_sources(tmp_path, sys.executable, said.append):
        assert not Path(os.environ[PREFIX]).exists()
    assert (PREFIX in os.environ, len(said)) == (False, 1)
    monkeypatch.setenv(PREFIX, "mine")
    with of_its_sources(tmp_path, sys.executable, said.append):
        assert os.environ[PREFIX] != "mine"
    assert (os.environ[PREFIX], len(said)) == ("mine", 1)


def test_source_is_judged_and_not_what_is_stored_in_its_place(tmp_path: Path) -> None:
    project = a_project(tmp_path, {"pkg/core.py": SOURCE.replace("2 * x", "5 * x")})
    compiled(project / "pkg/core.py", SOURCE, Mode.UNCHECKED_HASH)
    ended = gates(project, "run", "T1", "--gate", "execution")
    assert (ended.code, "core.cpython" in ended.err, "takes longer" in ended.err) == (1, True, True)
