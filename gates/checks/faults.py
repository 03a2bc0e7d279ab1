"""Whether tests notice that code of a criterion does nothing, and mutants of the lines that a change alters."""

import time
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import Self

from gates.check import About, Check, Evidence, EvidenceSet, about_criterion, beside
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.lines.executed_lines import ExecutedLines, named_tests
from gates.evidence.tests.pytest_run import PytestRun, tests_of
from gates.model import CommandRecord, Finding, Level, Location, Model, Planned, Severity
from gates.project.files import is_code
from gates.project.history import TwoStates
from gates.proving.bench import benched
from gates.proving.cases import Baseline, statements
from gates.proving.emptied_code import EmptiedCode, EmptiedSymbol
from gates.proving.proof import End
from gates.proving.source import Fault, Text, distinct, mutants, spread
from gates.report import Section
from gates.task.task import Criterion, Task, stands_beside
from gates.words import counted, first_of, printable

SHARE, LEAST_S = 2.0, 10.0  # of the time that the tests took, and at least
MOST = 40


class MissedMutant(Model):
    """A mutant of a changed line, and the tests that ran it and passed."""

    location: Location
    title: str
    tests: tuple[str, ...]


class ChangedLines(Evidence):
    """What the tests made of the mutants of changed lines; `untried` are those that there was no time for."""

    base: str
    tried: int = 0
    untried: int = 0
    missed: tuple[MissedMutant, ...] = ()

    @classmethod
    def derive(cls, task: Task, context: Context, seen: EvidenceSet) -> Self:
        """Put mutants of the lines that differ from the merge base into a copy, and run the tests of these lines."""
        states = TwoStates.since_base(context.root, context.base)
        old, new = states.changed(task.implementation, ".py")
        facts: dict[str, object] = {"how": f"mutants of lines changed since {states.commit[:12]}", "base": states.base}
        run, lines = seen.get(PytestRun), seen.get(ExecutedLines)
        if new and (run is None or not run.complete or lines is None):
            raise EvidenceUnavailable("which tests run the changed lines was not seen")
        if not new or run is None:
            return cls.model_validate(facts)
        baseline = Baseline(run, lines)
        unstable = {test.id for test, _ in run.unstable}
        passed = [test.id for test in run.tests if test.passed and test.id not in unstable]
        code = [path for path in new if is_code(path, task.implementation)]
        changes = (each for path in code for each in _changes(path, old.get(path, b""), context, baseline, {*passed}))
        made, left = distinct(spread(task.id, changes), MOST)
        asked = {mutant.id: (mutant, baseline.noticing(mutant.location, passed)) for mutant in made}
        begun = time.monotonic()
        deadline = time.time() + max(LEAST_S, SHARE * sum(baseline.seconds.values()))
        ends = baseline.tried(asked, seen.shared(benched, task, context), deadline) if asked else {}
        tried = [(name, End(end["end"])) for name, end in ends.items() if not end["idle"]]
        about = {"argv": ("python", "-m", "pytest"), "ended": f"{counted(len(tried), 'mutant')} tried"}
        took_s = round(time.monotonic() - begun, 1)
        command = CommandRecord(purpose="mutants of changed lines", duration_s=took_s, **about)
        missed = [
            MissedMutant(location=mutant.location, title=printable(mutant.title), tests=tuple(map(printable, tests)))
            for mutant, tests in (asked[name] for name, end in tried if end is End.SURVIVED)
        ]
        missed.sort(key=lambda one: (str(one.location), {"<", ">"}.isdisjoint(one.title.replace("->", ""))))
        untried = len(made) - len(tried) + left
        facts |= {"tried": len(tried), "untried": untried, "missed": missed, "commands": [command] if tried else []}
        return cls.model_validate(facts)


