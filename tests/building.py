"""Builders with honest defaults: what they build would pass, and a test says what is wrong with its own."""

import gc
import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from bar import unmoved
from covering import executed, started
from forking import forked

from gates import pipeline
from gates.check import Evidence, EvidenceSet
from gates.checks.assertions import TestFiles
from gates.checks.base_tests import BaseTests
from gates.checks.entry_points import EntryPointRuns, EntryRun
from gates.child.process import ProcessRun, Stream
from gates.code.symbols import SymbolTrace, Use
from gates.config import Context
from gates.errors import UsageError
from gates.evidence.called_code import CalledCode, CommandCall, standing_for
from gates.evidence.measurements import Measurements
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import TestOutcome, TestRecord
from gates.measuring.samples import Samples
from gates.measuring.taken import MeasurementRun
from gates.model import CommandRecord, Finding, Location, Outcome, Revision, Severity
from gates.pipeline import discover
from gates.proving.changed_lines import ChangedLines
from gates.proving.emptied_code import EmptiedCode, EmptiedSymbol
from gates.proving.proof import End
from gates.report import Report
from gates.stages import Gate
from gates.task.loading import load
from gates.task.task import Task, task_model

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 200  # no test passes by it: it ends what hangs, however busy the machine is


def a_task(**changes: Any) -> Task:
    """A task that asks for one of everything: code, a test, an entry point and a measure."""
    facts: dict[str, Any] = {
        "id": "T1",
        "title": "Doubling",
        "implementation": ["pkg"],
        "tests": ["tests"],
        "entry_points": [{"run": ["python", "-m", "pkg"], "criteria": ["AC1"], "line": 6}],
        "criteria": [a_criterion(), a_criterion(id="AC2", text="Be fast", tests=[], measures=[a_measure()], line=12)],
        "measurements": [{"id": "bench", "run": ["python", "bench.py", "{device}", "{out}"], "line": 16}],
        "path": "tasks/T1.yaml",
        "digest": "d" * 64,
    }
    return task_model().model_validate({**facts, **changes})


def a_criterion(**changes: Any) -> dict[str, Any]:
    """A must criterion with one symbol and one test file."""
    facts: dict[str, Any] = {
        "id": "AC1",
        "text": "Double a number",
        "code": [{"symbol": "pkg.core:double", "line": 9}],
        "tests": ["tests/test_core.py"],
        "line": 8,
    }
    return {**facts, **changes}


def a_measure(**changes: Any) -> dict[str, Any]:
    """A speedup of at least 1.5, seen on the CPU."""
    facts = {"from": "bench", "ratio": ["old", "new"], "of": "step_time_s", "at_least": 1.5, "on": "cpu", "line": 14}
    return {key: value for key, value in {**facts, **changes}.items() if value is not None}


def a_process(exit_code: int | None = 0, **changes: Any) -> ProcessRun:
    """A process that ended by itself, with exit code 0, and wrote nothing."""
    silent = Stream(bytes=0, tail="")
    facts: dict[str, Any] = {
        "argv": ("python",),
        "exit_code": exit_code,
        "signal": None,
        "timed_out": False,
        "timeout_s": 900,
        "duration_s": 1.0,
        "stdout": silent,
        "stderr": silent,
    }
    return ProcessRun.model_validate({**facts, **changes})


def a_record(outcome: TestOutcome = TestOutcome.PASSED, **changes: Any) -> TestRecord:
    """A test of tests/test_core.py that passed."""
    facts: dict[str, Any] = {
        "id": "tests/test_core.py::test_double",
        "location": Location(path="tests/test_core.py", line=4),
        "criteria": (),
        "outcome": outcome,
        "duration_s": 0.01,
    }
    return TestRecord.model_validate({**facts, **changes})


def a_run(*tests: TestRecord, **changes: Any) -> PytestRun:
    """A run that came to its end, whose witnesses agree; of one passed test, if none is given."""
    records = tests or (a_record(),)
    facts: dict[str, Any] = {
        "how": "python -m pytest",
        "commands": (CommandRecord(purpose="test suite", argv=("python", "-m", "pytest"), ended="", duration_s=1.0),),
        "process": a_process(int(any(test.outcome in {TestOutcome.FAILED, TestOutcome.ERROR} for test in records))),
        "tests": records,
        "collect_errors": (),
        "warnings": (),
        "running": (),
        "disagreements": (),
        "versions": {"python": "3.11.0", "pytest": "9.0.0"},
    }
    return PytestRun.model_validate({**facts, **changes})


