"""Functions that stand on the line of their definition: whether they were called, from real test runs."""

import subprocess
import sys
from pathlib import Path

from building import QUICK, a_context, a_task, clean, written

from gates.evidence.lines.coverage_plan import copy_plugin, coverage_env
from gates.evidence.lines.executed_lines import ExecutedLines, FunctionLines

SHORT = """\
def first(x): return x
def never(x): return x / 3
half = lambda x: x / 2
class Shape:
    def side(self): return 4
    def area(self): return 5
    @property
    def name(self): return "s"
def over(x,
         y): return x + y
if first is None:
    def third(x):
        return x
"""
LATE = """\
\"\"\"Imported by a test.\"\"\"
def one(x): return x
def two(x): return x
"""
TESTS = """\
import importlib

from pkg import core


def test_calls():
    assert core.first(1) + core.half(2) + core.Shape().side() + core.over(1, 2) == 9
    assert core.Shape().name


def test_imports():
    from pkg import late
    assert late.one(1)


def test_later():
    from pkg import late
    assert late.two(1)


def test_reloads():
    assert importlib.reload(core)
"""


def lines(root: Path) -> ExecutedLines:
    written(root, {"pkg/__init__.py": "", "pkg/core.py": SHORT, "pkg/late.py": LATE, "tests/test_core.py": TESTS,
                   "pytest.ini": "[pytest]\n"})  # fmt: skip
    context = a_context(root)
    plugin = root.parent / "plugin"
    plugin.mkdir()
    env = {**clean(), "PYTHONPATH": f"{plugin}:{root}",
           **coverage_env(context.evidence / "pytest/coverage", a_task(), context)}  # fmt: skip
    argv = [sys.executable, "-m", "pytest", "-q", *copy_plugin(plugin), *QUICK.split(), "tests"]
    subprocess.run(argv, cwd=root, env=env, capture_output=True, check=True, timeout=60)
    return ExecutedLines.collect(a_task(), context)


def test_a_call_is_told_from_the_definition_on_its_line(tmp_path: Path) -> None:
    seen = lines(tmp_path / "project")
    functions: dict[str, FunctionLines] = {one.name: one for one in seen.functions}
    calls, imports, later, reloads = (
        f"test:tests/test_core.py::test_{n}" for n in ("calls", "imports", "later", "reloads")
    )
    called = {name: seen.contexts_of(one) for name, one in functions.items()}
    assert called == {
        "first": {calls}, "never": frozenset(), "half": {calls}, "Shape.side": {calls}, "Shape.area": frozenset(),
        "Shape.name": {calls}, "over": {calls}, "one": frozenset(), "two": {later},
    }  # fmt: skip
    assert seen.unclear_in(functions["never"]) == {"", reloads}
    assert seen.unclear_in(functions["one"]) == seen.unclear_in(functions["two"]) == {imports}
    assert [one.name for one in seen.aside] == ["third"]
    assert not any(one.counts for one in functions.values() if not one.told)
