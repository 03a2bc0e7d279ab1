"""Functions that criteria are traced to, watched in real runs: a test that replaces one is told, no other is."""

import py_compile
from collections.abc import Mapping
from pathlib import Path

import pytest
from building import a_context, a_criterion, a_task, pytest_options, written
from watching import CORE, kinds_in

from gates.evidence.pytest_run import PytestRun

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
    assert {one.path for test in run.tests for one in test.replaced} <= {"pkg/core.py"}
    return {test.id.rpartition("::")[2]: {one.name.partition(":")[2] for one in test.replaced} for test in run.tests}


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


EXEC = "import pathlib\nimport pkg.core as core\npath = core.__file__\n"
CORRECTED = "pathlib.Path(path).read_text().replace('x + x', '2 * x')"
CODE_OF = "lambda x: 4).__code__.replace(co_filename=path, co_name='double', co_firstlineno="
OTHER_CODE: dict[str, str] = {
    "other source under the name of the file": f"exec(compile({CORRECTED}, path, 'exec'), vars(core))\n",
    "code that claims the line": f"core.double.__code__ = ({CODE_OF}core.double.__code__.co_firstlineno)\n",
    "code that claims another line": f"core.double.__code__ = ({CODE_OF}999)\n",
    "a helper of other source": f"exec(compile({CORRECTED}, path, 'exec'), made := {{}})\ncore.quad = made['double']\n",
    "a loader that reads something else": """\
from importlib.machinery import SourceFileLoader
import sys
read = SourceFileLoader.get_data
SourceFileLoader.get_data = lambda self, path: read(self, path).replace(b'x + x', b'2 * x')
sys.dont_write_bytecode = True
del sys.modules["pkg.core"]
""",
}
CHANGED: dict[str, str] = {
    "a constant": "core.BY = 3\n",
    "a function of Python": "core.sum = lambda x: sum(x)\n",
    "a default": "core.scaled.__defaults__ = (3,)\n",
    "a default by name": "core.scaled.__kwdefaults__ = {'by': 3}\n",
    "names of another module": "from types import FunctionType\n"
    "core.scaled = FunctionType(core.scaled.__code__, {**vars(core), 'sum': sum}, 'scaled', (1,))\n"
    "core.scaled.__kwdefaults__ = {'by': 2}\n",
    "all of Python": "import builtins\nkept = sum\nbuiltins.sum = lambda x: kept(x)\n",
}
SCALED = """\
BY = 2
LIMIT = [1]
def scaled(x, start=1, *, by=2):
    return sum(x) * BY * start + len(LIMIT) * by
"""


@pytest.mark.parametrize("case", OTHER_CODE)
def test_code_that_the_file_does_not_come_to_is_told(tmp_path: Path, case: str) -> None:
    found = kinds_in(tmp_path, SIMPLE, {"tests/conftest.py": EXEC + OTHER_CODE[case]}, "pkg.core:double")
    assert "is not what the file says" in found["test_it"]["code"]


