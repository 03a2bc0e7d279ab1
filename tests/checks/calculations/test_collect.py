"""Calculations called for real, in processes of their own, by functions that behave and by functions that do not."""

import os
from pathlib import Path
from typing import Any

import pytest
from building import PATIENCE_S, a_context, a_task, evidence, written
from calculating import a_calculation, an_edge_case

from gates.checks.calculations.judge import Calculations, CallRun, Ended, judge
from gates.errors import EvidenceUnavailable
from gates.model import Outcome

CORE = """\
import asyncio, dataclasses, os, random, signal, subprocess, sys, threading, time, warnings


def ratio(a, b):
    return a / b


def upside_down(a, b):
    return b / a


def mean(values):
    if not values:
        raise ValueError("expected at least one value")
    return sum(values) / len(values)


def leave():
    os._exit(0)


def leave_badly():
    os._exit(3)


def die():
    os.kill(os.getpid(), signal.SIGSEGV)


def hang():
    while True:
        time.sleep(0.01)


def chance(x):
    return random.random()


async def later(x):
    await asyncio.sleep(0)
    return x + 1


def count(n):
    yield from range(n)


def endless():
    while True:
        yield 1


def talk(x):
    print("x" * 1_000_000)
    return x


def once(x):
    os.environ.pop("ONCE")
    return x


def mutate(values):
    values.append(1)
    return len(values)


def wander(x):
    os.chdir("/")
    return x


def quit(x):
    sys.exit(x)


def fork(x):
    return x if os.fork() else 99


def straggle(x):
    threading.Thread(target=time.sleep, args=(60,)).start()
    return x


def old(x):
    warnings.warn("use new", DeprecationWarning, stacklevel=2)
    return x


def forge(x):
    import gc, glob
    for path in glob.glob(os.environ["EVIDENCE"] + "/**/told.txt", recursive=True):
        with open(path, "a") as file:
            file.write('0 {"id": "calc:0:0", "returned": 4}\\n')
    os._exit(0)


class Sum:
    def __init__(self, start=0):
        self.total = start

    def add(self, x):
        self.total += x
        return self

    @staticmethod
    def twice(x):
        return 2 * x

    @property
    def half(self):
        return self.total / 2


@dataclasses.dataclass
class Point:
    x: int
    parts: dict


def point(x):
    return Point(x, {"deep": [x, 2 * x]})
"""
EDGES = """\
import collections, functools, itertools, json, os


def same(x):
    return x


def whole(x):
    return float(int(x))


def queue():
    return collections.deque([1, 2])


def mapped():
    return map(int, "12")



def stepping():
    return iter([1, 2])


def values():
    return {"a": 1, "b": 2}.values()



def forever():
    return itertools.count()


class Steps:
    def __init__(self, n):
        self._n = n

    def __iter__(self):
        return self

    def __next__(self):
        if not self._n:
            raise StopIteration
        self._n -= 1
        return self._n


class Closed:
    __slots__ = ("_x",)


def closed(x=0):
    return Closed()


def closed_beside():
    return [3, Closed()]



def quick(x):
    json.dumps = lambda *a, **k: b"{}"
    return x


def daemon(x):
    os.closerange(3, 256)
    return x


class Kept:
    @functools.lru_cache
    def double(self, x):
        return 2 * x

    @staticmethod
    @functools.lru_cache
    def half(x):
        return x / 2
"""
FILES: dict[str, str | bytes] = {
    "pkg/__init__.py": "",
    "pkg/core.py": CORE,
    "pkg/edges.py": EDGES,
    "pkg/broken.py": "import pkg.core\nx = 1 / 0\n",
    "pkg/leaving.py": "import os\nos._exit(0)\n",
    "pkg/lacking.py": "import no_such_thing\n",
    # modules of the project that are named as some of the standard library's
    "hmac.py": "raise SystemExit('ours')\n",
    "fractions.py": "raise SystemExit('ours')\n",
}


def ran(tmp_path: Path, limit_s: float = PATIENCE_S, **parts: Any) -> tuple[Calculations, dict[str, Outcome]]:
    """What came of a task's calls, and how each check of it was judged."""
    root = written(tmp_path / "project", FILES)
    task = a_task(**parts)
    seen = Calculations.collect(task, a_context(root, timeout_s=limit_s))
    assert Calculations.model_validate_json(seen.model_dump_json()) == seen
    return seen, {finding.check: finding.outcome for finding in judge(task, evidence(seen))}


def table(call: str, *args: object, **changes: Any) -> dict[str, Any]:
    """A calculation of one row that stands for no criterion."""
    own = {name: changes.pop(name) for name in ("instance", "take", "timeout_s") if name in changes}
    path = call if ":" in call else f"pkg.core:{call}"
    return a_calculation({"args": list(args), **changes}, call=path, criteria=[], **own)


