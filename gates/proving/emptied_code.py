"""Whether the tests of a criterion notice that its code does nothing: in a copy each part of it is emptied."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Self

from gates.check import Earlier, Evidence, EvidenceSet
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.called_code import CalledCode
from gates.evidence.lines.executed_lines import ExecutedLines
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.pytest_run import PytestRun, tests_of
from gates.evidence.tests.test_records import function_of
from gates.model import CommandRecord, Level, Location, Model
from gates.project.files import is_under
from gates.proving.bench import Faults, Told, benched
from gates.proving.cases import Baseline
from gates.proving.changed_lines import changes
from gates.proving.emptying import Function, bodies, emptyings, exchanges, guard, is_heard, key_of, promises
from gates.proving.proof import NOTICED, End
from gates.proving.source import Parts, Text, is_docstring
from gates.task.task import Task, stands_beside
from gates.words import counted, grouped

LEAST_S = 60.0
SHARE = 2.0  # of the time that the test run took
SLOW_S = (1.0, 10.0)
SKIPPED = "not all of its tests pass in a copy"
UNCALLED = "its tests do not call it in a copy"
NO_BODY = "it has no body"
WHY = {End.BROKEN: "nothing runs without it", End.UNSTEADY: "its tests do not pass in a copy, without the others"}


class EmptiedSymbol(Model):
    """A symbol of a criterion, and what its tests said when it did nothing: `by` is the one that noticed.

    `why` says why nobody can tell, `spared` that nobody need; where `uncalled`, all passed and called nothing of it.
    `aside` are tests that fail in a copy without any change. Of a `promise`, which does nothing, something else was put
    in its place; what is `exchanged`, a constant or a field, had other values. Of the test functions of a must
    criterion, those `missing` passed whatever the code did, or ran none of it; of `unseen` ones it is not known.
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
    noticing: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()

    @property
    def noticed(self) -> bool:
        """Return whether a test noticed."""
        return self.end in NOTICED

    @property
    def unnoticed(self) -> bool:
        """Return whether tests ran the emptied code, and all passed."""
        return self.end is End.SURVIVED


class EmptiedCode(Evidence):
    """The symbols of all criteria that stand on tests alone, each tried with an empty body, and what tests noticed."""

    symbols: tuple[EmptiedSymbol, ...]

    @property
    def in_doubt(self) -> bool:
        """Return whether some test function was not seen to pass in a copy within the time for it."""
        told = {(symbol.criterion, test) for symbol in self.symbols for test in (*symbol.noticing, *symbol.missing)}
        return any((symbol.criterion, test) not in told for symbol in self.symbols for test in symbol.unseen)

    @classmethod
    def derive(cls, task: Task, context: Context, seen: EvidenceSet) -> Self:
        """Empty each symbol that passed tests run, in a copy, and let them run again."""
        run, tree, lines = seen.get(PytestRun), seen.get(SourceTree), seen.get(ExecutedLines)
        if run is None or not run.complete or tree is None:  # without lines each test is asked for all symbols
            raise EvidenceUnavailable("what the tests run was not seen")
        trial = _Trial(task, context, Baseline(run, lines), seen)
        subjects = [*trial.subjects(run, tree, seen.get(CalledCode))]
        _hold(seen.earlier, subjects, {*run.taken})
        tried = [subject for subject in subjects if subject.tries]
        took_s = trial.try_all(tried, run.process.duration_s) if tried else 0
        purpose, ended = "tests without the code that they verify", f"{counted(len(tried), 'symbol')} emptied"
        command = CommandRecord(purpose=purpose, argv=("python", "-m", "pytest"), ended=ended, duration_s=took_s)
        symbols = tuple(subject.told for subject in subjects)
        how = "the tests of each criterion, run in a copy in which its code does nothing"
        return cls(how=how, commands=(command,) if tried else (), symbols=symbols)


