"""A criterion on trial: what it rests on without a fault, what must notice, and the faults that are put in."""

import ast
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

from gates.errors import EvidenceUnavailable
from gates.evidence.lines.executed_lines import ExecutedLines, named_tests
from gates.evidence.lines.traced import TEST
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.bound_tests import tests_of
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import BAD, TestOutcome
from gates.model import Location
from gates.proving.bench import Bench, Told
from gates.proving.source import Fault, Text, distinct, mutants, spread
from gates.task.measurement import CodeBinding
from gates.task.task import Criterion, Task

STARTUP_S, LEAST_S = 0.5, 5.0
SESSION_S = 0.2  # what pytest takes for no test at all
COPIES = 2


@dataclass(frozen=True)
class Baseline:
    """How the bound tests end without a fault, and which lines each of them runs (`None` where that is not known).

    `bad` failed or did not come to their end, `left_out` were skipped or expected to fail.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    bad: dict[str, str] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    peak_bytes: int = 0
    around_s: float = STARTUP_S
    lines: ExecutedLines | None = None
    problem: str = ""
    note: str = ""

    @classmethod
    def of(cls, run: PytestRun, lines: ExecutedLines | None) -> Self:
        """Return what a whole test run says of its tests."""
        seconds = {test.id: test.duration_s for test in run.tests}
        bad = {test.id: f"fails: {test.id}: {test.reason}" for test in run.tests if test.outcome in BAD}
        bad |= {test.id: f"{test.id} did not run" for test in run.tests if test.outcome is TestOutcome.NOT_RUN}
        return cls(
            seconds=seconds,
            bad=bad,
            left_out=frozenset(test.id for test in run.tests if not test.passed) - bad.keys(),
            peak_bytes=run.process.peak_memory_bytes or 0,
            around_s=max(STARTUP_S, run.process.duration_s - sum(seconds.values())),
            lines=lines,
            problem=_broken_off(run),
        )

    def asked(self, name: str, fault: Fault, tests: list[str]) -> Told:
        """Return what a worker is asked: to try a fault by some tests."""
        ways, limit_s = [{"text": fault.text}], self.limit_s(tests)
        return {"id": name, "file": fault.location.path, "ways": ways, "tests": tests, "limit_s": limit_s}

    def limit_s(self, tests: Iterable[str]) -> float:
        """Return how long some tests may take with a fault in."""
        return max(LEAST_S, 5 * (self.around_s + sum(self.seconds.get(test, 0) for test in tests)))

    def workers(self, tests: Sequence[Sequence[str]]) -> int:
        """Return how many workers pay for their start, in which each imports all anew; each fault has its tests."""
        work_s = sum(2 * (SESSION_S + sum(self.seconds.get(test, 0) for test in own)) for own in tests)
        return max(1, min(COPIES, len(tests), os.cpu_count() or 1, int(1 + work_s / (2 * self.around_s))))

    @cached_property
    def starters(self) -> list[str]:
        """Return the tests in which lines may have run unseen: other processes ran, or the tracer was taken away."""
        return named_tests([*self.lines.children, *self.lines.lost]) if self.lines else []

    def contexts(self, place: Location) -> frozenset[str] | None:
        """Return the contexts that some lines ran in; `None` where nobody can tell."""
        if self.lines is None or place.path not in self.lines.lines:
            return None
        function, found = self.lines.function_at(place), self.lines.contexts_in(place)
        if function is not None and function.wrapped:
            return None
        return None if any(not name.startswith(TEST) for name in found) else found

    def noticing(self, place: Location, tests: Sequence[str]) -> list[str]:
        """Return those of some tests that may notice a fault in some lines."""
        found = self.contexts(place)
        if found is None or (self.lines and self.lines.doubts):
            return [*tests]
        return [test for test in tests if f"{TEST}{test}" in found or test in self.starters] or [*tests]

    def at_import(self, place: Location, tests: Iterable[str]) -> bool:
        """Return whether some lines of a function ran outside of tests, and in none of these."""
        found = self.lines.contexts_in(place) if self.lines else frozenset()
        return any(not name.startswith(TEST) for name in found) and found.isdisjoint(f"{TEST}{test}" for test in tests)


def observe(task: Task, bench: Bench) -> tuple[PytestRun | None, Baseline]:
    """Run the tests of a task without a fault, noting which lines each of them runs."""
    paths = tuple(dict.fromkeys([*task.tests, *(path for c in task.criteria for path in c.tests)]))
    if not paths:
        return None, Baseline()
    with bench.faulty({}) as look:
        wider, folder = task.model_copy(update={"tests": paths}), look.folder("pytest").evidence
        run = PytestRun.once(wider, look, folder, env=bench.env(look.root))
    try:  # what tests wrote into the code is undone by now
        return run, Baseline.of(run, ExecutedLines.collect(wider, look))
    except EvidenceUnavailable as error:
        note = f"{error}: every test of a criterion is run for each of its mutants"
        return run, replace(Baseline.of(run, None), note=note)


def _broken_off(run: PytestRun) -> str:
    """Say how the tests ended before their end, and which of them was being run."""
    if run.collect_errors:
        return f"{run.collect_errors[0].id}: {run.collect_errors[0].message.splitlines()[-1]}"
    during = f" while running {run.running[0]}" if run.running else ""
    ended = f"the tests did not come to their end: {run.process.ended}{during}"
    return "" if run.process.exit_code in {0, 1, 5} else ended


def statements(file: Text) -> list[Location]:
    """Return the lines of each live statement of a file: a simple one whole, of a compound one its head."""
    found = []
    for node in file.worth:
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = max(body[0].lineno - 1, node.lineno) if isinstance(body, list) and body else node.end_lineno
            found.append(Location(path=file.path, line=node.lineno, last_line=last))
    return found


def around(file: Text, place: Location) -> Location:
    """Return the lines of the smallest statements that some lines lie in: of what is run, a record has the first."""
    lines = [number for each in statements(file) if each.meets(place) for number in (each.line, each.last_line)]
    numbers = [number for number in lines if number]
    return Location(path=file.path, line=min(numbers), last_line=max(numbers)) if numbers else place


SAMPLE = 40  # faults of one criterion


@dataclass
class Case:
    """A criterion and all that its proof rests on. `own` is in the order of the tests' collection.

    `unrun` counts the statements of its code that none of its tests runs.
    """

    criterion: Criterion
    own: list[str]
    problem: str = ""
    notes: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    tests: dict[str, list[str]] = field(default_factory=dict)
    sampled: int = 0
    unrun: int = 0

    @property
    def can_be_tried(self) -> bool:
        """Return whether there is something to notice and nothing in the way."""
        return not self.problem and bool(self.own)


class Trial:
    """Makes the cases of a task from what was seen of it without a fault."""

    def __init__(self, task: Task, bench: Bench, run: PytestRun | None, baseline: Baseline) -> None:
        self._task = task
        self._bench = bench
        self._run = run
        self._baseline = baseline
        self._tree = SourceTree.collect(task, bench.look)
        self._files: dict[str, Text] = {}

    def case(self, criterion: Criterion) -> Case:
        """Return a criterion with its evidence, looked at without a fault, and its faults."""
        bound = [test.id for test in tests_of(self._task, criterion, self._run)]
        own = [test for test in bound if test not in self._baseline.left_out]
        case = Case(criterion, own)
        if left := len(self._baseline.left_out.intersection(bound)):
            case.notes.append(f"{left} of its {len(bound)} tests were skipped or expected to fail: they notice nothing")
        case.problem = self._problem(case)
        if case.can_be_tried:
            self._make(case)
            if not case.faults and not self.passed_by(case):
                case.problem = self._nothing_made(case)
        return case

    def passed_by(self, case: Case) -> bool:
        """Return whether the tests of a criterion are seen to run none of its code."""
        return bool(case.unrun and case.own and not case.faults and not self._unseen(case))

    def _unseen(self, case: Case) -> str:
        """Return what may have run code unseen in the tests of a criterion, or nothing."""
        return self._baseline.lines.doubt(case.own) if self._baseline.lines else "lines were not noted"

    def _nothing_made(self, case: Case) -> str:
        if not case.unrun:
            return "no mutant could be made: no live code that a mutant changes is bound to it"
        return f"no mutant could be made: none of its tests is seen to run its code, and {self._unseen(case)}"

    def file(self, path: str) -> Text:
        """Return a file of the implementation without a fault."""
        if path not in self._files:
            self._files[path] = Text.read(self._bench.pristine, path)
        return self._files[path]

    def _problem(self, case: Case) -> str:
        failing = [self._baseline.bad[test] for test in case.own if test in self._baseline.bad]
        foreign = self._baseline.lines.foreign if self._baseline.lines else ()
        if self._baseline.problem:
            return f"cannot be proved: {self._baseline.problem}"
        if failing:
            return f"cannot be proved, its own evidence {failing[0]}"
        if case.own and foreign:
            return f"cannot be proved: its tests import {foreign[0]}, not the copy that mutants are put into"
        return ""

    def _make(self, case: Case) -> None:
        places: list[Location] = []
        for binding in case.criterion.code:
            try:
                places += self._places(binding)
            except (SyntaxError, OSError, UnicodeDecodeError) as error:
                case.notes.append(f"no mutants were made of {binding.name}: {error}")
        case.faults, case.sampled = distinct(spread(case.criterion.id, self._mutants(case, places)), SAMPLE)
        for fault in case.faults:
            place = around(self.file(fault.location.path), fault.location)
            case.tests[fault.id] = self._baseline.noticing(place, case.own)

    def _places(self, binding: CodeBinding) -> list[Location]:
        rule = self._tree.rule(binding.rule) if binding.rule else None
        places = [site.location for site in rule.sites if site.ok] if rule else [*self._tree.ways(binding)]
        for place in places:
            self.file(place.path)  # one that cannot be read is said here
        return places

    def _seen_to_run(self, case: Case, every: list[Location]) -> list[Location]:
        """Return the statements that tests run; all, where none is seen to and other processes may."""
        told = [self._baseline.contexts(each) for each in every]
        own = {f"{TEST}{test}" for test in case.own}
        if not own or (not any(own & (found or set()) for found in told) and self._unseen(case)):
            return every
        return [each for each, found in zip(every, told, strict=True) if found is None or own & found]

    def _mutants(self, case: Case, places: list[Location]) -> Iterator[Fault]:
        """Yield the mutants in the lines of the criterion's symbols that its tests run."""
        files = [self.file(path) for path in dict.fromkeys(place.path for place in places)]
        every = [each for file in files for each in statements(file) if any(map(each.meets, places))]
        run = self._seen_to_run(case, every)
        case.unrun = len(every) - len(run)
        if case.unrun:
            unrun = f"{case.unrun} statements of its code are run by none of its tests; no mutant was made there"
            case.notes.append(unrun)
        for file in files:
            lines = {line for each in run if each.path == file.path for line in each.lines}
            yield from mutants(file, lines)
