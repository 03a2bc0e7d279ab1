"""Training steps of the project, and tests of it, run in processes of their own with torch's calls recorded."""

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

from gates.check import Evidence
from gates.child import process
from gates.child.places import HERE
from gates.child.probing import UNTOLD, Entry, Probe, Question, probing
from gates.child.process import ProcessRun
from gates.context import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.code_rules import rules_of
from gates.evidence.recorded_step import Attempt, Recorded, as_recorded
from gates.evidence.runtime_orders import RuntimeOrder, runtime_orders
from gates.model import Model
from gates.task.recorded import Need, TestsToRecord, TrainingStep
from gates.task.task import Task

# What a training step shows here is its semantics: on every machine the same, on a CPU, with nobody told of it.
ALONE = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", **UNTOLD}


class StepRecording(Model):
    """One training step: as it is, and with an overflow in one of its steps, if there is a scaler to handle it.

    `orders` are those that its calls are judged by.
    """

    index: int
    name: str
    plain: Recorded
    overflow: Recorded | None = None
    orders: tuple[RuntimeOrder, ...] = ()


class Recording(Evidence):
    """All training steps of a task, recorded."""

    steps: tuple[StepRecording, ...]

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Run each training step in its own process, under the recorder."""
        probe = probing(task, context, "training_steps", "recording")
        orders = runtime_orders(rules_of(context))
        recorded = process.side_by_side(
            lambda part: _record(*part, probe, part[1].timeout_s or context.timeout_s),
            list(enumerate(task.training_steps)),
        )
        steps = tuple(step.model_copy(update={"orders": orders}) for step in recorded)
        runs = [run for step in steps for run in (step.plain, step.overflow) if run is not None]
        return cls(
            how="each training step once as it is and once with an overflow, in processes of their own",
            commands=tuple(
                run.process.as_command("training step", run.process.argv[-2:-1]) for run in runs if run.process
            ),
            steps=steps,
        )

    def recorded(self) -> Iterator[tuple[str, Recorded, Sequence[RuntimeOrder]]]:
        """Yield each training step as it is."""
        yield from ((step.name, step.plain, step.orders) for step in self.steps)

    def step(self, index: int) -> StepRecording | None:
        """Return the recording of a task's training step."""
        return next((step for step in self.steps if step.index == index), None)


def _record(index: int, step: TrainingStep, probe: Probe, limit_s: float) -> StepRecording:
    asked = {"call": step.call, "args": step.args}
    plain = _run(probe, {**asked, "overflow": None}, f"{index}", limit_s)
    scaled = any(event.word == "scaled_backward" for event in plain.events)
    steps_through_scaler = any(event.word == "step" and event.enabled for event in plain.events)
    guarded = scaled or steps_through_scaler or Need.OVERFLOW in step.needs
    overflow = None
    if plain.complete and plain.attempts and guarded:  # in the second step, if there is one: then moments are there
        at = {**step_to_overflow(plain.attempts, scaled=scaled), "scaled": scaled}
        overflow = _run(probe, {**asked, "overflow": at}, f"{index}-overflow", limit_s)
    return StepRecording(index=index, name=step.name, plain=plain, overflow=overflow)


def step_to_overflow(attempts: Sequence[Attempt], *, scaled: bool) -> dict[str, int]:
    """Return which step is to overflow, and whose it is: the second one, of those through a scaler if one scales."""
    through = [i for i, attempt in enumerate(attempts) if attempt.scaler is not None or not scaled]
    known = through or list(range(len(attempts)))
    step = next((i for i in known if i), known[-1])
    return {"step": step, "optimizer": attempts[step].optimizer}


def _run(probe: Probe, asked: dict[str, object], name: str, limit_s: float) -> Recorded:
    seen = probe.ask("recorder.__main__", name, asked, limit_s, threads=None, env=ALONE)
    recorded = as_recorded(seen.entries, seen.foreign)
    cut_off = seen.process is not None and seen.process.timed_out
    unheard = "" if seen.entries or cut_off else "the recorder wrote no journal"
    ended = recorded.complete and seen.process is not None and seen.process.exit_code == 0
    crash = {} if recorded.problem else {"crash": seen.place, "error": seen.error}
    facts = {"process": seen.process, "complete": ended, "problem": recorded.problem or seen.problem or unheard}
    return recorded.model_copy(update={**facts, **crash})


VARYING = {"driven", "scale", "window", "lr", "optimizers", "scaler", "scale_before", "scale_after", "rates_before",
           "rates_after"}  # fmt: skip
NOTED = {"trouble", "truncated", "overflow", "hidden"}  # told of a test's own calls, too
MOST_TESTS = 5_000


class RecordedTest(Model):
    """One test: how it ended, and what the project's code did in it.

    `run` holds the events that calls of the project's code by the test led to, those of like calls once. `steps`
    counts the steps in all of these calls, with those `left_out`; of what the test itself called, only `own_steps`.
    """

    id: str
    criteria: tuple[str, ...] = ()
    outcome: str
    run: Recorded
    steps: int = 0
    left_out: int = 0
    own_steps: int = 0


