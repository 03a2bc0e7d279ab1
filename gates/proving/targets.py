"""What each criterion rests on: its lines, the tests that run them, and whether those pass without a fault."""

import ast
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

from gates.errors import EvidenceUnavailable
from gates.evidence.lines.executed_lines import ExecutedLines, named_tests
from gates.evidence.lines.traced import TEST
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import BAD, TestOutcome
from gates.model import Location
from gates.proving.bench import Bench, Told
from gates.proving.making import Fault
from gates.proving.source import Text
from gates.task.task import Task

STARTUP_S, LEAST_S = 0.5, 5.0
SESSION_S = 0.2  # what pytest takes for no test at all
COPIES = 2


@dataclass(frozen=True)
class Baseline:
    """How the bound tests end without a fault, and which lines each of them runs (`None` where that is not known).

    `left_out` were skipped or expected to fail, `unrun` did not come to their end.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    bad: dict[str, str] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    unrun: frozenset[str] = frozenset()
    peak_bytes: int = 0
    around_s: float = STARTUP_S
    lines: ExecutedLines | None = None
    problem: str = ""
    note: str = ""

    @classmethod
    def of(cls, run: PytestRun, lines: ExecutedLines | None) -> Self:
        """Return what a whole test run says of its tests."""
        seconds = {test.id: test.duration_s for test in run.tests}
        bad = {test.id: test.reason for test in run.tests if test.outcome in BAD}
        unrun = frozenset(test.id for test in run.tests if test.outcome is TestOutcome.NOT_RUN)
        return cls(
            seconds=seconds, bad=bad, unrun=unrun, lines=lines,
            left_out=frozenset(test.id for test in run.tests if not test.passed) - bad.keys() - unrun,
            around_s=max(STARTUP_S, run.process.duration_s - sum(seconds.values())),
            peak_bytes=run.process.peak_memory_bytes or 0, problem=_broken_off(run),
        )  # fmt: skip

    def asked(self, name: str, fault: Fault, tests: list[str], every: list[str] | None = None) -> Told:
        """Return what a worker is asked: to try a fault by some tests, or else by every one of a criterion."""
        every = tests if every is None else every
        return {
            "id": name, "file": fault.location.path, "text": fault.text, "tests": tests, "all": every,
            "limit_s": self.limit_s(tests), "limit_all_s": self.limit_s(every),
        }  # fmt: skip

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
        """Return the contexts that some lines of a function ran in; `None` where nobody can tell."""
        function = self.lines.function_at(place) if self.lines else None
        if self.lines is None or function is None or not function.told or function.wrapped:
            return None
        found = self.lines.contexts_in(function, place)
        return None if any(not name.startswith(TEST) for name in found) else found

    def noticing(self, place: Location, tests: Sequence[str]) -> list[str]:
        """Return those of some tests that may notice a fault in some lines, the fastest first."""
        found = self.contexts(place)
        fast = sorted(tests, key=lambda test: self.seconds.get(test, 0))
        if found is None or (self.lines and self.lines.doubts):
            return fast
        ran = [test for test in fast if f"{TEST}{test}" in found]
        return [*ran, *(test for test in fast if test in self.starters and test not in ran)] or fast

    def at_import(self, place: Location, tests: Iterable[str]) -> bool:
        """Return whether the functions in some lines ran outside of tests, and in none of these."""
        functions = self.lines.within(place) if self.lines else []
        found = {name for each in functions if self.lines for name in self.lines.contexts_of(each)}
        return any(not name.startswith(TEST) for name in found) and found.isdisjoint(f"{TEST}{test}" for test in tests)


def observe(task: Task, bench: Bench) -> tuple[PytestRun | None, Baseline]:
    """Run the tests of a task without a fault, noting which lines each of them runs."""
    paths = list(dict.fromkeys([*task.tests, *(path for c in task.criteria for path in c.tests)]))
    with bench.faulty() as look:
        there = tuple(path for path in paths if (look.root / path.split("::")[0]).exists())
        if not there:
            return None, Baseline()
        wider, folder = task.model_copy(update={"tests": there}), look.folder("pytest").evidence
        run = PytestRun.once(wider, look, folder, env=bench.env(look.root))
    try:  # what tests wrote into the code is undone by now
        return run, Baseline.of(run, ExecutedLines.collect(wider, look))
    except EvidenceUnavailable as error:
        note = f"{error}: every test of a criterion is run for each of its faults"
        return run, replace(Baseline.of(run, None), note=note)


def _broken_off(run: PytestRun) -> str:
    """Say how the tests ended before their end, and which of them was being run."""
    if run.collect_errors:
        return f"{run.collect_errors[0].id}: {run.collect_errors[0].message.splitlines()[-1]}"
    if run.process.exit_code in {0, 1, 5}:
        return ""
    during = f" while running {run.running[0]}" if run.running else ""
    return f"the tests did not come to their end: {run.process.ended}{during}"


def statements(file: Text, place: Location) -> list[Location]:
    """Return the lines of each live statement of a place: a simple one whole, of a compound one its head."""
    found = []
    for node in ast.walk(file.tree):
        if isinstance(node, ast.stmt) and (place.line or 1) <= node.lineno <= (place.last_line or node.lineno):
            body = getattr(node, "body", None)
            last = max(body[0].lineno - 1, node.lineno) if isinstance(body, list) and body else node.end_lineno
            if node.lineno not in file.idle:
                found.append(Location(path=file.path, line=node.lineno, last_line=last))
    return found


def around(file: Text, place: Location) -> Location:
    """Return the lines of the smallest statements that some lines lie in: of what is run, a record has the first."""
    first, last = place.line or 1, place.last_line or place.line or 1
    found = [each for each in statements(file, Location(path=file.path, line=1, last_line=file.text.count("\n") + 1))
             if (each.line or 1) <= last and (each.last_line or 1) >= first]  # fmt: skip
    if not found:
        return place
    lines = [number for each in found for number in (each.line or 1, each.last_line or 1)]
    return Location(path=file.path, line=min(lines), last_line=max(lines))