def entries(task: Task, *ended: ProcessRun, crash: Location | None = None) -> EntryPointRuns:
    """The runs of a task's entry points, each with exit code 0 where nothing else is given."""
    ends = ended or tuple(a_process() for _ in task.entry_points)
    runs = tuple(
        EntryRun(index=i, name=entry.name, process=end, crash=crash)
        for i, (entry, end) in enumerate(zip(task.entry_points, ends, strict=True))
    )
    return EntryPointRuns(how="each command once", runs=runs)


def a_tree(task: Task, *, unparsed: tuple[str, ...] = ()) -> SourceTree:
    """A tree in which every symbol of the task is live and uses all that it must."""
    traces = tuple(
        SymbolTrace(
            symbol=binding.symbol,
            wanted=binding.uses,
            location=Location(path="pkg/core.py", line=1, last_line=3),
            uses=tuple(Use(name=name, lines=(2,)) for name in binding.uses),
        )
        for criterion in task.criteria
        for binding in criterion.code
        if binding.symbol
    )
    return SourceTree(how="syntax trees", files=1, symbols=traces, rules=(), unparsed=unparsed)


NOISE = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]  # of a clock: no two times are the same, nor their differences
OLD = [(2.0 + i / 100 + n / 10**6) / 1000 for i, n in enumerate(NOISE)]
NEW = [(1.0 + i / 200 + n / 10**6) / 1000 for i, n in enumerate(reversed(NOISE))]


def raw_samples(
    *, device: str = "cpu", paired: bool = True, old: Sequence[object] = OLD, new: Sequence[object] = NEW
) -> dict[str, Any]:
    """What a benchmark writes, as plain data: a clear speedup of 2, from 12 pairs."""
    metric = {"unit": "s", "direction": "lower", "paired": paired, "arms": {"old": list(old), "new": list(new)}}
    where = {"type": device, "name": f"a {device}"}
    return {"schema": "gates.samples/1", "device": where, "metrics": {"step_time_s": metric}}


def samples(*, capabilities: Sequence[str] = (), **changes: Any) -> Samples:
    """The samples of a good benchmark."""
    raw = raw_samples(**changes)
    raw["device"]["capabilities"] = list(capabilities)
    return Samples.model_validate(raw)


def measured(*seen: Samples | str, device: str | None = None) -> Measurements:
    """The runs of the measurement `bench`: on each device its samples, or the reason why there are none."""
    runs = tuple(
        MeasurementRun(
            id="bench",
            device=device or (one.device.type if isinstance(one, Samples) else "cpu"),
            process=a_process(),
            samples=one if isinstance(one, Samples) else None,
            problem="" if isinstance(one, Samples) else one,
            raw="measurements/bench-cpu.json",
        )
        for one in seen or (samples(),)
    )
    return Measurements(how="benchmarks", runs=runs)


def evidence(*pieces: Evidence) -> EvidenceSet:
    """A set of these pieces of evidence and no other."""
    return EvidenceSet({type(piece): piece for piece in pieces})


def all_evidence(task: Task, *instead: Evidence) -> EvidenceSet:
    """Everything that a task asks for, seen and good, save for the pieces given instead."""
    good: list[Evidence] = [
        a_run(), a_tree(task), entries(task), measured(), executed(), started(), unmoved(),
        missed(), called(task), TestFiles(how="read", asserted=(), linted=(), names={}),
        BaseTests(how="git", base="main", commit="b" * 40, changed=()),
        ChangedLines(how="mutants", base="main", tried=3),
    ]  # fmt: skip
    seen = evidence(*good, *instead)
    for kind in {kind for gate in discover() for kind in gate.uses} - seen.present.keys():
        seen.missing[kind] = "the task asks for none"
    return seen