class RecordedTests(Evidence):
    """All tests that a task has recorded, in one process; `orders` are those that their calls are judged by."""

    process: ProcessRun
    complete: bool
    troubles: tuple[str, ...] = ()
    tests: tuple[RecordedTest, ...]
    orders: tuple[RuntimeOrder, ...] = ()

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Run the tests once more, under the recorder."""
        if not task.recorded_tests:
            raise EvidenceUnavailable(f"{task.path} names no 'recorded_tests'")
        folder = context.folder("recorded-tests").evidence
        ended, question = _run_tests(task, context, folder)
        entries, foreign = question.answer()
        if not entries:
            raise EvidenceUnavailable(_why_not(ended, folder))
        return cls.read(ended, entries, foreign).model_copy(update={"orders": runtime_orders(rules_of(context))})

    @classmethod
    def read(cls, ended: ProcessRun, entries: Sequence[Entry], foreign: int = 0) -> Self:
        """Read what the recorder told of a run."""
        tests = tuple(_tests(entries))
        alien = (f"{foreign} lines of the journal are not its own",) if foreign else ()
        troubles = {what: None for test in tests for what in test.run.troubles}
        return cls(
            how="python -m pytest, the tests of the criteria alone, with torch's calls recorded",
            commands=(ended.as_command("tests, recorded", ("python", "-m", "pytest")),),
            process=ended,
            complete=bool(entries) and entries[-1]["word"] == "end" and not foreign,
            troubles=(*alien, *troubles),
            tests=tests,
        )


def paths_of(task: Task, asked: TestsToRecord) -> tuple[str, ...]:
    """Return the tests that an entry names, or else those that its criteria are bound to by path or node id."""
    return asked.tests or tuple(path for each in task.criteria if each.id in asked.criteria for path in each.tests)


def marks_of(task: Task, asked: TestsToRecord) -> frozenset[str]:
    """Return the marks by which tests belong to an entry."""
    return frozenset() if asked.tests else frozenset(f"{task.id}/{criterion}" for criterion in asked.criteria)


def _run_tests(task: Task, context: Context, folder: Path) -> tuple[ProcessRun, Question]:
    chosen = {path: None for asked in task.recorded_tests for path in paths_of(task, asked)}
    marks = sorted({mark for asked in task.recorded_tests for mark in marks_of(task, asked)})
    read = [*task.tests] if marks else list(chosen)  # a marked test may stand in any file
    asked = {"chosen": list(chosen), "criteria": marks, "root": str(context.root), "tests": task.tests,
             "implementation": task.implementation}  # fmt: skip
    argv = [context.python, "-m", "pytest", *read, "-p", "gates_probe.recorder.plugin", f"--rootdir={context.root}",
            "-o", f"cache_dir={folder / 'cache'}", "--color=no"]  # fmt: skip
    question = Question(folder / "told.jsonl", asked)
    limit = max((each.timeout_s or context.timeout_s for each in task.recorded_tests), default=context.timeout_s)
    try:
        with question:
            (question.folder / "gates_probe").symlink_to(HERE.rstrip("/"))
            paths = process.joined_paths(str(question.folder))
            env = {**ALONE, "PYTHONPATH": paths, "GATES_RECORDED": str(question.path)}
            ended = process.run(argv, cwd=context.root, timeout_s=limit, log=folder / "run", env=env)
            return ended, question
    except OSError as error:
        raise EvidenceUnavailable(f"{context.python!r} cannot be started: {error}") from error
    finally:
        shutil.rmtree(folder / "cache", ignore_errors=True)


def _why_not(ended: ProcessRun, folder: Path) -> str:
    log = folder / "run.stderr.txt"
    if log.is_file() and "No module named 'torch'" in log.read_text(encoding="utf-8", errors="replace"):
        return "the project's interpreter has no torch"
    return f"the recorder of the tests told nothing ({ended.ended}: {ended.last_words})"


def _tests(entries: Iterable[Entry]) -> Iterator[RecordedTest]:
    """Yield each test with what happened between its begin and its end; one that was run twice counts for nothing."""
    found: dict[str, RecordedTest] = {}
    begun: Entry | None = None
    events: list[Entry] = []
    for entry in entries:
        if entry["word"] == "test":
            begun, events = entry, []
        elif entry["word"] == "tested" and begun is not None:
            test = _test(begun, str(entry.get("outcome")), events)
            again = test.model_copy(update={"outcome": "run again"})
            found[test.id] = again if test.id in found else test
            begun = None
        elif begun is not None:
            events.append(entry)
    if begun is not None:
        found[str(begun.get("id"))] = _test(begun, "not run", events)
    yield from list(found.values())[:MOST_TESTS]


def _test(begun: Entry, outcome: str, events: Sequence[Entry]) -> RecordedTest:
    criteria = begun.get("criteria")
    attempts = [entry for entry in events if entry["word"] == "attempt"]
    ours = [entry for entry in attempts if entry.get("driven") is not None]
    return RecordedTest(
        id=str(begun.get("id")),
        criteria=tuple(map(str, criteria)) if isinstance(criteria, list) else (),
        outcome=outcome,
        run=as_recorded(list(_distinct(events))),
        steps=len(ours),
        left_out=sum(bool(entry.get("skipped")) for entry in ours),
        own_steps=len(attempts) - len(ours),
    )


def _distinct(events: Sequence[Entry]) -> Iterator[Entry]:
    """Yield what calls of the project's code led to; of calls that did the same at the same lines, the first alone."""
    calls: dict[object, list[Entry]] = {}
    for entry in events:
        calls.setdefault(entry.get("driven"), []).append(entry)
    alike = {call: json.dumps([_kind(entry) for entry in entries]) for call, entries in calls.items()}
    first = {kind: call for call, kind in reversed(alike.items())}
    for entry in events:
        call = entry.get("driven")
        if entry["word"] in NOTED or (call is not None and first[alike[call]] == call):
            yield entry


def _kind(entry: Entry) -> Entry:
    """Return what makes an entry unlike another one, by where it came from and what it did."""
    facts = {name: value for name, value in entry.items() if name not in VARYING}
    return {**facts, "scaled": entry.get("scale") not in {None, 1.0}}
