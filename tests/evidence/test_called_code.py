"""Commands that stand for a criterion are asked whether they call its code, in a real project."""

import json
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from building import GOOD, a_context, collected, raw_samples, written

from gates.check import EvidenceSet
from gates.child.forks import Fork, Warm, warm
from gates.errors import EvidenceUnavailable
from gates.evidence.called_code import CalledCode, CommandCall
from gates.evidence.source_tree import SourceTree
from gates.task import loading as spec

CORE = """\
import dataclasses


def double(x):
    return x * 2


@dataclasses.dataclass
class Point:
    x: float

    def far(self):
        return self.x > 9


class Shop:
    def __init__(self):
        self.goods = []

    def put(self, name):
        self.goods.append(name)


TABLE = {1: 2}


def factory(x):
    return lambda: x * 2


def counting():
    while True:
        yield 1
"""
WRITE = f"import sys\nopen(sys.argv[1], 'w').write('''{json.dumps(raw_samples())}''')\n"
FILES = {
    "pkg/core.py": CORE,
    "calls.py": "from pkg.core import double\ndouble(2)\n" + WRITE,
    "imports.py": "import pkg.core\n" + WRITE,
    "fails.py": "raise SystemExit('no device')\n",
    "swallows.py": "from pkg.core import double\ntry:\n    double(2)\nexcept RuntimeError:\n    pass\n" + WRITE,
    "arms.py": (
        "import functools, itertools\nfrom pkg.core import counting, double, factory\n"
        "def calls(): return lambda: double(2)\n"
        "def idle(): return lambda: sum(range(99))\n"
        "def hoisted():\n    made = double(2)\n    return lambda: made\n"
        "def cached(): return lambda f=functools.cache(double): f(2)\n"
        "def now_and_then(): return lambda n=itertools.count(): double(2) if next(n) % 3 == 0 else 0\n"
        "def at_first():\n    made = double(2)\n    return lambda: double(made)\n"
        "def by_factory():\n    return factory(2)\n"
        "def by_generator():\n    each = counting()\n    return lambda: next(each)\n"
    ),
    "child.py": "import subprocess, sys\nsubprocess.run([sys.executable, 'calls.py', sys.argv[1]])\n",
    "by_path.py": "import runpy, sys\nrunpy.run_path('calls.py')\n",
    "speed.py": "from pkg.core import double\nRESULT = double(2)\n",
    "at_import.py": "import speed\n" + WRITE,
    "quiet.py": "import os\nif os.path.isdir('node_modules'):\n    import calls\n",
    "points.py": "from pkg.core import Point\nPoint(1.0)\n" + WRITE,
    "node_modules/a.js": "",
    "methods.py": "from pkg.core import Shop\nShop()\n" + WRITE,
}
TASK = """\
id: T1
title: Called
implementation: [pkg]
tests: [tests]
entry_points:
  - {run: [python, -c, "import pkg.core"], criteria: [ENTRY]}
criteria:
  - {id: ENTRY, text: Enter, code: [{symbol: "pkg.core:double"}]}
"""


def seen(folder: Path, *asked: tuple[str, str, str]) -> dict[str, CommandCall]:
    """The calls of criteria, each with its symbol and the file that its measurement runs."""
    runs = "".join(f'  - {{id: m_{name}, run: [python, {file}, "{{out}}"]}}\n' for name, _, file in asked)
    return {call.criterion: call for call in calls_of(folder, {name: symbol for name, symbol, _ in asked}, runs)}


def calls_of(
    folder: Path, symbols: dict[str, str], measurements: str, forks: Callable[[], Warm | None] = lambda: None
) -> tuple[CommandCall, ...]:
    """The calls of criteria, each with its symbol and a measurement that has its name."""
    criteria = "".join(
        f'  - {{id: {name}, text: {name}, code: [{{symbol: "pkg.core:{symbol}"}}], measures: [{{from: m_{name}, '
        "ratio: [old, new], of: step_time_s, at_least: 1}]}\n" for name, symbol in symbols.items()
    )  # fmt: skip
    root = written(folder, {**GOOD, **FILES, "tasks/T1.yaml": f"{TASK}{criteria}measurements:\n{measurements}"})
    context = replace(a_context(root), warm=forks)
    found = collected(spec.load(root / "tasks/T1.yaml", root), context, SourceTree, CalledCode).get(CalledCode)
    assert found and (root / "pkg/core.py").read_text(encoding="utf-8") == CORE
    return found.calls


