"""Whether the tests of a criterion notice that its code does nothing: in a copy each part of it is emptied."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from gates.check import Derived, Earlier, EvidenceSet
from gates.child.guardian import guarded_folder
from gates.config import Context
from gates.errors import EvidenceUnavailable, UsageError
from gates.evidence.called_code import CalledCode
from gates.evidence.lines.executed_lines import ExecutedLines
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.bound_tests import tests_of
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import function_of
from gates.model import CommandRecord, Level, Location, Model
from gates.proving.bench import Bench, Told
from gates.proving.cases import Baseline
from gates.proving.emptying import Emptying, Function, emptyings, exchanges, is_heard, key_of, places_of, promises
from gates.proving.proof import NOTICED, End
from gates.proving.source import Text, compiles, is_docstring
from gates.task.measurement import CodeBinding
from gates.task.task import Criterion, Task, stands_beside
from gates.words import counted

LEAST_S = 60.0
SHARE = 2.0  # of the time that the test run took
SLOW_S = (1.0, 10.0)
AROUND = "the function around "
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
    message: str = ""
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

    def promised(self, criterion: str, symbol: str | None) -> EmptiedSymbol | None:
        """Return what came of the promise that a criterion is traced to, or nothing where it is none."""
        own = (one for one in self.symbols if one.promise and (one.criterion, one.symbol) == (criterion, symbol))
        return next(own, None)

    @classmethod
    def derive(cls, task: Task, context: Context, seen: EvidenceSet) -> Self:
        """Empty each symbol that passed tests run, in a copy, and let them run again."""
        run, tree, lines = seen.get(PytestRun), seen.get(SourceTree), seen.get(ExecutedLines)
        if run is None or not run.complete or tree is None:  # without lines each test is asked for all symbols
            raise EvidenceUnavailable("what the tests run was not seen")
        begun = time.monotonic()
        baseline = Baseline.of(run, lines)
        subjects = [*_subjects(task, tree, run, baseline, context, seen.get(CalledCode))]
        held = _held(seen.earlier, subjects, {*run.taken})
        tried = [subject for subject in subjects if subject.tries]
        if not tried:
            return cls(how="nothing to empty", symbols=tuple(subject.told for subject in subjects), tests=held)
        with guarded_folder() as folder:
            try:
                tests_s = max(run.process.duration_s, sum(baseline.seconds.values()))
                trial = _Trial(task, replace(context, evidence=folder), baseline, tests_s)
                asked = (*held, *trial.try_all(tried))
            except UsageError as error:
                raise EvidenceUnavailable(str(error)) from error
        command = CommandRecord(
            purpose="tests without the code that they verify", argv=("python", "-m", "pytest"),
            ended=f"{counted(len(tried), 'symbol')} emptied", duration_s=round(time.monotonic() - begun, 1),
        )  # fmt: skip
        how = "the tests of each criterion, run in a copy in which its code does nothing"
        return cls(how=how, commands=(command,), symbols=tuple(subject.told for subject in subjects), tests=asked)


def _held(earlier: Earlier | None, subjects: Iterable["_Subject"], taken: set[str]) -> tuple[AskedTest, ...]:
    """Give what an earlier run saw to the symbols all whose tests hold; return what it saw of the tests."""
    before = earlier.seen.get(EmptiedCode) if earlier else None
    known, held = {(one.criterion, one.symbol): one for one in before.symbols} if before else {}, set()
    for subject in subjects:
        tests, told = (*subject.tests, *subject.idle), known.get((subject.told.criterion, subject.told.symbol))
        if told and not told.why and subject.tries and taken.issuperset(tests):
            subject.told, subject.tries = told.model_copy(update={"location": subject.told.location}), []
            held |= {_asked(subject, test) for test in tests}
    return tuple(test for test in before.tests if (test.criterion, test.test) in held) if before else ()


@dataclass
class _Subject:
    """A symbol to be emptied, the tests that may notice, slow ones last, and the others, which run none of it."""

    told: EmptiedSymbol
    file: Text | None
    tries: list[Emptying]
    tests: list[str]
    idle: list[str]


def _subjects(
    task: Task, tree: SourceTree, run: PytestRun, baseline: Baseline, context: Context, called: CalledCode | None
) -> Iterator[_Subject]:
    unstable = {test.id for test, _ in run.unstable}
    for criterion in task.criteria:
        own = [t.id for t in tests_of(task, criterion, run) if t.passed and t.id not in unstable]
        beside = stands_beside(task, criterion, called.idle_entries(task, criterion) if called else ())
        for binding in criterion.code if own else ():
            trace = tree.symbol(binding) if binding.symbol else None
            promise = trace.promise if trace else None
            places = tree.ways(binding) or ((promise,) if promise else ())
            if not binding.rule and places:
                yield _subject(criterion, binding, places, own, beside, baseline, context, promise)


def _subject(
    criterion: Criterion, binding: CodeBinding, places: tuple[Location, ...], own: list[str], beside: str,
    baseline: Baseline, context: Context, promise: Location | None,
) -> _Subject:  # fmt: skip
    name = binding.symbol or f"{AROUND}{binding.name}"
    told = EmptiedSymbol(criterion=criterion.id, symbol=name, location=places[0], promise=promise is not None)

    def not_judged(why: str, *, spared: bool = False) -> _Subject:
        return _Subject(told.model_copy(update={"why": why, "spared": spared}), None, [], [], [])

    if beside:
        return not_judged(f"{beside} verify it, too", spared=True)
    if len({place.path for place in places}) > 1:
        return not_judged("it is in several files")
    try:
        file = Text.read(context.root, places[0].path)
        tries = _tries(file, places, binding.symbol, promise)
    except (OSError, SyntaxError, ValueError) as error:
        return not_judged(f"its file cannot be rewritten: {error}")
    if not tries:
        return not_judged(NO_BODY, spared=True)
    if not all(compiles(each.text(file, Path("mark"), ())) for each in tries):
        return not_judged("its file cannot be rewritten")
    functions = {function for each in tries for function in each.functions}
    inside = [_inside(file, node) for node in functions]
    asking = {test for place in inside for test in baseline.noticing(place, own)} if functions else {*own}
    if inside and promise is None and all(baseline.at_import(place, own) for place in inside):
        tries = [replace(each, always=True) for each in tries]
    tests = [test for test in sorted(own, key=lambda test: _pace(baseline.seconds.get(test, 0))) if test in asking]
    facts = {"tests": len(tests), "exchanged": not functions}
    return _Subject(told.model_copy(update=facts), file, tries, tests, [test for test in own if test not in asking])


def _tries(file: Text, places: tuple[Location, ...], symbol: str | None, promise: Location | None) -> list[Emptying]:
    """Return what to put in the place of a symbol: no bodies, or where it has none other values."""
    if promise is not None and symbol:
        return promises(file, promise, symbol)
    return emptyings(file, places, symbol) or (exchanges(file, places, symbol) if symbol else [])


def _inside(file: Text, node: Function) -> Location:
    """Return the lines of a function's body, below its docstring."""
    body = node.body[is_docstring(node.body[0]) :] or node.body
    return Location(path=file.path, line=body[0].lineno, last_line=node.end_lineno)