@dataclass
class _Subject:
    """A symbol to be emptied, the tests that may notice, slow ones last, and the others, which run none of it."""

    told: EmptiedSymbol
    file: Text
    tries: list[Parts] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)


def _hold(earlier: Earlier | None, subjects: Iterable[_Subject], taken: set[str]) -> None:
    """Give what an earlier run saw to the symbols all whose tests hold."""
    before = earlier.seen.get(EmptiedCode) if earlier else None
    known = {(one.criterion, one.symbol): one for one in before.symbols} if before else {}
    for subject in subjects:
        told = known.get((subject.told.criterion, subject.told.symbol))
        if told and not told.why and subject.tries and taken.issuperset((*subject.tests, *subject.idle)):
            subject.told, subject.tries = told.model_copy(update={"location": subject.told.location}), []


class _Trial:
    """Finds what can be emptied, puts the emptied files into copies and reads what the tests say of them."""

    def __init__(self, task: Task, context: Context, baseline: Baseline, seen: EvidenceSet) -> None:
        self._task, self._context, self._seen, self._baseline = task, context, seen, baseline
        self._read = cache(partial(Text.read, context.root))
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
                    told = EmptiedSymbol(criterion=criterion.id, symbol=name, location=places[0], promise=bool(promise))
                    yield self._subject(told, places, binding.symbol, own, beside)

    def _subject(
        self, told: EmptiedSymbol, places: tuple[Location, ...], symbol: str | None, own: list[str], beside: str
    ) -> _Subject:
        path, baseline = places[0].path, self._baseline
        file, tries, why = Text(path, b""), list[Parts](), f"{beside} verify it, too" if beside else ""
        if not why and len({place.path for place in places}) > 1:
            why = "it is in several files"
        if not why:
            try:
                file = self._read(path)
                unless = guard(file, self._task.implementation, self._context.root)
                if told.promise:
                    tries = promises(file, places[0], symbol or "", unless)
                elif functions := bodies(file, places, symbol):
                    always = all(baseline.at_import(_inside(file, each), own) for each in functions)
                    tries = emptyings(file, functions, "" if always else unless)
                else:  # what has no body has other values
                    tries = exchanges(file, places[0], symbol) if symbol else []
            except (OSError, SyntaxError, ValueError) as error:
                why = f"its file cannot be rewritten: {error}"
        if why or not tries:
            return _Subject(told.model_copy(update={"why": why or NO_BODY, "spared": bool(beside) or not why}), file)
        inside = [_inside(file, node) for node in {*_functions(tries)}]
        asking = {test for place in inside for test in baseline.noticing(place, own)} if inside else {*own}
        # roughly by how slow they are: the order must not be another one with each run
        paced = sorted(own, key=lambda test: sum(baseline.seconds.get(test, 0) > limit for limit in SLOW_S))
        tests = [test for test in paced if test in asking]
        told = told.model_copy(update={"tests": len(tests), "exchanged": not inside})
        return _Subject(told, file, tries, tests, [test for test in own if test not in asking])

    def try_all(self, subjects: list[_Subject], run_s: float) -> float:
        """Empty each in one way after the other until a test notices; ask each test function of a must criterion.

        Return how long that took, in seconds.
        """
        baseline, results = self._baseline, defaultdict[str, Told](dict)
        budget_s = max(LEAST_S, SHARE * max(run_s, sum(baseline.seconds.values())))
        own = Faults([self._fault(str(number), subject) for number, subject in enumerate(subjects)], budget_s)
        bench, along = self._seen.shared(benched, self._task, self._context), list[Faults]()
        with suppress(EvidenceUnavailable):  # it says so when it is asked for
            along.append(self._seen.shared(changes, self._task, self._context, self._seen).faults)
        bench.try_all(baseline.run, own, *along)
        for line in own.lines:
            results[line["id"]] |= line
        asked = {(each.told.criterion, function_of(test)) for each in subjects for test in each.tests}
        for number, subject in enumerate(subjects):
            told = _judged(subject, results[str(number)])
            if self._is_asked(subject):
                told |= _each(told.get("by", ""), subject, results[str(number)], asked)
            subject.told = subject.told.model_copy(update=told)
        return own.took_s

    def _is_asked(self, subject: _Subject) -> bool:
        return subject.told.criterion in self._musts and not subject.told.promise

    def _fault(self, name: str, subject: _Subject) -> Told:
        ways, each = [subject.file.but(parts) for parts in subject.tries], self._is_asked(subject)
        files = {test.split("::")[0] for test in subject.tests}
        bound = self._task.criterion(subject.told.criterion).tests
        return {
            **self._baseline.asked(name, subject.file, ways, subject.tests),
            "each": _sampled(subject.tests) if each else [],
            "listen": dict(self._listened(subject)),
            "of": subject.told.criterion,
            "whole": sorted(file for file in files if any(is_under(file, path) for path in bound)),
        }

    def _listened(self, subject: _Subject) -> Iterator[tuple[str, str]]:
        """Yield functions whose kind of result a test must tell, each by its key, and a test that runs it."""
        for function in {each for each in _functions(subject.tries) if is_heard(each)}:
            found = self._baseline.noticing(_inside(subject.file, function), subject.tests)
            yield from ((key_of(subject.file, function), test) for test in found[:1])