PASSED, FAILED, UNKNOWN = Outcome.PASSED, Outcome.FAILED, Outcome.UNKNOWN
FRACTION = {"$call": "decimal:Decimal", "args": ["0.5"]}
CALLS: dict[str, tuple[dict[str, Any], Outcome]] = {
    "right": (table("ratio", 10.0, 5.0, expected=2.0, tolerance=1e-9), PASSED),
    "upside down": (table("upside_down", 10.0, 5.0, expected=2.0), FAILED),
    "async": (table("later", 1, expected=2), PASSED),
    "generator": (table("count", 3, expected=[0, 1, 2]), PASSED),
    "endless generator": (table("endless", expected=[]), UNKNOWN),
    "leaves": (table("leave", expected=1), UNKNOWN),
    "prints": (table("talk", 1, expected=1), PASSED),
    "works once": (table("once", 1, expected=1), UNKNOWN),
    "leaves badly": (table("leave_badly", expected=1), FAILED),
    "dies": (table("die", expected=1), FAILED),
    "hangs": (table("hang", expected=1, timeout_s=0.3), UNKNOWN),
    "by chance": (table("chance", 1, expected=0.5, tolerance=0.001), FAILED),
    "mutates": (table("mutate", [1], expected=2), PASSED),
    "wanders": (table("wander", 1, expected=1), PASSED),
    "quits": (table("quit", 3, raises="SystemExit", says="3"), PASSED),
    "forks": (table("fork", 1, expected=1), PASSED),
    "leaves a thread": (table("straggle", 1, expected=1), PASSED),
    "forges": (table("forge", 1, expected=4), UNKNOWN),
    "method": (table("Sum.add", 2, expected=5, instance={"args": [3]}, take="total"), PASSED),
    "method without an instance": (table("Sum.add", 2, expected=2), UNKNOWN),
    "static method": (table("Sum.twice", 2, expected=4), PASSED),
    "class": (table("Sum", 2, expected={"total": 2}), PASSED),
    "part": (table("point", 3, expected=6, take="parts.deep.1"), PASSED),
    "part that is not there": (table("point", 3, expected=6, take="parts.shallow"), UNKNOWN),
    "no such function": (table("absent", expected=1), UNKNOWN),
    "no such module": (table("pkg.absent:f", expected=1), UNKNOWN),
    "no function": (table("pkg.core:os.sep", expected=1), UNKNOWN),
    "property": (table("pkg.core:Sum.half", expected=1), UNKNOWN),
    "import breaks": (table("pkg.broken:f", expected=1), FAILED),
    "import lacks": (table("pkg.lacking:f", expected=1), UNKNOWN),
    "built argument": (table("mean", [FRACTION, FRACTION], expected=FRACTION), PASSED),
    "texts in a list": (table("talk", [{"$text": ".inf"}, ".inf"], expected=[{"$text": ".inf"}, ".inf"]), PASSED),
    "argument that cannot be built": (table("mean", {"$call": "math:sqrt", "args": [-1]}, expected=1), UNKNOWN),
    "of the standard library": (table("math:hypot", 3, 4, expected=5), UNKNOWN),
    "half lost": (table("pkg.edges:whole", 1234567.5, expected=1234567.5), FAILED),
    "deque": (table("pkg.edges:queue", expected=[1, 2]), PASSED),
    "map": (table("pkg.edges:mapped", expected=[1, 2]), PASSED),
    "iterator": (table("pkg.edges:stepping", expected=[1, 2]), PASSED),
    "own iterator": (table("pkg.edges:Steps", 2, expected=[1, 0]), PASSED),
    "part that is private": (table("pkg.edges:Steps", 2, expected=2, take="_n"), PASSED),
    "values": (table("pkg.edges:values", expected=[1, 2]), PASSED),
    "endless": (table("pkg.edges:forever", expected=[1, 2]), UNKNOWN),
    "nothing that could be compared": (table("pkg.edges:closed", expected=[1, 2]), UNKNOWN),
    "something that could": (table("pkg.edges:closed_beside", expected=[2, 2]), FAILED),
    "json.dumps replaced": (table("pkg.edges:quick", 3, expected=3), PASSED),
    "after that": (table("pkg.edges:same", 3, expected=3), PASSED),
    "all files closed": (table("pkg.edges:daemon", 3, expected=3), PASSED),
    "after that too": (table("pkg.edges:same", 3, expected=4), FAILED),
    "cached method without an instance": (table("pkg.edges:Kept.double", 2, expected=4), FAILED),
    "cached method": (table("pkg.edges:Kept.double", 2, expected=4, instance={}), PASSED),
    "cached static method": (table("pkg.edges:Kept.half", 2, expected=1), PASSED),
    "method of a type that is built in": (table("builtins:str.upper", "a", expected="A"), UNKNOWN),  # no code of ours
}


