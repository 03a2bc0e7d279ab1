"""A small project of which the witness of a test run watches a function, and what it tells of that."""

from collections.abc import Mapping
from pathlib import Path

from building import a_context, a_criterion, a_task, pytest_options, written

from gates.evidence.pytest_run import PytestRun

CORE = """\
import functools


def double(x):
    return x + x


def quad(x):
    return double(double(x))


@functools.lru_cache
def kept(x):
    return x


class Calc:
    by = 2

    def times(self, x):
        return x * self.by

    @staticmethod
    def plain(x):
        return x
"""


def kinds_in(tmp_path: Path, tests: str, files: Mapping[str, str | bytes], symbol: str) -> dict[str, dict[str, str]]:
    """Run tests of a project that has these files, too; return what each had in the place of a symbol's code."""
    root = written(tmp_path / "project", {
        "pyproject.toml": pytest_options(), "tests/test_core.py": tests, "pkg/__init__.py": "", "pkg/core.py": CORE,
        **files,
    })  # fmt: skip
    task = a_task(entry_points=[], measurements=[], criteria=[a_criterion(code=[{"symbol": symbol}])])
    run = PytestRun.collect(task, a_context(root))
    assert run.complete, (run.disagreements, run.process.stdout.tail)
    return {test.id.rpartition("::")[2]: {one.kind.value: one.by for one in test.replaced} for test in run.tests}
