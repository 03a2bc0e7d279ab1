"""Executed lines, from real test runs: who ran what, what was not followed, and when the plugin stands down."""

import json
import shutil
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
from building import PATIENCE_S, QUICK, a_context, a_task, clean, written

from gates.child.asking import HERE
from gates.code.syntax import parse
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.lines.executed_lines import ExecutedLines, FunctionLines, coverage_env, functions_of, named_tests
from gates.evidence.lines.traced import Traced
from gates.model import Location

CORE = """\
def double(x):
    \"\"\"Double it.\"\"\"
    if x < 0:
        return -x - x
    return x + x


def made_once(x):
    return [x]


def untouched(x):
    return x
"""
TESTS = """\
import pytest

from pkg.core import double, made_once


@pytest.fixture(scope="module")
def shared():
    return made_once(1)


@pytest.mark.parametrize("x", [1, 2], ids=["a::b", "ünd\\n"])
def test_double(x):
    assert double(x) == x + x


def test_shared(shared):
    assert shared == [1]
"""


def run(root: Path, *options: str, tests: str = TESTS, python: str = sys.executable) -> Context:
    """Run pytest with the plugin and nothing else of ours, and return the context that holds what it left."""
    written(root, {"pkg/__init__.py": "", "pkg/core.py": CORE, "tests/test_core.py": tests, "pytest.ini": "[pytest]\n"})
    context = a_context(root)
    plugin = root.parent / "plugin"
    plugin.mkdir()
    (plugin / "gates_probe").symlink_to(HERE)
    told = coverage_env(context.evidence / "pytest/coverage", a_task(), context)
    argv = [python, "-m", "pytest", "-q", "-W", "error", "-p", "gates_probe.witness.lines", *QUICK.split()]
    env = {**clean(), "PYTHONPATH": f"{plugin}:{root}", **told}
    subprocess.run([*argv, *options, "tests"], cwd=root, env=env, capture_output=True, check=False, timeout=PATIENCE_S)
    return context


def lines(context: Context) -> ExecutedLines:
    return ExecutedLines.collect(a_task(), context)


def function(seen: ExecutedLines, name: str) -> FunctionLines:
    (one,) = [function for function in seen.functions if function.name == name]
    return one


@pytest.fixture(scope="module")
def standard(tmp_path_factory: pytest.TempPathFactory) -> Context:
    return run(tmp_path_factory.mktemp("standard") / "project")


@pytest.fixture
def own(standard: Context, tmp_path: Path) -> Context:
    """The standard run, with a copy of what it left."""
    shutil.copytree(standard.evidence, tmp_path / "evidence")
    return replace(standard, evidence=tmp_path / "evidence")


def test_each_line_names_the_tests_that_ran_it_and_a_shared_fixture_is_no_test(standard: Context) -> None:
    seen = lines(standard)
    both = ["tests/test_core.py::test_double[a::b]", "tests/test_core.py::test_double[\\xfcnd\\n]"]
    assert named_tests(seen.contexts_in(function(seen, "double").body)) == sorted(both)
    assert named_tests(seen.contexts_in(Location(path="pkg/core.py", line=5))) == sorted(both)
    assert seen.contexts_in(Location(path="pkg/core.py", line=4)) == frozenset()
    assert ran(seen, "untouched") == []
    assert seen.contexts_in(function(seen, "made_once").body) == {"fixture:shared"}
    assert seen.doubt() == ""


