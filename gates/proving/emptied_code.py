"""Whether the tests of a criterion notice that its code does nothing: in a copy each part of it is emptied."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from gates.check import Derived, Earlier, EvidenceSet
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.called_code import CalledCode
from gates.evidence.lines.executed_lines import ExecutedLines
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.pytest_run import PytestRun, tests_of
from gates.evidence.tests.test_records import function_of
from gates.model import CommandRecord, Level, Location, Model
from gates.proving.bench import Told, benched
from gates.proving.cases import Baseline
from gates.proving.emptying import Emptying, Function, emptyings, exchanges, is_heard, key_of, places_of, promises
from gates.proving.proof import NOTICED, End
from gates.proving.source import Text, is_docstring
from gates.task.task import Task, stands_beside
from gates.words import counted

LEAST_S = 60.0
SHARE = 2.0  # of the time that the test run took
SLOW_S = (1.0, 10.0)
SKIPPED = "not all of its tests pass in a copy"
UNCALLED = "its tests do not call it in a copy"
NO_BODY = "it has no body"
WHY = {End.BROKEN: "nothing runs without it", End.UNSTEADY: "its tests do not pass in a copy, without the others"}


class EmptiedSymbol(Model):
    """A symbol of a criterion, and what its tests said when it did nothing: `by` is the one that noticed.

    `why` says why nobody can tell, `spared` that nobody need: something else stands for the criterion, or there is
    nothing to take away. `uncalled` says that all passed and called nothing of it. `tests` counts those that were
    asked, `aside` are those that fail in a copy without any change. Of a `promise`, a definition that does nothing,
    something else was put in its place; what is `exchanged`, a constant or a field, had other values.
    """

    criterion: str
    symbol: str
    location: Location
    end: End = End.NOT_TRIED
    by: str = ""
    tests: int = 0
    why: str = ""
    promise: bool = False
    exchanged: bool = False
    spared: bool = False
    uncalled: bool = False
    aside: tuple[str, ...] = ()

    @property
    def noticed(self) -> bool:
        """Return whether a test noticed."""
        return self.end in NOTICED

    @property
    def unnoticed(self) -> bool:
        """Return whether tests ran the emptied code, and all passed."""
        return self.end is End.SURVIVED


class AskedTest(Model):
    """A test function of a must criterion, and whether it noticed that code of the criterion did something else.

    `why` says why nobody can tell.
    """

    criterion: str
    test: str
    noticed: bool = False
    why: str = ""


class EmptiedCode(Derived):
    """The symbols of all criteria that stand on tests alone, each tried with an empty body, and what tests noticed."""

    symbols: tuple[EmptiedSymbol, ...]
    tests: tuple[AskedTest, ...] = ()

    @classmethod
    def derive(cls, task: Task, context: Context, seen: EvidenceSet) -> Self:
        """Empty each symbol that passed tests run, in a copy, and let them run again."""
        run, tree, lines = seen.get(PytestRun), seen.get(SourceTree), seen.get(ExecutedLines)
        if run is None or not run.complete or tree is None:  # without lines each test is asked for all symbols
            raise EvidenceUnavailable("what the tests run was not seen")
        begun = time.monotonic()
        trial = _Trial(task, context, Baseline(run, lines))
        subjects = [*trial.subjects(run, tree, seen.get(CalledCode))]
        held = _held(seen.earlier, subjects, {*run.taken})
        tried = [subject for subject in subjects if subject.tries]
        asked = (*held, *trial.try_all(tried, run.process.duration_s)) if tried else held
        purpose, ended = "tests without the code that they verify", f"{counted(len(tried), 'symbol')} emptied"
        argv, took_s = ("python", "-m", "pytest"), round(time.monotonic() - begun, 1)
        command = CommandRecord(purpose=purpose, argv=argv, ended=ended, duration_s=took_s)
        return cls(
            how="the tests of each criterion, run in a copy in which its code does nothing",
            commands=(command,) if tried else (),
            symbols=tuple(subject.told for subject in subjects),
            tests=asked,
        )


@dataclass
class _Subject:
    """A symbol to be emptied, the tests that may notice, slow ones last, and the others, which run none of it."""

    told: EmptiedSymbol
    file: Text
    tries: list[Emptying] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)


def _held(earlier: Earlier | None, subjects: Iterable[_Subject], taken: set[str]) -> tuple[AskedTest, ...]:
    """Give what an earlier run saw to the symbols all whose tests hold; return what it saw of the tests."""
    before = earlier.seen.get(EmptiedCode) if earlier else None
    known, held = {(one.criterion, one.symbol): one for one in before.symbols} if before else {}, set()
    for subject in subjects:
        tests, told = (*subject.tests, *subject.idle), known.get((subject.told.criterion, subject.told.symbol))
        if told and not told.why and subject.tries and taken.issuperset(tests):
            subject.told, subject.tries = told.model_copy(update={"location": subject.told.location}), []
            held |= {_asked(subject, test) for test in tests}
    return tuple(test for test in before.tests if (test.criterion, test.test) in held) if before else ()


def _asked(subject: _Subject, test: str) -> tuple[str, str]:
    return subject.told.criterion, function_of(test)


class _Trial:
    """Finds what can be emptied, puts the emptied files into copies and reads what the tests say of them."""

    def __init__(self, task: Task, context: Context, baseline: Baseline) -> None:
        self._task = task
        self._context = context
        self._baseline = baseline
        self._musts = {criterion.id for criterion in task.criteria if criterion.level is Level.MUST}

    def subjects(self, run: PytestRun, tree: SourceTree, called: CalledCode | None) -> Iterator[_Subject]:
        """Yield the symbols of the criteria that tests passed for; some cannot be tried, or need not."""
        unstable = {test.id for test, _ in run.unstable}
        for criterion in self._task.criteria:
            own = [t.id for t in tests_of(self._task, criterion, run) if t.passed and t.id not in unstable]
            calls = called.calls if called else ()
            idle = {call.command for call in calls if call.criterion == criterion.id and call.misses}
            beside = stands_beside(self._task, criterion, [e for e in self._task.entry_points if e.run in idle])
            for binding in criterion.code if own else ():
                trace = tree.symbol(binding) if binding.symbol else None
                promise = trace.promise if trace else None
                places = tree.ways(binding) or ((promise,) if promise else ())
                if not binding.rule and places:
                    name = binding.symbol or f"the function around {binding.name}"
                    told = EmptiedSymbol(
                        criterion=criterion.id, symbol=name, location=places[0], promise=promise is not None
                    )
                    yield self._subject(told, places, binding.symbol, own, beside)

    def _subject(
        self, told: EmptiedSymbol, places: tuple[Location, ...], symbol: str | None, own: list[str], beside: str
    ) -> _Subject:
        path, baseline = places[0].path, self._baseline
        file, tries, why = Text(path, b""), list[Emptying](), f"{beside} verify it, too" if beside else ""
        if not why and len({place.path for place in places}) > 1:
            why = "it is in several files"
        if not why:
            try:
                file = Text.read(self._context.root, path)
                if told.promise:
                    tries = promises(file, places[0], symbol or "")
                else:  # what has no body has other values
                    tries = emptyings(file, places, symbol) or (exchanges(file, places[0], symbol) if symbol else [])
            except (OSError, SyntaxError, ValueError) as error:
                why = f"its file cannot be rewritten: {error}"
        if why or not tries:
            spared = {"why": why or NO_BODY, "spared": bool(beside) or not why}
            return _Subject(told.model_copy(update=spared), file)
        inside = [_inside(file, node) for node in {function for each in tries for function in each.ends}]
        if inside and not told.promise and all(baseline.at_import(place, own) for place in inside):
            tries = [replace(each, always=True) for each in tries]
        asking = {test for place in inside for test in baseline.noticing(place, own)} if inside else {*own}
        # roughly by how slow they are: the order must not be another one with each run
        paced = sorted(own, key=lambda test: sum(baseline.seconds.get(test, 0) > limit for limit in SLOW_S))
        tests = [test for test in paced if test in asking]
        facts = {"tests": len(tests), "exchanged": not inside}
        return _Subject(told.model_copy(update=facts), file, tries, tests, [test for test in own if test not in asking])

    def try_all(self, subjects: list[_Subject], run_s: float) -> list[AskedTest]:
        """Empty each in one way after the other until a test notices, and ask each test function of a must criterion.

        A function that no way to empty the code disturbs notices nothing.
        """
        baseline, asked = self._baseline, {str(number): subject for number, subject in enumerate(subjects)}
        idle = {_asked(each, test) for each in subjects for test in each.idle}
        idle -= {_asked(each, test) for each in subjects for test in each.tests}
        deadline = time.time() + max(LEAST_S, SHARE * max(run_s, sum(baseline.seconds.values())))
        with benched(self._task, self._context, len(subjects)) as bench:
            faults = [self._fault(name, subject, bench.look.evidence) for name, subject in asked.items()]
            lines = bench.try_all(faults, deadline=deadline, peak_bytes=baseline.peak_bytes)
        tried = {line["id"]: line for line in lines if "tries" in line}
        for name, subject in asked.items():
            _judge(subject, tried.get(name, {"tries": [], "late": True}))
        return [*_each([subject for subject in subjects if self._is_asked(subject)], asked, lines, idle)]

    def _is_asked(self, subject: _Subject) -> bool:
        return subject.told.criterion in self._musts and not subject.told.promise

    def _fault(self, name: str, subject: _Subject, folder: Path) -> Told:
        places = places_of(self._task.implementation, self._context.root)
        marks = [(way, folder / f"mark-{name}-{turn}") for turn, way in enumerate(subject.tries)]
        return {
            "id": name,
            "file": subject.file.path,
            "same": subject.file.retold,
            "ways": [{"text": way.text(subject.file, mark, places), "mark": str(mark)} for way, mark in marks],
            "tests": subject.tests,
            "tests_s": self._baseline.tests_s(subject.tests),
            "each": _sampled(subject.tests) if self._is_asked(subject) else [],
            "listen": dict(self._listened(subject)),
            "of": subject.told.criterion,
        }

    def _listened(self, subject: _Subject) -> Iterator[tuple[str, str]]:
        """Yield functions whose kind of result a test must tell, each by its key, and a test that runs it."""
        for function in {function for each in subject.tries for function in each.ends if is_heard(function)}:
            found = self._baseline.noticing(_inside(subject.file, function), subject.tests)
            yield from ((key_of(subject.file, function), test) for test in found[:1])


def _inside(file: Text, node: Function) -> Location:
    """Return the lines of a function's body, below its docstring."""
    body = node.body[is_docstring(node.body[0]) :] or node.body
    return Location(path=file.path, line=body[0].lineno, last_line=node.end_lineno)


