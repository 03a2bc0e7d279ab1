"""Whether tests notice that code of a criterion does nothing, and mutants of the lines that a change alters."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from gates.check import About, Check, EvidenceSet, about_criterion, beside
from gates.evidence.tests.pytest_run import PytestRun, tests_of
from gates.model import Finding, Level, Location, Planned, Severity
from gates.proving.changed_lines import ChangedLines, MissedMutant
from gates.proving.emptied_code import EmptiedCode, EmptiedSymbol
from gates.report import Section
from gates.task.task import Criterion, Task, stands_beside
from gates.words import counted, first_of

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
        pseudo = [symbol for symbol in own if symbol.unnoticed and not symbol.promise]  # of promises BL001 speaks
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
    if (seen := evidence.get(EmptiedCode)) is None or not seen.symbols:
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
    if noticed := [symbol for symbol in own if symbol.noticed]:
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
