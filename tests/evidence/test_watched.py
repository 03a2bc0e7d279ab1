"""Functions that criteria are traced to, watched in real runs: a test that replaces one is told, no other is."""

from collections.abc import Mapping
from pathlib import Path

import pytest
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
SYMBOLS = ("pkg.core:double", "pkg.core:kept", "pkg.core:Calc")
TESTS = """\
import sys
from unittest import mock

import pytest

import pkg.core as core
from pkg.core import Calc, double


def test_as_it_is():
    assert double(2) == 4 and core.kept(1) == 1 and Calc().times(1) == Calc.plain(2)


def test_monkeypatch(monkeypatch):
    assert 1
    monkeypatch.setattr(core, "double", lambda x: 4)
    assert core.double(2) == 4


def test_patch_is_over_before_the_assertion():
    with mock.patch("pkg.core.double", return_value=4):
        found = core.double(2)
    assert found == 4


@mock.patch("pkg.core.kept")
def test_decorated(fake):
    assert fake


def test_method(monkeypatch):
    monkeypatch.setattr(Calc, "times", lambda self, x: 4)
    assert Calc().times(2) == 4


def test_class(monkeypatch):
    monkeypatch.setattr(core, "Calc", mock.Mock())
    assert core.Calc().times(2)


def test_code():
    before, double.__code__ = double.__code__, (lambda x: 4).__code__
    found = double(3)
    double.__code__ = before
    assert found == 4


def test_own_name(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "double", lambda x: 4)
    assert double(2) == 4


def test_asserted_first(monkeypatch):
    assert double(2) == 4
    monkeypatch.setattr(core, "double", lambda x: 4)


def test_after_another():
    assert double(2) == 4


def test_spies():
    with mock.patch.object(core, "double", wraps=core.double) as spy, mock.patch.object(
        Calc, "times", autospec=True, side_effect=Calc.times
    ):
        assert core.quad(2) == 8 and Calc().times(2) == 4 and spy.called


def test_collaborator(monkeypatch):
    monkeypatch.setattr(Calc, "by", 3)
    monkeypatch.setattr(core, "quad", None)
    assert Calc().times(2) == 6
"""
REPLACED = {
    "test_monkeypatch": {"double"},
    "test_patch_is_over_before_the_assertion": {"double"},
    "test_decorated": {"kept"},
    "test_method": {"Calc.times"},
    "test_class": {"Calc.times", "Calc.plain"},
    "test_code": {"double"},
    "test_own_name": {"double"},
}


def replaced_in(tmp_path: Path, tests: str, more: Mapping[str, str | bytes] | None = None) -> dict[str, set[str]]:
    code = {"pkg/__init__.py": "", "pkg/core.py": CORE}
    files = {"pyproject.toml": pytest_options(), "tests/test_core.py": tests, **code, **(more or {})}
    root = written(tmp_path / "project", files)
    symbols = [{"symbol": symbol} for symbol in SYMBOLS]
    task = a_task(entry_points=[], measurements=[], criteria=[a_criterion(code=symbols)])
    run = PytestRun.collect(task, a_context(root))
    assert run.complete, (run.disagreements, run.process.stdout.tail)
    assert {name.partition(":")[0] for test in run.tests for name in test.replaced} <= {"pkg/core.py"}
    return {test.id.rpartition("::")[2]: {name.partition(":")[2] for name in test.replaced} for test in run.tests}


def test_what_a_test_replaces_before_it_asserts_is_told_and_no_more(tmp_path: Path) -> None:
    found = replaced_in(tmp_path, TESTS)
    assert {name: names for name, names in found.items() if names} == REPLACED


SIMPLE = "from pkg.core import double\n\ndef test_it():\n    assert double(2) == 4\n"
FAKE = "import pkg.core\n_real = pkg.core.double\ndef fake(x):\n    return (_real(x), 4)[1]\n"
LOADER = """\
import importlib.util, importlib.machinery, pathlib, sys
class Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, name):
        return self.source_to_code(self.get_data(self.path).replace(b'x + x', b'2 * x'), self.path)
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        file = str(pathlib.Path('pkg/core.py').resolve())
        if name == 'pkg.core':
            return importlib.util.spec_from_file_location(name, file, loader=Loader(name, file))
sys.meta_path.insert(0, Finder)
"""
MODULE = """\
import sys, types, pkg, pkg.core as real
sys.modules['pkg.core'] = pkg.core = types.ModuleType('pkg.core')
pkg.core.double = lambda x: (real.double(x), 4)[1]
"""
HARNESSES: dict[str, dict[str, str | bytes]] = {
    "conftest": {"tests/conftest.py": FAKE + "pkg.core.double = fake\n"},
    "plugin": {"tests/conftest.py": "pytest_plugins = ['rig']\n", "rig.py": FAKE + "pkg.core.double = fake\n"},
    "code": {"tests/conftest.py": FAKE + "pkg.core.double.__code__ = (lambda x: 4).__code__\n"},
    "fixture": {"tests/conftest.py": "import pytest\n@pytest.fixture(autouse=True)\ndef rig(request):\n"
                "    request.module.double = lambda x: 4\n"},
    "import hook": {"tests/conftest.py": LOADER},
    "module": {"tests/conftest.py": MODULE},
}  # fmt: skip


@pytest.mark.parametrize("case", HARNESSES)
def test_harness_that_replaces_the_code_is_told(tmp_path: Path, case: str) -> None:
    assert "double" in replaced_in(tmp_path, SIMPLE, HARNESSES[case])["test_it"]


def test_wrapper_that_the_implementation_puts_on_is_its_own(tmp_path: Path) -> None:
    wrapped = CORE + "\ndef _traced(f):\n    return lambda x: f(x)\ndouble = _traced(double)\nfor name in ('quad',):\n"
    wrapped += "    globals()[name] = _traced(globals()[name])\n"
    assert replaced_in(tmp_path, SIMPLE, {"pkg/core.py": wrapped}) == {"test_it": set()}
