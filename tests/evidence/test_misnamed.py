"""Exceptions that tests expect by a wider kind, in real runs: those that came of a name that is not there are told."""

from pathlib import Path

import pytest
from building import a_context, a_task, pytest_options, written

from gates.evidence.pytest_run import PytestRun

CORE = """\
from enum import Enum


class NotThere(NameError):
    pass


def typo(x):
    raise NegativeEror(x)


def unbound(x):
    if x > 0:
        y = 1
    return y


def absent(x):
    import no_such_module_of_anybody
    return no_such_module_of_anybody.f(x)


def refuses(x):
    raise ValueError(x)


def says_no_name(x):
    raise NameError(f"name {x!r} is not defined")


def says_no_import(x):
    raise ImportError("install it")


def own(x):
    raise NotThere(x)


def calls(f):
    return f()
"""
EXPECTS: dict[str, tuple[str, str]] = {
    "any": ("with pytest.raises(Exception):\n        core.typo(1)", "NameError in pkg/core.py:9"),
    "any, by a call": ("pytest.raises(Exception, core.typo, 1)", "NameError in pkg/core.py:9"),
    "one of two": ("with pytest.raises((OSError, Exception)):\n        core.typo(1)", "NameError in pkg/core.py:9"),
    "a variable": ("with pytest.raises(Exception):\n        core.unbound(0)", "UnboundLocalError in pkg/core.py:15"),
    "a module": ("with pytest.raises(Exception):\n        core.absent(0)", "ModuleNotFoundError in pkg/core.py:19"),
    "unittest": ("with CASE.assertRaises(Exception):\n        core.typo(1)", "NameError in pkg/core.py:9"),
    "a refusal": ("with pytest.raises(Exception):\n        core.refuses(1)", ""),
    "that very kind": ("with pytest.raises(NameError):\n        core.typo(1)", ""),
    "that very kind or another": ("with pytest.raises((ValueError, NameError)):\n        core.typo(1)", ""),
    "a missing module": ("with pytest.raises(ImportError):\n        core.absent(1)", ""),
    "what is raised by hand": ("with pytest.raises(Exception):\n        core.says_no_name('x')", ""),
    "an import that is refused by hand": ("with pytest.raises(Exception):\n        core.says_no_import('x')", ""),
    "a kind of its own": ("with pytest.raises(Exception):\n        core.own('x')", ""),
    "in the test's own code": ("with pytest.raises(Exception):\n        core.calls(lambda: undefined)", ""),
}  # fmt: skip


def test_exception_of_a_name_that_is_not_there_is_told(tmp_path: Path) -> None:
    bodies = "\n".join(f"def test_{i}():\n    {body}\n    assert core.calls(int) == 0\n" for i, (body, _) in enumerate(
        EXPECTS.values()))  # fmt: skip
    files = {"pyproject.toml": pytest_options(), "pkg/__init__.py": "", "pkg/core.py": CORE}
    tests = f"import unittest\nimport pytest\nfrom pkg import core\nCASE = unittest.TestCase()\n{bodies}"
    root = written(tmp_path / "project", {**files, "tests/test_core.py": tests})
    run = PytestRun.collect(a_task(entry_points=[], measurements=[]), a_context(root))
    assert run.complete, (run.disagreements, run.process.stdout.tail)
    assert {name: test.misnamed for name, test in zip(EXPECTS, run.tests, strict=True)} == {
        name: expected for name, (_, expected) in EXPECTS.items()
    }  # fmt: skip


@pytest.mark.parametrize("parallel", ["", "-n 2"])
def test_methods_of_unittest_are_asked_too(tmp_path: Path, parallel: str) -> None:
    tests = "import unittest\nfrom pkg import core\nclass T(unittest.TestCase):\n    def test_it(self):\n"
    tests += "        with self.assertRaises(Exception):\n            core.typo(1)\n"
    files = {"pyproject.toml": pytest_options(parallel), "pkg/__init__.py": "", "pkg/core.py": CORE}
    root = written(tmp_path / "project", {**files, "tests/test_core.py": tests})
    run = PytestRun.collect(a_task(entry_points=[], measurements=[]), a_context(root))
    assert [test.misnamed for test in run.tests] == ["NameError in pkg/core.py:9"]