def _asked(subject: _Subject, test: str) -> tuple[str, str]:
    return subject.told.criterion, function_of(test)


def _sampled(tests: Sequence[str]) -> list[str]:
    """Return a few parameter sets of each test function: the first, the middle one and the last."""
    by_function: dict[str, list[str]] = {}
    for test in tests:
        by_function.setdefault(function_of(test), []).append(test)
    return [test for own in by_function.values() for test in dict.fromkeys((own[0], own[len(own) // 2], own[-1]))]


def _each(
    subjects: Sequence[_Subject], asked: Mapping[str, _Subject], lines: Iterable[Told], idle: set[tuple[str, str]]
) -> Iterator[AskedTest]:
    """Say of each test function of some subjects whether it noticed that code of the criterion did something else.

    Those that are `idle` run none of it.
    """
    noticed = {_asked(subject, subject.told.by) for subject in subjects if subject.told.noticed}
    missed: set[tuple[str, str]] = set()
    for line in lines:
        noticed |= {_asked(asked[line["id"]], test) for test in line.get("noticed", ())}
        missed |= {_asked(asked[line["id"]], test) for test in line.get("missed", ())}
    missed |= idle
    for criterion, test in sorted({_asked(s, test) for s in subjects for test in (*s.tests, *s.idle)}):
        found, seen = (criterion, test) in noticed, (criterion, test) in missed
        why = "" if found or seen else "it was not seen to pass in a copy within the time for it"
        yield AskedTest(criterion=criterion, test=test, noticed=found, why=why)


def _pace(seconds: float) -> int:
    """Return how slow a test is, roughly: the order must not be another one with each run."""
    return sum(seconds > limit for limit in SLOW_S)


class _Trial:
    """Puts the emptied files into copies and reads what the tests say of them."""

    def __init__(self, task: Task, context: Context, baseline: Baseline, tests_s: float) -> None:
        self._task = task
        self._context = context
        self._baseline = baseline
        self._deadline = time.time() + max(LEAST_S, SHARE * tests_s)
        self._places = places_of(task.implementation, context.root)
        self._musts = {criterion.id for criterion in task.criteria if criterion.level is Level.MUST}
        self._marks = context.evidence / "marks"
        self._marks.mkdir()

    def try_all(self, subjects: list[_Subject]) -> list[AskedTest]:
        """Empty each in one way after the other until a test notices, and ask each test function of a must criterion.

        A function that no way to empty the code disturbs notices nothing.
        """
        jobs = self._baseline.workers([subject.tests for subject in subjects])
        bench = Bench(self._task, self._context, jobs)
        asked = {str(number): subject for number, subject in enumerate(subjects)}
        idle = {_asked(each, test) for each in subjects for test in each.idle}
        idle -= {_asked(each, test) for each in subjects for test in each.tests}
        lines = bench.try_all(
            [self._fault(name, subject) for name, subject in asked.items()], deadline=self._deadline,
            peak_bytes=self._baseline.peak_bytes,
        )  # fmt: skip
        tried = {line["id"]: line for line in lines if "tries" in line}
        for name, subject in asked.items():
            self._judge(subject, tried.get(name, {"tries": [], "late": True}))
        return [*_each([subject for subject in subjects if self._is_asked(subject)], asked, lines, idle)]

    def _is_asked(self, subject: _Subject) -> bool:
        return subject.told.criterion in self._musts and not subject.told.promise

    def _fault(self, name: str, subject: _Subject) -> Told:
        assert subject.file is not None
        marks = [str(self._marks / f"{name}-{turn}") for turn in range(len(subject.tries))]
        texts = [
            way.text(subject.file, Path(mark), self._places) for way, mark in zip(subject.tries, marks, strict=True)
        ]
        return {
            "id": name,
            "file": subject.file.path,
            "ways": [{"text": text, "mark": mark} for text, mark in zip(texts, marks, strict=True)],
            "tests": subject.tests,
            "limit_s": self._baseline.limit_s(subject.tests),
            "each": _sampled(subject.tests) if self._is_asked(subject) else [],
            "listen": dict(self._listened(subject.file, subject)),
            "keys": {test: "\0".join(_asked(subject, test)) for test in subject.tests},
        }

    def _listened(self, file: Text, subject: _Subject) -> Iterator[tuple[str, str]]:
        """Yield functions whose kind of result a test must tell, each by its key, and the fastest test that runs it."""
        for function in {function for each in subject.tries for function in each.functions if is_heard(function)}:
            place = Location(path=file.path, line=function.lineno, last_line=function.end_lineno)
            yield from ((key_of(file, function), test) for test in self._baseline.noticing(place, subject.tests)[:1])

    @staticmethod
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
    facts = {"end": end, "by": result["by"], "message": result["message"], "aside": tuple(result["aside"])}
    if end is End.SURVIVED and result["idle"]:
        return {**facts, "end": End.NOT_TRIED, "why": SKIPPED}
    if end is End.SURVIVED and not result["called"] and told.exchanged:
        return {"why": NO_BODY, "spared": True}
    if end is End.SURVIVED and not result["called"]:
        return {**facts, "end": End.NOT_TRIED, "why": UNCALLED, "uncalled": True}
    return {**facts, "why": WHY.get(end, "")}