def _changes(path: str, old: bytes, context: Context, baseline: Baseline, passed: set[str]) -> Iterator[Fault]:
    """Yield mutants of the changed statements of a file that tests are seen to run."""
    try:
        file = Text.read(context.root, path)
        blocks = SequenceMatcher(None, old.splitlines(), file.raw.splitlines(), autojunk=False).get_opcodes()
        changed = {line + 1 for kind, _, _, first, last in blocks if kind != "equal" for line in range(first, last)}
        touched = [each for each in statements(file) if not changed.isdisjoint(each.lines)]
    except (OSError, SyntaxError, ValueError):
        return
    yield from mutants(file, [each for each in touched if passed & {*named_tests(baseline.contexts(each) or ())}])


NAMED = 3


def plan(task: Task) -> Iterator[Planned]:
    """Plan a check for each criterion that is traced to symbols or patterns."""
    yield from beside(_traced(task), "emptied", "The tests of {} notice when its code is stubbed out")
    title = "The tests kill the mutants of changed lines"
    yield Planned(id="changed-lines", title=title, level=Level.ADVISORY, scored=False)


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Leave open each criterion whose tests pass without its code; what could not be tried is only told."""
    seen = evidence.get(EmptiedCode)
    for criterion in _traced(task):
        about = about_criterion(criterion, "BL016", f"emptied:{criterion.id}", evidence="EmptiedCode.json")
        own = [symbol for symbol in seen.symbols if symbol.criterion == criterion.id] if seen else []
        yield from _hollow(about, criterion, own)
        # of promises BL001 speaks
        pseudo = [symbol for symbol in own if symbol.unnoticed and not symbol.promise]
        uncalled = [each for each in own if each.uncalled and any(other.noticed for other in own)]
        for symbol in (*pseudo, *uncalled):
            message = f"The tests of {criterion.id} pass without calling {symbol.symbol}."
            fix = "Bind tests that call it, or leave it out of the criterion."
            message, fix = _unnoticed(criterion, symbol) if symbol.unnoticed else (message, fix)
            own_place = about.but(location=symbol.location, subject=symbol.symbol, expected="a test that notices")
            yield own_place.unknown(message, fix)
        if not pseudo and not uncalled:
            yield _noticed(about, criterion, own, task, evidence)
    yield from _changed(evidence)


def page(_task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell of each emptied symbol which test noticed."""
    seen = evidence.get(EmptiedCode)
    if seen is None or not seen.symbols:
        return
    yield Section(
        title="Tests Against Stubbed Code",
        text="Where tests alone verify a criterion, its symbols are stubbed out in a copy: one test has to fail.",
        columns=("Noticed by", "Criterion", "Symbol", "Tests asked"),
        rows=tuple(
            (by, criterion, ", ".join(f"{one.symbol} ({one.location})" for one in alike), str(tests or "-"))
            for (by, criterion, tests), alike in groupby(seen.symbols, key=_row)
        ),
    )


def _traced(task: Task) -> list[Criterion]:
    return [criterion for criterion in task.criteria if any(not binding.rule for binding in criterion.code)]


def _unnoticed(criterion: Criterion, symbol: EmptiedSymbol) -> tuple[str, str]:
    """Return what is said of a symbol whatever of which tests pass, and what to do."""
    can = "can hold another value" if symbol.exchanged else "can be stubbed out"
    asked = symbol.tests - len(symbol.aside)
    tests = "its test still passes" if asked == 1 else f"all {asked} tests that run it still pass"
    fix = "Assert on what the code returns, raises or changes, or leave that code out of the criterion."
    if symbol.aside:
        one = symbol.aside[0]
        tests = f"all others that run it ({asked}) still pass ({one} fails in any copy, and could not be asked)"
        fix = f"Assert in the others, too, on what the code does, or let {one} pass in a copy."
    return f"{symbol.symbol} {can}, and {tests}: nothing of {criterion.id} is seen to depend on it.", fix