def test_stale_bytecode_that_nobody_checks_is_told(tmp_path: Path) -> None:
    source = tmp_path / "core.py"
    source.write_text(CORE.replace("x + x", "2 * x"), encoding="utf-8")
    made = py_compile.compile(str(source), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    stale = Path(made or "")
    bytecode = {f"pkg/__pycache__/{stale.name}": stale.read_bytes()}
    found = kinds_in(tmp_path, SIMPLE, bytecode, "pkg.core:double")
    assert "code" in found["test_it"]


READS = "from pkg.core import scaled\n\ndef test_it():\n    assert scaled([1]) > 1\n"


@pytest.mark.parametrize("case", CHANGED)
def test_what_a_function_reads_otherwise_than_its_file_says_is_told(tmp_path: Path, case: str) -> None:
    files = {"pkg/core.py": SCALED, "tests/conftest.py": "import pkg.core as core\n" + CHANGED[case]}
    assert "value" in kinds_in(tmp_path, READS, files, "pkg.core:scaled")["test_it"]


SOUND = """\
import functools, contextlib, dataclasses, time
LIMIT = 1
TIMEOUT = 3
SEEN = [0]
_cache = None

@functools.singledispatch
def shown(x, wide=False):
    return str(x)

@shown.register
def _(x: int):
    return "int"

@contextlib.contextmanager
def opened(name):
    yield open(name)

@functools.lru_cache(maxsize=None)
def kept(x):
    global _cache
    _cache = x
    return x * LIMIT

@dataclasses.dataclass
class Box:
    size: int = 1
    @property
    def double(self):
        return self.size + self.size
    @classmethod
    def of(cls, x, *, many=(1, -2.0, 1 in {1, 2, 3})):
        return cls(sum(x for x in [x]))
    async def later(self):
        return {**vars(self)}

def plain(x, y=lambda: 3, z=float("inf")):
    def inner(w=x):
        return [max(w, one) for one in (x, LIMIT)]
    time.sleep(0)
    return inner()
"""
WRAPPING = """\
from pkg import core
class Traced:
    __slots__ = ("inner",)
    def __init__(self, inner):
        self.inner = inner
    def __call__(self, *args):
        return self.inner(*args)
def timed(function):
    return lambda *args: function(*args)
core.plain = Traced(timed(core.plain))
core.LIMIT = 2
"""
SOUND_TESTS = """\
import importlib, time
from unittest import mock
import pkg.core as core
def test_it(monkeypatch, tmp_path):
    monkeypatch.setattr(time, "sleep", lambda s: None)
    monkeypatch.setattr("builtins.open", lambda name: name)
    assert core.plain(1) == [1, 2] and core.kept(1) == 2 and core.Box.of(2).double == 4 and core.shown(1) == "int"
    with core.opened("x") as name:
        assert name == "x"
def test_again():
    importlib.reload(core)
    assert core.plain(1) == [1, 1] and core.Box().double == 2
"""


@pytest.mark.parametrize("name", ["shown", "opened", "kept", "Box", "plain"])
def test_what_the_implementation_and_libraries_make_of_a_function_is_no_replacement(tmp_path: Path, name: str) -> None:
    files = {"pkg/core.py": SOUND, "pkg/__init__.py": WRAPPING}
    assert kinds_in(tmp_path, SOUND_TESTS, files, f"pkg.core:{name}") == {"test_it": {}, "test_again": {}}


def test_another_function_of_the_implementation_in_the_place_of_one_is_told(tmp_path: Path) -> None:
    other = "from pkg import core\n_old = core.double\ndef double(x):\n    return (_old(x), 4)[1]\n"
    files = {
        "pkg/_fast.py": other,
        "pkg/__init__.py": "from pkg import core, _fast\nsetattr(core, 'double', _fast.double)\n",
    }
    assert kinds_in(tmp_path, SIMPLE, files, "pkg.core:double")["test_it"] == {"object": "pkg/_fast.py:3"}


def test_value_that_one_test_changes_is_told_of_that_one(tmp_path: Path) -> None:
    tests = (
        READS
        + "\ndef test_patched(monkeypatch):\n    monkeypatch.setattr('pkg.core.BY', 5)\n    assert scaled([1]) == 7\n"
    )
    found = kinds_in(tmp_path, tests, {"pkg/core.py": SCALED}, "pkg.core:scaled")
    assert found == {"test_it": {}, "test_patched": {"constant": "`BY` is 5 in place of 2"}}


PATCHED: dict[str, tuple[str, str, str]] = {
    "a fixture of all": ("", "monkeypatch.setattr('pkg.core.BY', 5)", "constant"),
    "a path": ("", "monkeypatch.setattr('pkg.core.BY', pathlib.Path('x'))", "constant"),
    "a tuple": ("", "monkeypatch.setattr('pkg.core.BY', (1, 'a'))", "constant"),
    "something that acts": ("", "monkeypatch.setattr('pkg.core.BY', type('Two', (int,), {})(2))", "value"),
    "never put back": ("", "pkg.core.BY = 5", "value"),
    "before all tests": ("pkg.core.BY = 5", "pass", "value"),
}


@pytest.mark.parametrize("case", PATCHED)
def test_constant_is_only_patched_where_it_is_plain_and_put_back(tmp_path: Path, case: str) -> None:
    head, fixture, kind = PATCHED[case]
    rig = f"import pathlib, pytest, pkg.core\n{head}\n@pytest.fixture(autouse=True)\ndef rig(monkeypatch):\n"
    files = {"pkg/core.py": SCALED, "tests/conftest.py": f"{rig}    {fixture}\n"}
    tests = "from pkg.core import scaled\n\ndef test_it():\n    assert scaled\n"
    assert [*kinds_in(tmp_path, tests, files, "pkg.core:scaled")["test_it"]] == [kind]


def test_function_that_is_replaced_beside_a_constant_is_told(tmp_path: Path) -> None:
    tests = "import pkg.core as core\n\ndef test_it(monkeypatch):\n    monkeypatch.setattr(core, 'BY', 5)\n"
    tests += (
        "    kept = core.BY\n    monkeypatch.setattr(core, 'scaled', lambda x: 1)\n    assert core.scaled(kept) == 1\n"
    )
    found = kinds_in(tmp_path, tests, {"pkg/core.py": SCALED}, "pkg.core:scaled")
    assert "object" in found["test_it"]


def test_wrapper_that_the_implementation_puts_on_is_its_own(tmp_path: Path) -> None:
    wrapped = CORE + "\ndef _traced(f):\n    return lambda x: f(x)\ndouble = _traced(double)\nfor name in ('quad',):\n"
    wrapped += "    globals()[name] = _traced(globals()[name])\n"
    assert replaced_in(tmp_path, SIMPLE, {"pkg/core.py": wrapped}) == {"test_it": set()}


def test_watch_that_a_conftest_replaces_is_no_witness(tmp_path: Path) -> None:
    rig = "import sys\nsys.modules['gates_pytest_witness.watched'].Watched.look = lambda self: None\n"
    rigged = written(tmp_path / "project", {
        "pyproject.toml": pytest_options(), "tests/conftest.py": FAKE + "pkg.core.double = fake\n" + rig,
        "tests/test_core.py": SIMPLE, "pkg/__init__.py": "", "pkg/core.py": CORE,
    })  # fmt: skip
    run = PytestRun.collect(a_task(entry_points=[], measurements=[]), a_context(rigged))
    assert not run.complete


def test_workers_of_a_run_in_parallel_watch_too(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": pytest_options("-n 2"),
        "tests/conftest.py": EXEC + OTHER_CODE["other source under the name of the file"],
    }
    assert "code" in kinds_in(tmp_path, SIMPLE, files, "pkg.core:double")["test_it"]