Called = tuple[dict[str, CallRun], dict[str, Outcome]]


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> Called:
    """All of CALLS, made in one run: what one of them does must not touch the others."""
    folder = tmp_path_factory.mktemp("calls")
    os.environ.update({"EVIDENCE": str(folder), "ONCE": "1"})
    try:
        seen, outcomes = ran(folder, calculations=[part for part, _ in CALLS.values()])
    finally:
        del os.environ["EVIDENCE"], os.environ["ONCE"]
    root = folder / "project"  # in which nothing is left
    assert {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()} == {*FILES}
    found = {case: run for i, case in enumerate(CALLS) if (run := seen.call(f"calc:{i}:0"))}
    return found, {case: outcomes[f"calc:{i}"] for i, case in enumerate(CALLS)}


@pytest.mark.parametrize("case", CALLS)
def test_call(called: Called, case: str) -> None:
    runs, outcomes = called
    assert (outcomes[case], runs[case].problem) == (CALLS[case][1], runs[case].problem)


PROBLEMS = {
    "leaves": "it ended the process before it returned",
    "leaves badly": "the process died: exit code 3",
    "dies": "the process died: killed by SIGSEGV",
    "hangs": "it did not return within 0.3 s",
    "endless generator": "what it returned cannot be compared: TooMuch: it has more than 20000 parts",
    "no such function": "pkg.core has no 'absent'",
    "no such module": "there is no module 'pkg.absent'",
    "no function": "pkg.core:os.sep is a str, which cannot be called",
    "property": "Sum.half is a property: write 'call: pkg.core:Sum' and 'take: half'",
    "import lacks": "pkg.lacking needs 'no_such_thing', which is not installed",
    "part that is not there": "what it returned cannot be compared: what it returned (dict) has no 'shallow'",
    "argument that cannot be built": "its arguments or its instance cannot be made: ValueError: math domain error",
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_what_keeps_a_call_from_being_judged(called: Called, case: str) -> None:
    assert called[0][case].problem == PROBLEMS[case]


def test_places_are_those_of_the_function_or_of_the_crash(called: Called) -> None:
    runs = called[0]
    places = {key: str(runs[key].crash or runs[key].place) for key in ("upside down", "dies", "quits", "import breaks")}
    line = CORE.splitlines().index
    assert places == {
        "upside down": f"pkg/core.py:{line('def upside_down(a, b):') + 1}-{line('    return b / a') + 1}",
        "dies": f"pkg/core.py:{line('def die():') + 1}-{line('def die():') + 2}",
        "quits": f"pkg/core.py:{line('    sys.exit(x)') + 1}",
        "import breaks": "pkg/broken.py:2",
    }
    assert runs["of the standard library"].place is None


def test_functions_that_ran_are_told_unless_another_process_may_have_run_more(called: Called) -> None:
    line = CORE.splitlines().index("def ratio(a, b):") + 1
    assert [str(place) for place in called[0]["right"].ran or ()] == [f"pkg/core.py:{line}"]
    assert called[0]["forks"].ran is None


def test_import_that_ends_the_process_leaves_what_comes_after_it_unknown(tmp_path: Path) -> None:
    calls = [table("ratio", 1, 1, expected=1), table("pkg.leaving:f", expected=1), table("ratio", 2, 1, expected=2)]
    seen, outcomes = ran(tmp_path, calculations=calls)
    assert [*outcomes.values()] == [PASSED, UNKNOWN, UNKNOWN]
    why = "the import of pkg.leaving ended the process: exit code 0"
    assert [(one.problem, one.importing) for one in seen.calls[1:]] == [(why, True), (why, False)]


def test_code_of_the_tree_is_called_and_no_installed_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "def count():\n    return {}\n"
    root = written(tmp_path / "project", {"src/counted/core.py": code.format(2), "src/counted/__init__.py": ""})
    copy = written(tmp_path / "site-packages", {"counted/core.py": code.format(1), "counted/__init__.py": ""})
    monkeypatch.setenv("PYTHONPATH", str(copy))
    task = a_task(implementation=["src/counted"], calculations=[table("counted.core:count", expected=2)])
    seen = Calculations.collect(task, a_context(root))
    assert [finding.outcome for finding in judge(task, evidence(seen))] == [PASSED]


def test_task_without_calculations_has_no_such_evidence(tmp_path: Path) -> None:
    with pytest.raises(EvidenceUnavailable, match="names no 'calculations' or 'edge_cases'"):
        ran(tmp_path)


def test_interpreter_that_cannot_be_started_is_a_problem(tmp_path: Path) -> None:
    root = written(tmp_path / "project", FILES)
    context = a_context(root)
    for python, problem in (("/no/such/python", "' cannot be started: "), ("/bin/false", "nothing was called: ")):
        broken = type(context)(root=root, evidence=tmp_path / python[1:], python=python, timeout_s=PATIENCE_S)
        (only,) = Calculations.collect(a_task(edge_cases=[an_edge_case()]), broken).calls
        assert (only.ended, problem in only.problem) == (Ended.NOT_RUN, True)