def _sampled(tests: Sequence[str]) -> list[str]:
    """Return a few parameter sets of each test function: the first, the middle one and the last."""
    by_function: dict[str, list[str]] = {}
    for test in tests:
        by_function.setdefault(function_of(test), []).append(test)
    return [test for own in by_function.values() for test in dict.fromkeys((own[0], own[len(own) // 2], own[-1]))]


def _each(
    subjects: Sequence[_Subject], asked: Mapping[str, _Subject], lines: Iterable[Told], idle: set[tuple[str, str]]
) -> Iterator[AskedTest]:
    """Say of each test function whether it noticed that code did something else; the `idle` run none of it."""
    noticed, missed = {_asked(subject, subject.told.by) for subject in subjects if subject.told.noticed}, {*idle}
    for line in lines:
        noticed |= {_asked(asked[line["id"]], test) for test in line.get("noticed", ())}
        missed |= {_asked(asked[line["id"]], test) for test in line.get("missed", ())}
    for criterion, test in sorted({_asked(s, test) for s in subjects for test in (*s.tests, *s.idle)}):
        found, seen = (criterion, test) in noticed, (criterion, test) in missed
        why = "" if found or seen else "it was not seen to pass in a copy within the time for it"
        yield AskedTest(criterion=criterion, test=test, noticed=found, why=why)


def _judge(subject: _Subject, line: Told) -> None:
    """Note what came of the ways to empty a symbol: that one was noticed, else that one was missed."""
    subject.tests = line.get("collected", subject.tests)
    late: Told = {"end": End.NOT_TRIED, "why": "the time for it was up"}
    ends = [*(_came_of(result, subject.told) for result in line["tries"]), *([late] if line.get("late") else [])]
    if not ends:
        ends = [{"why": "pytest collects none of its tests in a copy"}]
    noticed = (end for end in ends if end.get("end") in NOTICED)
    missed = (end for end in ends if end.get("end") is End.SURVIVED)
    subject.told = subject.told.model_copy(update=next(noticed, None) or next(missed, ends[-1]))


def _came_of(result: Told, told: EmptiedSymbol) -> Told:
    """Return what came of one way to empty a symbol."""
    end = End(result["end"])
    facts = {"end": end, "by": result["by"], "aside": tuple(result["aside"])}
    if end is End.SURVIVED and result["idle"]:
        return {**facts, "end": End.NOT_TRIED, "why": SKIPPED}
    if end is End.SURVIVED and not result["called"] and told.exchanged:
        return {"why": NO_BODY, "spared": True}
    if end is End.SURVIVED and not result["called"]:
        return {**facts, "end": End.NOT_TRIED, "why": UNCALLED, "uncalled": True}
    return {**facts, "why": WHY.get(end, "")}
