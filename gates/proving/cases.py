"""A criterion on trial: what it rests on without a fault, what must notice, and the faults that are put in."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial

from gates.errors import EvidenceUnavailable
from gates.evidence.lines.executed_lines import ExecutedLines
from gates.evidence.lines.traced import TEST
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.pytest_run import PytestRun, tests_of
from gates.evidence.tests.test_records import BAD, TestOutcome, TestRecord
from gates.model import Location
from gates.proving.bench import Bench, Faults, Told
from gates.proving.proof import CriterionProof, End, TriedFault
from gates.proving.source import Fault, Text, distinct, mutants, spread
from gates.task.task import Criterion, Task
from gates.words import printable

SAMPLE = 40  # faults of one criterion
FAILED = BAD | {TestOutcome.NOT_RUN}
Asked = tuple[Fault, list[str]]  # and the tests that have to notice it


@dataclass(frozen=True)
class Baseline:
    """A test run without a fault, and which lines each of its tests ran (`None` where that is not known)."""

    run: PytestRun | None
    lines: ExecutedLines | None

    @cached_property
    def seconds(self) -> dict[str, float]:
        """Return how long each test took."""
        return {test.id: test.duration_s for test in self.run.tests} if self.run else {}

    def asked(self, name: str, file: Text, ways: list[str], tests: list[str]) -> Told:
        """Return what a worker is to try: the texts of a file, one after the other, and the tests that look at each."""
        took_s = [self.seconds.get(test, 0) for test in tests]
        about = {"id": name, "file": file.path, "same": file.retold, "ways": ways}
        return {**about, "tests": tests, "tests_s": sum(took_s), "longest_s": max(took_s, default=0)}

    def faults(self, named: Mapping[str, Asked], budget_s: float) -> Faults:
        """Return what a bench is to try of faults that have a name, each with the tests that look at it."""
        each = [self.asked(name, fault.file, [fault.text], tests) for name, (fault, tests) in named.items()]
        return Faults(each, budget_s)

    def contexts(self, place: Location) -> frozenset[str] | None:
        """Return the contexts that some lines ran in; `None` where nobody can tell."""
        if self.lines is None or place.path not in self.lines.lines:
            return None
        line = Location(path=place.path, line=place.line)
        heads = (each.body for each in self.lines.functions if each.location.meets(line) and not each.body.meets(line))
        place = next(heads, place)  # a default is set at import, and counts in a call
        function, found = self.lines.function_at(place), self.lines.contexts_in(place)
        if function is not None and function.wrapped:
            return None
        return None if any(not name.startswith(TEST) for name in found) else found

    def noticing(self, place: Location, tests: Sequence[str]) -> list[str]:
        """Return those of some tests that may notice a fault in some lines."""
        found, lines = self.contexts(place), self.lines
        if found is None or lines is None or lines.doubts:
            return [*tests]
        found |= {*lines.unseen}  # where lines may have run unseen
        return [test for test in tests if f"{TEST}{test}" in found] or [*tests]

    def quickest_first(self, tests: Sequence[str]) -> list[str]:
        """Return tests file by file, those of the files first that take the least time."""
        took = defaultdict[str, float](float)
        for test in tests:
            took[test.split("::")[0]] += self.seconds.get(test, 0)
        return sorted(tests, key=lambda test: took[test.split("::")[0]])

    def at_import(self, place: Location, tests: Iterable[str]) -> bool:
        """Return whether some lines of a function ran outside of tests, and in none of these."""
        found = self.lines.contexts_in(place) if self.lines else frozenset()
        return any(not name.startswith(TEST) for name in found) and found.isdisjoint(f"{TEST}{test}" for test in tests)


def observe(task: Task, bench: Bench) -> tuple[Baseline, str]:
    """Run the tests of a task in a copy, noting which lines each of them runs; say why where that is not known."""
    if not task.every_test:
        return Baseline(None, None), ""
    with bench.faulty({}) as look:
        wider, folder = task.model_copy(update={"tests": task.every_test}), look.folder("pytest").evidence
        run = PytestRun.once(wider, look, folder, env=bench.env(look.root))
    try:  # what tests wrote into the code is undone by now
        return Baseline(run, ExecutedLines.collect(wider, look)), ""
    except EvidenceUnavailable as error:
        return Baseline(run, None), f"{error}: every test of a criterion is run for each of its mutants"


def statements(file: Text) -> list[Location]:
    """Return the lines of each live statement of a file: a simple one whole, of a compound one its head."""
    found = []
    for node in file.worth:
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = max(body[0].lineno - 1, node.lineno) if isinstance(body, list) and body else node.end_lineno
            found.append(Location(path=file.path, line=node.lineno, last_line=last))
    return found


def concluded(proof: CriterionProof, faults: Mapping[str, Asked], ends: Mapping[str, Told]) -> CriterionProof:
    """Return the proof of a criterion with what came of its faults, as far as they were tried."""
    tried = []
    for name, (fault, tests) in faults.items():
        told, asked = ends.get(name, {}), tuple(map(printable, tests))
        same = {name: getattr(fault, name) for name in ("id", "title", "location", "diff")}
        words = {name: printable(told.get(name, "")) for name in ("by", "message")}
        end, took_s = End(told.get("end", End.NOT_TRIED)), told.get("seconds", 0)
        tried.append(TriedFault(**same, **words, end=end, tests=asked, seconds=took_s))
    return proof.model_copy(update={"faults": tuple(tried)})


class Trial:
    """Makes the cases of a task from what was seen of it without a fault."""

    def __init__(self, task: Task, bench: Bench, baseline: Baseline) -> None:
        self._task, self._baseline = task, baseline
        self._tree = SourceTree.collect(task, bench.look)
        self._file = cache(partial(Text.read, bench.pristine))

    def case(self, criterion: Criterion, least: float) -> tuple[CriterionProof, dict[str, Asked]]:
        """Return a criterion with its evidence, looked at without a fault, and its faults, each by its name."""
        bound = tests_of(self._task, criterion, self._baseline.run)
        own = [test for test in bound if test.passed or test.outcome in FAILED]
        notes, problem, passed_by, sampled = list[str](), self._problem(own), False, 0
        faults: list[Asked] = []
        if left := len(bound) - len(own):
            notes.append(f"{left} of its {len(bound)} tests were skipped or expected to fail: they notice nothing")
        if own and not problem:
            ids, every, lines = [test.id for test in own], self._statements(criterion, notes), self._baseline.lines
            unseen = lines.doubt(ids) if lines else "lines were not noted"
            run = self._run(every, ids, unseen)
            if unrun := len(every) - len(run):
                notes.append(f"{unrun} statements of its code are run by none of its tests; no mutant was made there")
            files = map(self._file, dict.fromkeys(place.path for place in run))
            found = (mutant for file in files for mutant in mutants(file, run))
            made, sampled = distinct(spread(criterion.id, found), SAMPLE)
            faults = [(fault, self._baseline.noticing(fault.location, ids)) for fault in made]
            passed_by = bool(unrun and not faults and not unseen)
            if not faults and not passed_by:
                problem = "no mutant could be made: no live code that a mutant changes is bound to it"
                problem = f"no mutant could be made where its tests run its code ({unseen})" if unrun else problem
        about = {"id": criterion.id, "text": criterion.text, "level": criterion.level, "killed_at_least": least}
        about |= {"location": self._task.place(criterion), "tests": len(own), "notes": tuple(dict.fromkeys(notes))}
        about["shown_otherwise"] = bool(criterion.measures or self._task.shown_by(criterion))
        named = {f"{criterion.id} {fault.id}": (fault, tests) for fault, tests in faults}
        return CriterionProof(**about, problem=problem, sampled=sampled, passed_by=passed_by), named

    def _problem(self, own: Sequence[TestRecord]) -> str:
        run, failing = self._baseline.run, next((test for test in own if test.outcome in FAILED), None)
        foreign = self._baseline.lines.foreign if self._baseline.lines else ()
        if run and run.collect_errors:
            error = run.collect_errors[0]
            return f"cannot be proved: {error.id}: {error.message.splitlines()[-1]}"
        if run and run.process.exit_code not in {0, 1, 5}:
            during = f" while running {run.running[0]}" if run.running else ""
            return f"cannot be proved: the tests did not come to their end: {run.process.ended}{during}"
        if failing:
            end = f"fails: {failing.id}: {failing.reason}" if failing.outcome in BAD else f"{failing.id} did not run"
            return f"cannot be proved, its own evidence {end}"
        elsewhere = own and foreign
        return f"cannot be proved: its tests import {foreign[0]}, not the copy of the project" if elsewhere else ""

    def _statements(self, criterion: Criterion, notes: list[str]) -> list[Location]:
        """Return the statements of a criterion's code; note what cannot be read."""
        places: list[Location] = []
        for binding in criterion.code:
            found = self._tree.ways(binding)
            try:
                for place in found:
                    self._file(place.path)
                places += found
            except (SyntaxError, OSError, ValueError) as error:
                notes.append(f"no mutants were made of {binding.name}: {error}")
        files = [self._file(path) for path in dict.fromkeys(place.path for place in places)]
        return [each for file in files for each in statements(file) if any(map(each.meets, places))]

    def _run(self, every: list[Location], own: Iterable[str], unseen: str) -> list[Location]:
        """Return the statements that tests run; all, where none is seen to and other processes may."""
        told, tests = [self._baseline.contexts(each) for each in every], {f"{TEST}{test}" for test in own}
        all_of_it = unseen and not any(tests & (found or set()) for found in told)
        return [each for each, found in zip(every, told, strict=True) if all_of_it or found is None or tests & found]