def _noticed(about: About, criterion: Criterion, own: list[EmptiedSymbol], task: Task, seen: EvidenceSet) -> Finding:
    """Say that the tests bound to a criterion notice, or why that is not known: open where they stand alone."""
    noticed = [symbol for symbol in own if symbol.noticed]
    if noticed:
        rest = next((f"; {symbol.symbol} was not judged: {symbol.why}" for symbol in own if not symbol.noticed), "")
        names = ", ".join(symbol.symbol for symbol in noticed)
        message = f"The tests of {criterion.id} fail without the body of {names}{rest}."
        count = f"{len(noticed)} of {len(own)} symbols"
        return about.passed(message, level=Level.ADVISORY, actual=count, unseen=bool(rest))
    run, missing = seen.get(PytestRun), "" if seen.get(EmptiedCode) else seen.why_missing(EmptiedCode)
    why = missing or next((symbol.why for symbol in own), "no passed test verifies it")
    message = f"Whether the tests of {criterion.id} notice that its code does nothing is not known: {why}."
    alone = run is not None and run.complete and not stands_beside(task, criterion)
    if (missing and alone) or any(not symbol.spared and not symbol.promise for symbol in own):
        fix = "Bind tests that call its code and pass in a copy of the project; faster ones, where time was up."
        return about.unknown(message, fix)
    about = about.but(level=Level.ADVISORY, severity=Severity.INFO)
    if missing or (not own and tests_of(task, criterion, run)):
        return about.unknown(message, follows=not missing)
    return about.not_asked(message if own else f"No test is bound to {criterion.id} that could notice its code.")


def _hollow(about: About, criterion: Criterion, own: Sequence[EmptiedSymbol]) -> Iterator[Finding]:
    """Name the test functions that notice nothing; they stand for nothing, whatever the others notice."""
    noticing = {test for symbol in own for test in symbol.noticing}
    for test in sorted({test for symbol in own for test in symbol.missing} - noticing):
        message = f"{test} still passes with the code of {criterion.id} stubbed out: alone it verifies nothing."
        named = about.but(subject=test, location=Location(path=test.split("::")[0]))
        fix = "Assert on what the code returns, raises or changes."
        yield named.failed(message, fix, level=Level.ADVISORY, severity=Severity.MEDIUM)


def _changed(evidence: EvidenceSet) -> Iterator[Finding]:
    seen = evidence.get(ChangedLines)
    about = About(rule="BL023", check="changed-lines", level=Level.ADVISORY, severity=Severity.INFO)
    if seen is None:
        why = evidence.why_missing(ChangedLines)
        yield about.unknown(f"Whether the tests notice mutants of the changed lines was not seen: {why}")
        return
    lines = [[*found] for _, found in groupby(seen.missed, key=lambda mutant: str(mutant.location))]
    yield from (_missed(about.but(severity=Severity.LOW), line) for line in lines)
    if not seen.missed:
        late = f"; there was no time for {seen.untried} more" if seen.untried else ""
        some = f"The tests noticed each of {counted(seen.tried, 'mutant')} of lines changed since {seen.base}{late}."
        none = f"No changed line of the implementation that tests run has a mutant (compared with {seen.base}){late}."
        yield about.passed(some) if seen.tried else about.not_asked(none)


def _missed(about: About, mutants: list[MissedMutant]) -> Finding:
    first, others = mutants[0], len(mutants) - 1
    beside = f" (and {counted(others, 'more mutant')} of the line)" if others else ""
    ran = first_of(sorted(first.tests), NAMED)
    message = f"{first.title} is noticed by no test that passes{beside}. It was run by {ran}."
    fix = "Add a test at this bound, or with a value that tells the two apart."
    facts = {"location": first.location, "subject": first.title, "actual": "survived"}
    return about.failed(message, fix, evidence="ChangedLines.json", **facts)


def _row(symbol: EmptiedSymbol) -> tuple[str, str, int]:
    """Return what noticed, for which criterion, and how many tests were asked."""
    by = "none" if symbol.unnoticed else f"not judged: {symbol.why}"
    return symbol.by or symbol.end.value if symbol.noticed else by, symbol.criterion, symbol.tests


CHECK = Check("faults", "business-logic", 30, (EmptiedCode, ChangedLines), plan, judge, page)