def _functions(tries: Iterable[Parts]) -> Iterator[Function]:
    return (node for parts in tries for node in parts if isinstance(node, Function))


def _inside(file: Text, node: Function) -> Location:
    """Return the lines of a function's body, below its docstring."""
    body = node.body[is_docstring(node.body[0]) :] or node.body
    return Location(path=file.path, line=body[0].lineno, last_line=node.end_lineno)


def _sampled(tests: Sequence[str]) -> list[str]:
    """Return a few parameter sets of each test function: the first, the middle one and the last."""
    functions = grouped(tests, function_of).values()
    return [test for own in functions for test in dict.fromkeys((own[0], own[len(own) // 2], own[-1]))]


def _each(by: str, subject: _Subject, line: Told, asked: set[tuple[str, str]]) -> Told:
    """Return which test functions noticed that code did something else, and which did not, or run none of it."""
    idle = {function_of(test) for test in subject.idle if (subject.told.criterion, function_of(test)) not in asked}
    noticing = {function_of(test) for test in (by, *line.get("noticed", ())) if test}
    missing = idle.union(map(function_of, line.get("missed", ()))) - noticing
    unseen = {*map(function_of, line.get("collected", subject.tests))} - noticing - missing
    facts = {"noticing": noticing, "missing": missing, "unseen": unseen}
    return {name: tuple(sorted(tests)) for name, tests in facts.items()}


def _judged(subject: _Subject, line: Told) -> Told:
    """Return what came of the ways to empty a symbol: that one was noticed, else that one was missed."""
    late: Told = {"end": End.NOT_TRIED, "why": "the time for it was up"}
    ends = [_came_of(result, subject.told) for result in line.get("tries", ())]
    ends += [late] if line.get("late", "tries" not in line) else []
    ends = ends or [{"why": "pytest collects none of its tests in a copy"}]
    noticed = (end for end in ends if end.get("end") in NOTICED)
    return [*noticed, *(end for end in ends if end.get("end") is End.SURVIVED), ends[-1]][0]


def _came_of(result: Told, told: EmptiedSymbol) -> Told:
    end = End(result["end"])
    facts = {"end": end, "by": result["by"], "aside": tuple(result["aside"])}
    if end is End.SURVIVED and result["idle"]:
        return {**facts, "end": End.NOT_TRIED, "why": SKIPPED}
    if end is End.SURVIVED and not result["called"] and told.exchanged:
        return {"why": NO_BODY, "spared": True}
    if end is End.SURVIVED and not result["called"]:
        return {**facts, "end": End.NOT_TRIED, "why": UNCALLED, "uncalled": True}
    return {**facts, "why": WHY.get(end, "")}