def test_what_a_command_calls_is_seen_in_its_children_too(tmp_path: Path) -> None:
    calls = seen(
        tmp_path / "project", ("CALLS", "double", "calls.py"), ("IMPORTS", "double", "imports.py"),
        ("FAILS", "double", "fails.py"), ("CHILD", "double", "child.py"), ("MADE", "Shop", "methods.py"),
        ("TABLE", "TABLE", "calls.py"), ("BY_PATH", "double", "by_path.py"), ("AT_IMPORT", "double", "at_import.py"),
        ("QUIET", "double", "quiet.py"), ("POINTS", "Point", "points.py"), ("SWALLOWS", "double", "swallows.py"),
    )  # fmt: skip
    assert {name: (call.called, call.ended_well) for name, call in calls.items()} == {
        "CALLS": (True, False),
        "IMPORTS": (False, True),
        "FAILS": (False, False),
        "CHILD": (True, False),
        "MADE": (True, False),
        "ENTRY": (False, True),
        "BY_PATH": (True, False),
        "AT_IMPORT": (True, False),
        "QUIET": (False, False),  # it writes no samples in a copy
        "POINTS": (False, True),
        "SWALLOWS": (True, True),  # it hands its samples over although the code raised
    }
    why = "objects of pkg.core:Point are made without a line of its own"
    assert {name: call.why for name, call in calls.items() if call.why} == {"POINTS": why}
    assert {name for name, call in calls.items() if call.misses} == {"IMPORTS", "ENTRY"}
    assert calls["IMPORTS"].part == "measurement m_IMPORTS"
    assert {name for name, call in calls.items() if call.unheard} == {"SWALLOWS"}


def test_the_same_is_seen_in_forks_of_what_has_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ways = {
        "SCRIPT": "run: [python, calls.py, '{out}']", "MODULE": "run: [python, -m, calls, '{out}']",
        "IMPORTS": "run: [python, imports.py, '{out}']", "FAILS": "run: [python, -m, fails, '{out}']",
        "ARM": "arms: {old: {call: 'arms:calls'}, new: {call: 'arms:hoisted'}}",
    }  # fmt: skip
    symbols = dict.fromkeys(ways, "double")
    runs = "".join(f"  - {{id: m_{name}, {how}}}\n" for name, how in ways.items())
    begun, start = dict[object, object](), Warm.start
    monkeypatch.setattr(Warm, "start", lambda *given, **more: begun.setdefault(object(), start(*given, **more)))
    with warm(sys.executable, tmp_path, tmp_path / "warm", {}) as forks:
        forks.load([], "warm:load", ["json"])
        forked = calls_of(tmp_path / "forked", symbols, runs, lambda: forks)
    assert forked == calls_of(tmp_path / "started", symbols, runs)
    assert [type(each) for each in begun.values()] == [Fork] * 6
    assert {call.criterion for call in forked if call.called and not call.hoisted} == {"SCRIPT", "MODULE", "ARM"}


def test_what_forks_is_asked_for_by_one_thread_which_makes_it(tmp_path: Path) -> None:
    asked, arms = list[object](), "  - {id: m_A, arms: {old: {call: 'arms:idle'}, new: {call: 'arms:calls'}}}\n"
    calls_of(tmp_path / "project", {"A": "double"}, arms, lambda: asked.append(threading.current_thread()))
    assert asked == [threading.main_thread()] * 2


ARMS = {
    "calls": ("double", False), "hoisted": ("double", True), "cached": ("double", True),
    "now_and_then": ("double", False), "at_first": ("double", False), "by_factory": ("factory", False),
    "by_generator": ("counting", False),
}  # fmt: skip


def test_arms_are_asked_for_a_step_each_and_one_that_calls_the_code_before_its_steps_alone_misses_it(
    tmp_path: Path,
) -> None:
    functions = {"idle": ("double", True), **ARMS}
    arms = "".join(
        f"  - {{id: m_{name}, arms: {{old: {{call: 'arms:idle'}}, new: {{call: 'arms:{name}'}}}}}}\n"
        for name in functions
    )
    found = calls_of(tmp_path / "project", {name: symbol for name, (symbol, _) in functions.items()}, arms)
    for name, (_, hoisted) in functions.items():
        old, new = [call for call in found if call.criterion == name]
        assert (old.called, old.misses) == (False, True), name
        assert (new.called, new.hoisted, new.misses) == (name != "idle", hoisted and name != "idle", hoisted), name


def test_where_no_command_stands_for_functions_there_is_nothing_to_see(tmp_path: Path) -> None:
    root = written(tmp_path / "project", {**GOOD, "tasks/T1.yaml": "id: T1\ntitle: T\nimplementation: [pkg]\n"
                   "criteria:\n  - {id: AC1, text: A, code: [{symbol: 'pkg.core:double'}]}\n"})  # fmt: skip
    task = spec.load(root / "tasks/T1.yaml", root)
    with pytest.raises(EvidenceUnavailable, match="the code was not seen"):
        CalledCode.derive(task, a_context(root), EvidenceSet())
    evidence = EvidenceSet()
    evidence.collect(SourceTree, task, a_context(root))
    with pytest.raises(EvidenceUnavailable, match="no command verifies"):
        CalledCode.derive(task, a_context(root), evidence)