def folded(task: Task, seen: EvidenceSet, gates: Sequence[Gate] | None = None, **changes: Any) -> Report:
    """The report of the gates that apply to a task, or of those given."""
    facts: dict[str, Any] = {
        "revision": Revision(commit=None, dirty=None, digest="0" * 64, files=()),
        "environment": {"platform": "a platform", "processor": "a processor"},
        "started_at": "2026-01-01T00:00:00Z", "duration_s": 0.0,
    }  # fmt: skip
    judged = tuple(pipeline.judge(gate, task, seen) for gate in gates or pipeline.discover())
    return pipeline.fold(task, judged, seen).model_copy(update={**facts, **changes})


def missed() -> EmptiedCode:
    """The symbol of AC1, emptied, and the test that noticed."""
    noticed = EmptiedSymbol(
        criterion="AC1", symbol="pkg.core:double", location=Location(path="pkg/core.py", line=1, last_line=3),
        end=End.KILLED, by="tests/test_core.py::test_double", tests=1,
    )  # fmt: skip
    return EmptiedCode(how="in a copy", symbols=(noticed,))


def called(task: Task) -> CalledCode:
    """The commands of a task, each of which calls the code of its criterion."""
    calls = tuple(
        CommandCall(
            criterion=criterion.id, part=one.part, measures=one.measures, command=one.command, called=True,
            ended_well=False,
        )
        for criterion in task.criteria for one in standing_for(task, criterion)
    )  # fmt: skip
    return CalledCode(how="in a copy", calls=calls)


def a_finding(outcome: Outcome = Outcome.PASSED, **changes: Any) -> Finding:
    """A must finding that passed."""
    severity = Severity.INFO if outcome in {Outcome.PASSED, Outcome.NOT_APPLICABLE} else Severity.HIGH
    facts = {"rule": "EX001", "check": "suite", "outcome": outcome, "severity": severity, "message": "It was seen."}
    return Finding.model_validate({**facts, **changes})


TASK_FILE = """\
id: T1
title: Doubling
implementation: [pkg]
tests: [tests]
entry_points:
  - run: [python, -c, "import pkg.core; pkg.core.double(1)"]
    criteria: [AC1]
criteria:
  - id: AC1
    text: Double a number
    code: [{symbol: "pkg.core:double"}]
    tests: [tests/test_core.py]
  - id: AC2
    text: Be fast
    code: [{symbol: "pkg.core:double"}]
    measures: [{from: bench, ratio: [old, new], of: step_time_s, at_least: 1.5, on: cpu}]
measurements:
  - id: bench
    run: [python, bench.py, "{out}"]
"""

LIGHT = """\
id: T1
title: Doubling
implementation: [pkg]
criteria:
  - id: AC1
    text: Double a number
    code: [{symbol: "pkg.core:%s"}]
"""
SMALL = LIGHT.partition("    code:")[0]  # it asks for nothing but a criterion

MEASURES = """\
import json, pathlib, sys, time
from pkg.core import double
double(1)
samples = json.loads({0!r})
samples["metrics"]["step_time_s"]["arms"]["old"][0] += time.time_ns() % 10**6 / 1e15  # no clock gives the same twice
pathlib.Path(sys.argv[1]).write_text(json.dumps(samples))
"""
PLUGINS = "hypothesispytest anyio xdist xdist.looponfail pytest_cov platformdirs metadata rerunfailures"
QUICK = " ".join(f"-p no:{name}" for name in PLUGINS.split())  # those of this environment take half of a short run


def pytest_options(more: str = "") -> str:
    """The part of a pyproject.toml that makes pytest start quickly, with some options added."""
    return f"[tool.pytest.ini_options]\naddopts = {f'{QUICK} {more}'.strip()!r}\n"


GOOD: dict[str, str] = {
    "pyproject.toml": "[tool.gates]\n" + pytest_options(),
    "pkg/__init__.py": '"""A tiny library."""\n',
    "pkg/core.py": "def double(x: int) -> int:\n    return x + x\n",
    "tests/test_core.py": "from pkg.core import double\n\n\ndef test_double() -> None:\n    assert double(2) == 4\n",
    "tasks/T1.yaml": TASK_FILE,
    "bench.py": MEASURES.format(json.dumps(raw_samples())),
}


