"""The files that a measurement speaks of: what it runs, and what that imports."""

from pathlib import Path
from typing import Any

import pytest
from building import a_context, a_task, written

from gates.errors import EvidenceUnavailable
from gates.evidence.bundles import bind, bound_files

FILES: dict[str, str | bytes] = {
    "pkg/__init__.py": "",
    "pkg/core.py": "from near import low\n",
    "pkg/sub/deep.py": "from .. import core\nfrom ..core import double\n",
    "pkg/data.bin": b"\0\1",
    "pkg/__pycache__/core.pyc": b"x",
    "pkg/.hidden": "x",
    "near/__init__.py": "from near.inner import *\n",
    "near/low.py": "",
    "near/inner.py": "import json\n",
    "far/__init__.py": "",
    "far/away.py": "",
    "bench/run.py": "import bench_data, far.away\n\n\ndef late():\n    from near import low\n",
    "bench/bench_data.py": "",
    "bench/unused.py": "",
    "tool/__init__.py": "",
    "tool/__main__.py": "from . import work\n",
    "tool/work.py": "",
    "settings.yaml": "x",
    "README.md": "x",
    "tests/test_core.py": "import pkg.core\n",
}
PKG = {
    "pkg/__init__.py",
    "pkg/core.py",
    "pkg/sub/deep.py",
    "pkg/data.bin",
    "near/__init__.py",
    "near/low.py",
    "near/inner.py",
}
SCRIPT = {"bench/run.py", "bench/bench_data.py", "far/__init__.py", "far/away.py"}
TOOL = {"tool/__init__.py", "tool/__main__.py", "tool/work.py"}


def bound(folder: Path, measurement: dict[str, Any], files: dict[str, str] | None = None, **changes: Any) -> set[str]:
    root = written(folder / "project", {**FILES, **(files or {})})
    task = a_task(measurements=[{"id": "bench", **measurement}], **changes)
    return {path.relative_to(root).as_posix() for path in bound_files(task, task.measurements[0], a_context(root))}


COMMANDS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "a script": ({"run": ["python", "bench/run.py", "{out}"]}, PKG | SCRIPT),
    "a module": ({"run": ["python", "-m", "tool", "{out}"]}, PKG | TOOL),
    "a file among the options": ({"run": ["python", "-m", "tool", "--with=settings.yaml", "{out}"]},
                                 PKG | TOOL | {"settings.yaml"}),
    "a folder": ({"run": ["tool", "far", "{out}"]}, PKG | TOOL | {"far/__init__.py", "far/away.py"}),
    "the whole project": ({"run": ["run", ".", "..", "/", "{out}"]}, PKG),
    "words that are no paths": ({"run": ["run", "x" * 5000, "a=b=c", "=", "*", "{out}"]}, PKG),
    "arms that are called": ({"arms": {"a": {"call": "far.away:step"}, "b": {"call": "tool.work:step"}}},
                             PKG | {"far/__init__.py", "far/away.py", "tool/__init__.py", "tool/work.py"}),
    "arms that are timed": ({"arms": {"a": {"time": ["python", "bench/run.py"]}, "b": {"time": ["true"]}}},
                            PKG | SCRIPT),
}  # fmt: skip


@pytest.mark.parametrize(("measurement", "files"), COMMANDS.values(), ids=COMMANDS.keys())
def test_files_are_those_that_the_measurement_runs(
    tmp_path: Path, measurement: dict[str, Any], files: set[str]
) -> None:
    assert bound(tmp_path, measurement) == files


def test_conftest_of_a_pytest_benchmark_is_one_of_them(tmp_path: Path) -> None:
    files = {"conftest.py": "", "far/conftest.py": "", "bench/conftest.py": ""}
    run = {"run": ["python", "-m", "pytest", "far", "{out}"], "read": "pytest-benchmark"}
    assert bound(tmp_path, run, files) >= {"conftest.py", "far/conftest.py"}
    assert "bench/conftest.py" not in bound(tmp_path / "2", run, files)


def test_file_that_is_no_python_hides_only_what_it_imports(tmp_path: Path) -> None:
    assert bound(tmp_path, {"run": ["true", "{out}"]}, {"pkg/core.py": "def ("}) == PKG - {
        "near/__init__.py", "near/low.py", "near/inner.py",
    }  # fmt: skip


def test_file_that_cannot_be_read_leaves_the_evidence_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = written(tmp_path / "project", {"pkg/core.py": "x = 1\n"})
    task, context = a_task(), a_context(root)
    files = bound_files(task, task.measurements[0], context)
    (root / "pkg/core.py").unlink()
    monkeypatch.setattr("gates.evidence.bundles.bound_files", lambda *_: files)
    with pytest.raises(EvidenceUnavailable, match=r"^pkg/core.py cannot be read: No such file"):
        bind(task, task.measurements[0], context)