def test_lines_of_16000_tests_take_no_memory_by_the_square(own: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    names = frozenset(f"test:tests/test_core.py::test_many[{number}]" for number in range(16_000))
    monkeypatch.setattr(Traced, "where", {str(own.root / "pkg/core.py"): {5: names}})
    tracemalloc.start()
    seen, (_, most) = lines(own), tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seen.contexts_in(Location(path="pkg/core.py", line=5)) == names
    assert most < 5e6  # a number of 16,000 bits for each would be 17 MB more


STARTING = """\
import os, subprocess, sys
from pkg.core import double


def test_git():
    subprocess.run(["git", "--version"])


def test_child():
    subprocess.run([sys.executable, "-c", "1"])


def test_fork():
    if not os.fork():
        double(1)
        os._exit(0)
    os.wait()


def test_no_tracer():
    sys.settrace(None)
    double(1)


def test_after():
    double(3)
"""


def test_what_was_not_followed_is_named(tmp_path: Path) -> None:
    seen = lines(run(tmp_path / "project", tests=STARTING))
    name = "tests/test_core.py::test_"
    assert seen.unseen.keys() == {f"test:{name}{each}" for each in ("child", "fork", "no_tracer")}
    assert "which was not followed" in seen.doubt([f"{name}child"])
    assert "took the tracer away" in seen.doubt([f"{name}no_tracer"])
    assert seen.doubt([f"{name}after", f"{name}git"]) == ""
    assert named_tests(seen.contexts_in(function(seen, "double").body)) == [f"{name}after"]


def test_run_that_dies_keeps_what_it_saw_and_says_so(tmp_path: Path) -> None:
    dying = "import os\nfrom pkg.core import double\ndef test_a():\n    double(1)\ndef test_b():\n    os._exit(0)\n"
    seen = lines(run(tmp_path / "project", tests=dying))
    assert named_tests(seen.contexts_in(function(seen, "double").body)) == ["tests/test_core.py::test_a"]
    assert seen.doubt() == "the test run did not come to its end"


CONFTESTS = {
    "a tracer of its own": "import sys\nsys.settrace(lambda *a: None)\n",
    "one that takes over": "import sys, pytest\n@pytest.fixture(autouse=True)\ndef own():\n    sys.settrace(print)\n",
}


@pytest.mark.parametrize("case", CONFTESTS)
def test_project_that_traces_itself_is_left_alone(case: str, tmp_path: Path) -> None:
    written(tmp_path / "project", {"conftest.py": CONFTESTS[case]})
    context = run(tmp_path / "project")
    with pytest.raises(EvidenceUnavailable, match="another tracer took over in"):
        lines(context)


def test_coverage_that_is_not_there_is_said(tmp_path: Path) -> None:
    written(tmp_path / "project", {"coverage.py": "raise ImportError('hidden')\n"})
    with pytest.raises(EvidenceUnavailable, match="cannot be imported by the project's interpreter \\(ImportError\\)"):
        lines(run(tmp_path / "project"))


def test_no_run_leaves_no_lines(tmp_path: Path) -> None:
    with pytest.raises(EvidenceUnavailable, match="no test run left a record"):
        lines(a_context(tmp_path / "project"))


def test_record_that_cannot_be_read_is_no_evidence(own: Context) -> None:
    (own.evidence / "pytest/coverage/data").write_bytes(b'["test:tests/test_core.py::test_double')
    with pytest.raises(EvidenceUnavailable, match="cannot be read"):
        lines(own)


def test_workers_are_read_together_and_the_starts_of_their_controller_do_not_count(own: Context) -> None:
    folder = own.evidence / "pytest/coverage"
    state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    (folder / "state.gw0.json").write_text(json.dumps(state), encoding="utf-8")
    started = {**state, "unseen": {"": "started another process (python), which was not followed"}}
    (folder / "state.json").write_text(json.dumps(started), encoding="utf-8")
    (folder / "data").rename(folder / "data.gw0")
    seen = lines(own)
    assert (len(seen.contexts_in(function(seen, "double").body)), seen.doubt()) == (2, "")


SOURCE = """\
import typing, numba
from typing import Protocol, overload, TYPE_CHECKING

if TYPE_CHECKING:
    def never(): return 1


class Shape(Protocol):
    def area(self):
        return 0


class Square:
    def area(self):
        return 1

    def _private(self):
        return 1

    def __len__(self):
        return 1

    @property
    def side(
        self,
    ):
        def inner():
            return 1

        return inner()

    @abc.abstractmethod
    def must(self):
        return 1


@overload
def over(x: int): ...
def promised():
    raise NotImplementedError
def documented():
    "Only this."
def short(): return 1
@numba.njit(fastmath=True)
def compiled():
    return 1
@functools.lru_cache
def kept():
    return 1
"""


def test_functions_that_count_are_those_with_public_lines_of_their_own_and_none_of_tests_in_the_package() -> None:
    bodies = [*functions_of(parse(SOURCE.encode(), "pkg/shapes.py", "pkg"))]
    counted = ["Square.area", "Square.__len__", "Square.side", "compiled", "kept"]
    assert [body.name for body in bodies if body.counts] == counted
    assert [body.name for body in bodies if body.wrapped] == ["over", "compiled", "kept"]
    bodies = [*functions_of(parse(SOURCE.encode(), "pkg/tests/test_shapes.py", "pkg"))]
    assert not any(body.public or body.counts for body in bodies)


def test_line_belongs_to_the_innermost_function() -> None:
    def of(name: str, first: int, last: int) -> FunctionLines:
        place = Location(path="m.py", line=first, last_line=last)
        return FunctionLines(name=name, location=place, body=place, counts=True, wrapped=False)

    seen = ExecutedLines(how="", functions=(of("f", 2, 9), of("g", 4, 5)), lines={}, contexts=(), sets=())
    named = [seen.function_at(Location(path="m.py", line=line)) for line in (3, 4, 6, 10)]
    assert [one.name if one else None for one in named] == ["f", "g", "f", None]


EVERYWHERE = """\
import io, logging, sys, unittest, warnings

import pytest

from pkg import heard
from pkg.core import double, made_once, untouched


@pytest.fixture
def ending():
    yield 1
    untouched(1)


class TestPlain:
    def setup_method(self):
        made_once(1)

    def test_ends(self, ending):
        assert ending

    def teardown_method(self):
        double(-1)


class TestOld(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        double(1)

    def setUp(self):
        made_once(2)

    def test_old(self):
        with self.subTest():
            self.addCleanup(untouched, 3)
        double(2)


def test_bare(request):
    request.addfinalizer(lambda: made_once(4))
    assert double(3) == 6


class Told(UserWarning):
    __str__ = lambda self: heard.text()


@pytest.fixture(scope="module", params=[1, 2])
def wide(request):
    yield request.param
    heard.finish()


@pytest.mark.skipif("heard.condition()")
@pytest.mark.xfail(raises=Told)
def test_wide(wide):
    if wide == 2:
        raise Told


class Properties(list):
    __iter__ = lambda self: iter(heard.report())


def test_told(request):
    request.node.user_properties = Properties("ab")
    warnings.simplefilter("always")
    warnings.warn(Told())


@pytest.mark.filterwarnings("error::pkg.own.Own")
def test_imports(): ...


class Held(io.StringIO):
    __del__ = lambda self: heard.dropped()


@pytest.fixture
def held():
    return Held()


def test_holds(held): ...


def test_logs(): logging.error("%s", Held())


def test_prints(): sys.stdout = Held()


def test_late(request):
    request.applymarker(pytest.mark.xfail("heard.late()"))


class Wrapper:
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_teardown(self):
        heard.teardown()
        return (yield)


def test_registers(request):
    request.config.pluginmanager.register(Wrapper())
"""
HEARD = ("setup", "condition", "finish", "text", "report", "imported", "dropped", "late", "teardown")
LOOP = """\
def pytest_runtestloop(session):
    for item, after in zip(session.items, [*session.items[1:], None]):
        item.ihook.pytest_runtest_protocol(item=item, nextitem=after)
    return True
"""


def ran(seen: ExecutedLines, name: str) -> list[str]:
    return [test.partition("::")[2] for test in named_tests(seen.contexts_in(function(seen, name).body))]


@pytest.mark.parametrize("conftest", ["", LOOP], ids=["the loop of pytest", "a loop of the project's"])
def test_code_is_seen_wherever_a_test_runs_it(conftest: str, tmp_path: Path) -> None:
    heard = "".join(f"def {name}():\n    return ''\n" for name in HEARD)
    package = "from pkg import heard\n\n\ndef setup_module():\n    heard.setup()\n"
    own = "from pkg import heard\n\nheard.imported()\n\n\nclass Own(UserWarning): ...\n"
    files = {"conftest.py": conftest, "pkg/heard.py": heard, "pkg/own.py": own, "tests/__init__.py": package}
    seen = lines(run(written(tmp_path / "project", files), tests=EVERYWHERE))
    assert ran(seen, "double") == ran(seen, "made_once") == ["TestOld::test_old", "TestPlain::test_ends", "test_bare"]
    assert ran(seen, "untouched") == ["TestOld::test_old", "TestPlain::test_ends"]
    assert "fixture:_unittest_setUpClass_fixture_TestOld" in seen.contexts_in(function(seen, "double").body)
    wide, told = ["test_wide[1]", "test_wide[2]"], ["test_told"]
    expected = [["TestPlain::test_ends"], wide, ["test_registers", wide[1]], [*told, wide[1]], told]
    expected += [["test_imports"], ["test_holds", "test_logs", "test_prints"], ["test_late"], ["test_registers"]]
    assert [ran(seen, name) for name in HEARD] == expected


HOOKS = [f"pytest_{name}" for name in ("report_teststatus", "runtest_logreport", "runtest_makereport")]
HOOKS += [f"pytest_runtest_{name}" for name in ("setup", "call", "teardown", "protocol", "logstart", "logfinish")]


@pytest.mark.parametrize("wraps", ["", "wrapper=True", "hookwrapper=True"])
def test_code_that_hears_of_a_test_is_seen(wraps: str, tmp_path: Path) -> None:
    heard = "".join(f"def {hook}():\n    return None\n" for hook in HOOKS)
    goes_on = "    return (yield)\n" if wraps else ""
    heard_by = (f"@pytest.hookimpl({wraps})\ndef {hook}():\n    heard.{hook}()\n{goes_on}" for hook in HOOKS)
    hearing = "import pytest\nfrom pkg import heard\n" + "".join(heard_by)
    seen = lines(run(written(tmp_path / "project", {"conftest.py": hearing, "pkg/heard.py": heard})))
    assert [hook for hook in HOOKS if "test_shared" not in ran(seen, hook)] == []


def test_a_function_that_never_came_to_life_here_is_no_function(tmp_path: Path) -> None:
    head, here = "import sys\n\nif sys.version_info[0] == 3:\n", "    def here():\n        return 1\n"
    body = f"{head}{here}else:\n{here}"
    root = written(tmp_path / "project", {"pkg/other.py": body + "\n\ndef never():\n    return 3\n"})
    seen = lines(run(root, tests="from pkg.other import here\n\n\ndef test_here():\n    assert here() == 1\n"))
    assert [(f.location.line, f.counts) for f in seen.functions if f.name == "here"] == [(4, True), (7, False)]
    assert function(seen, "never").counts
