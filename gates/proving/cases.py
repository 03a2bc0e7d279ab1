"""A criterion on trial: what must notice, what keeps it from being tried, and the faults that are put in."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gates.evidence.lines.traced import TEST
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.bound_tests import tests_of
from gates.evidence.tests.pytest_run import PytestRun
from gates.model import Location
from gates.proving.bench import Bench
from gates.proving.general import from_statements, general
from gates.proving.making import Change, Fault, Maker, declared, spread
from gates.proving.source import Text
from gates.proving.targets import Baseline, around, statements
from gates.task.bindings import CodeBinding
from gates.task.task import Criterion, Task

if TYPE_CHECKING:
    from gates.proving.general import Operators

SAMPLE = 40  # general faults of one criterion


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

    def __init__(self, task: Task, bench: Bench, run: PytestRun | None, baseline: Baseline, found: "Operators") -> None:
        self._task = task
        self._bench = bench
        self._run = run
        self._baseline = baseline
        self._operators = found
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
            return "no fault could be made: no live code that a fault changes is bound to it"
        return f"no fault could be made: none of its tests is seen to run its code, and {self._unseen(case)}"

    def file(self, path: str) -> Text:
        """Return a file of the implementation without a fault."""
        if path not in self._files:
            self._files[path] = Text.read(self._bench.pristine, path)
        return self._files[path]

    def _problem(self, case: Case) -> str:
        failing = [test for test in case.own if test in self._baseline.bad]
        if failing:
            why = self._baseline.bad[failing[0]]
            more = f", and {len(failing) - 1} more fail" if len(failing) > 1 else ""
            return f"cannot be proved, its own evidence fails: {failing[0]}: {why}{more}"
        if self._baseline.problem:
            return f"cannot be proved: {self._baseline.problem}"
        if unrun := [test for test in case.own if test in self._baseline.unrun]:
            return f"cannot be proved: {unrun[0]} did not run"
        foreign = self._baseline.lines.foreign if self._baseline.lines else ()
        if case.own and foreign:
            return f"cannot be proved: its tests import {foreign[0]}, not the copy that faults are put into"
        return ""

    def _make(self, case: Case) -> None:
        maker = Maker()
        case.faults += maker.make(declared(case.criterion, self._bench.pristine))[0]
        places: list[Location] = []
        for binding in case.criterion.code:
            try:
                places += self._places(binding)
            except (SyntaxError, OSError, UnicodeDecodeError) as error:
                case.notes.append(f"no faults were made of {binding.name}: {error}")
        made, case.sampled = maker.make(spread(case.criterion.id, self._general(case, places)), SAMPLE)
        case.faults += made
        for fault in case.faults:
            place = around(self.file(fault.location.path), fault.location) if _is_python(fault) else fault.location
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

    def _count_unrun(self, case: Case, count: int) -> None:
        if count:
            case.unrun += count
            case.notes.append(f"{count} statements of its code are run by none of its tests; no fault was put there")

    def _general(self, case: Case, places: list[Location]) -> Iterator[Change]:
        """Yield the general faults in the lines of the criterion's symbols that its tests run."""
        every = [each for place in places for each in statements(self.file(place.path), place)]
        run = self._seen_to_run(case, every)
        self._count_unrun(case, len(every) - len(run))
        lines: dict[str, set[int]] = defaultdict(set)
        for each in run:
            lines[each.path] |= {*range(each.line or 1, (each.last_line or 1) + 1)}
        for path, numbers in lines.items():
            file = self.file(path)
            worth = frozenset(numbers - file.idle)
            yield from (c for place in places if place.path == path for c in from_statements(place, file)
                        if c.first in worth)  # fmt: skip
            yield from general(file, worth, self._operators)


def _is_python(fault: Fault) -> bool:
    return fault.location.path.endswith(".py")