def a_project(folder: Path, files: Mapping[str, str | bytes] | None = None) -> Path:
    """A tiny real project that passes, with some files added or replaced."""
    return written(folder, {**GOOD, **(files or {})})


def written(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files into a folder and return it."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def a_context(root: Path, *, timeout_s: float = PATIENCE_S) -> Context:
    """The world of a project, with a fresh folder for raw files beside it."""
    folder = root.parent / f"{root.name}-evidence"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return Context(root=root, evidence=folder, python=sys.executable, timeout_s=timeout_s)


def awaited(look: Callable[[], T]) -> T:
    """Look until something is there, and return it: a test waits for what happens, and for no clock."""
    limit = time.monotonic() + PATIENCE_S
    while not (found := look()):
        assert time.monotonic() < limit, "it did not come about"
        time.sleep(0.01)
    return found


def patient(limit_s: float, look: Callable[[float], T], is_there: Callable[[T], object]) -> T:
    """Look with a time limit that ends what hangs, and with longer ones until what comes before it had its time."""
    while not is_there(seen := look(limit_s)) and limit_s < PATIENCE_S:
        limit_s *= 4
    return seen


def growth(look: Callable[[int], object], size: int) -> float:
    """How many times the CPU time of an eighth of a size the whole takes: 8 where both grow alike, 64 by its square."""
    took = dict.fromkeys((size // 8, size), math.inf)
    gc.disable()  # a search of all that other tests left is none of it
    for each in [*took] * 3:  # the least of three: the first also loads, and others disturb
        before = time.process_time()
        look(each)
        took[each] = min(took[each], time.process_time() - before)
    gc.enable()
    return took[size] / took[size // 8]


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


def gates(project: Path, *args: str | Path, env: Mapping[str, str] | None = None) -> Ended:
    """Run the command line in a project, in a process of its own; where Python itself is to begin anew, an own one."""
    words = [*map(str, args)]
    if env is None or "PYTHONPATH" not in env:
        code, out, err = forked(project, words, clean(env), PATIENCE_S)
        return Ended(code, out.decode(), err.decode())
    done = subprocess.run(
        [sys.executable, "-m", "gates", *words],
        cwd=project, env=clean(env), capture_output=True, timeout=PATIENCE_S, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


def collected(task: Task, context: Context, *kinds: type[Evidence]) -> EvidenceSet:
    """What is seen of a task for real: all of these kinds, one after the other."""
    seen = EvidenceSet()
    for kind in kinds:
        seen.collect(kind, task, context)
        assert seen.get(kind), seen.why_missing(kind)
    seen.stack.close()
    return seen


def loaded(root: Path, text: str | bytes) -> Task:
    """The task of a file with this text."""
    return load(written(root, {"tasks/T1.yaml": text}) / "tasks/T1.yaml", root)


def refused(root: Path, text: str | bytes) -> str:
    """What is said of such a file, which is none of a task, from its place on: `7:1: ...`."""
    with pytest.raises(UsageError) as caught:
        loaded(root, text)
    assert caught.value.exit_code == 2
    assert str(caught.value).startswith("tasks/T1.yaml:")
    return str(caught.value).removeprefix("tasks/T1.yaml:")


def clean(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without what the test run or its user has set for gates, with some variables added."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("GATES_", "PYTEST_"))}
    return {**ours, "CI": "true", "PYTHONPATH": str(ROOT), **(env or {})}  # in CI no evidence is taken of a run


def result(project: Path, task: str = "T1") -> dict[str, Any]:
    """The result that the last run left behind, of the whole task or of a part."""
    found = (project / "reports" / task).glob("**/result.json")
    loaded: dict[str, Any] = json.loads(max(found, key=lambda path: path.stat().st_mtime_ns).read_bytes())
    return loaded


def every_finding(project: Path, task: str = "T1") -> list[Any]:
    """All findings of the last run: those of its gates and those of the run as a whole."""
    told = result(project, task)
    return [*(finding for gate in told["gates"] for finding in gate["findings"]), *told["findings"]]
