"""Whether tests notice that code of a criterion does nothing, and mutants of the lines that a change alters."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from gates.check import Check, EvidenceSet
from gates.checks.faults.collect import ChangedLines, MissedMutant
from gates.evidence.tests.pytest_run import PytestRun
from gates.model import Finding, Level, Location, Outcome, Planned, RuleText, Severity
from gates.proving.emptied_code import AskedTest, EmptiedCode, EmptiedSymbol
from gates.report import Section
from gates.task.task import Criterion, Task, stands_beside
from gates.words import counted, first_of

RAW = "EmptiedCode.json"
SHOWN, NAMED = 10, 3
RULES = (
    RuleText(
        id="BL016",
        title="The tests of a criterion notice when its code is stubbed out",
        meaning="Each symbol is stubbed out, or returns something else. Where no test fails, "
        "the criterion is inconclusive. A test function that notices nothing is named.",
    ),
    RuleText(
        id="BL023",
        title="The tests kill the mutants of changed lines",
        meaning="Where there is a base, mutants of the changed lines run against the tests that execute them. "
        "One that no test kills is listed. It never blocks.",
    ),
)


def plan(task: Task) -> Iterator[Planned]:
    """Plan a check for each criterion that is traced to symbols or patterns."""
    for criterion in _traced(task):
        title = f"The tests of {criterion.id} notice when its code is stubbed out"
        yield Planned(
            id=f"emptied:{criterion.id}", title=title, level=Level.ADVISORY, criterion=criterion.id, scored=False
        )
    title = "The tests kill the mutants of changed lines"
    yield Planned(id="changed-lines", title=title, level=Level.ADVISORY, scored=False)


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Leave open each criterion whose tests pass without its code; what could not be tried is only told."""
    seen, run = evidence.get(EmptiedCode), evidence.get(PytestRun)
    ran = run is not None and run.complete
    for criterion in _traced(task):
        yield from _hollow(criterion, [test for test in seen.tests if test.criterion == criterion.id] if seen else ())
        own = [symbol for symbol in seen.symbols if symbol.criterion == criterion.id] if seen else []
        # of promises BL001 speaks
        pseudo = [symbol for symbol in own if symbol.unnoticed and not symbol.promise]
        yield from (_unnoticed(criterion, symbol) for symbol in pseudo)
        uncalled = [each for each in own if each.uncalled and any(other.noticed for other in own)]
        yield from (_uncalled(criterion, symbol) for symbol in uncalled)
        if not pseudo and not uncalled:
            alone = ran and not stands_beside(task, criterion)
            yield _told(criterion, own, "" if seen else evidence.why_missing(EmptiedCode), alone=alone)
    yield from _changed(evidence)


def page(_task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell of each emptied symbol which test noticed."""
    seen = evidence.get(EmptiedCode)
    if seen is None or not seen.symbols:
        return
    yield Section(
        title="Tests Against Stubbed Code",
        text="Where tests alone verify a criterion, its symbols are stubbed out in a copy: one of its tests has to "
        "fail.",
        columns=("Noticed by", "Criterion", "Symbol", "Tests asked"),
        rows=tuple(
            (by, criterion, ", ".join(f"{one.symbol} ({one.location})" for one in alike), str(tests or "-"))
            for (by, criterion, tests), alike in groupby(seen.symbols, key=_row)
        ),
    )


def _traced(task: Task) -> list[Criterion]:
    return [criterion for criterion in task.criteria if any(not binding.rule for binding in criterion.code)]


def _about(criterion: Criterion, outcome: Outcome, message: str, **more: object) -> Finding:
    said = {"criterion": criterion.id, "outcome": outcome, "message": message, "evidence": RAW, **more}
    return Finding.model_validate({"rule": "BL016", "check": f"emptied:{criterion.id}", **said})


def _open(criterion: Criterion, symbol: EmptiedSymbol, message: str, remediation: str) -> Finding:
    """Say what leaves a criterion open: its tests would pass whatever a symbol does."""
    said = {"level": criterion.level, "location": symbol.location, "subject": symbol.symbol, "remediation": remediation}
    return _about(criterion, Outcome.UNKNOWN, message, expected="a test that notices", **said)


def _uncalled(criterion: Criterion, symbol: EmptiedSymbol) -> Finding:
    message = f"The tests of {criterion.id} pass without calling {symbol.symbol}."
    return _open(criterion, symbol, message, "Bind tests that call it, or leave it out of the criterion.")


def _unnoticed(criterion: Criterion, symbol: EmptiedSymbol) -> Finding:
    can = "can hold another value" if symbol.exchanged else "can be stubbed out"
    asked = symbol.tests - len(symbol.aside)
    tests = "its test still passes" if asked == 1 else f"all {asked} tests that run it still pass"
    remedy = "Assert on what the code returns, raises or changes, or leave that code out of the criterion."
    if symbol.aside:
        others = (
            "the one other test that runs it still passes"
            if asked == 1
            else f"all {asked} others that run it still pass"
        )
        tests = f"{others} ({symbol.aside[0]} fails in a copy of the project whatever it does, and could not be asked)"
        remedy = (
            f"Assert in the others, too, on what the code does, or let {symbol.aside[0]} pass in a copy of the project."
        )
    message = f"{symbol.symbol} {can}, and {tests}: nothing of {criterion.id} is seen to depend on it."
    return _open(criterion, symbol, message, remedy)


def _told(criterion: Criterion, own: list[EmptiedSymbol], missing: str, *, alone: bool) -> Finding:
    """Say that the tests of a criterion notice, or why that is not known: open where they stand for it `alone`."""
    noticed = [symbol for symbol in own if symbol.noticed]
    if noticed:
        rest = next((f"; {symbol.symbol} was not judged: {symbol.why}" for symbol in own if not symbol.noticed), "")
        names = ", ".join(symbol.symbol for symbol in noticed)
        message = f"The tests of {criterion.id} fail without the body of {names}{rest}."
        actual = f"{len(noticed)} of {len(own)} symbols"
        return _about(criterion, Outcome.PASSED, message, level=Level.ADVISORY, actual=actual)
    why = missing or next((symbol.why for symbol in own), "no passed test verifies it")
    message = f"Whether the tests of {criterion.id} notice that its code does nothing is not known: {why}."
    if (missing and alone) or any(not symbol.spared and not symbol.promise for symbol in own):
        advice = "Bind tests that call its code and pass in a copy of the project; faster ones, where time was up."
        return _about(criterion, Outcome.UNKNOWN, message, level=criterion.level, remediation=advice)
    outcome = Outcome.UNKNOWN if missing else Outcome.NOT_APPLICABLE
    return _about(criterion, outcome, message, level=Level.ADVISORY, severity=Severity.INFO)


def _hollow(criterion: Criterion, own: Sequence[AskedTest]) -> Iterator[Finding]:
    """Name the test functions that notice nothing; they stand for nothing, whatever the others notice."""
    for test in [each for each in own if not each.noticed and not each.why]:
        message = f"{test.test} passes whatever the code of {criterion.id} returns or does: it verifies nothing."
        where, facts = Location(path=test.test.split("::")[0]), {"level": Level.ADVISORY, "severity": Severity.MEDIUM}
        advice = "Assert on what the code returns, raises or changes."
        yield _about(criterion, Outcome.FAILED, message, remediation=advice, subject=test.test, location=where, **facts)


def _changed(evidence: EvidenceSet) -> Iterator[Finding]:
    """Name each mutant that the tests that ran it did not notice."""
    seen = evidence.get(ChangedLines)
    if seen is None:
        why = evidence.why_missing(ChangedLines)
        yield _of_lines(Outcome.UNKNOWN, f"Whether the tests notice mutants of the changed lines was not seen: {why}")
        return
    lines = [[*found] for _, found in groupby(seen.missed, key=lambda mutant: str(mutant.location))]
    yield from map(_missed, lines[:SHOWN])
    if more := lines[SHOWN:]:
        yield _of_lines(Outcome.FAILED, f"Mutants of {counted(len(more), 'more line')} survived (ChangedLines.json).")
    if not seen.missed:
        late = f"; there was no time for {seen.untried} more" if seen.untried else ""
        some = f"The tests noticed each of {counted(seen.tried, 'mutant')} of the lines changed since {seen.base}{late}"
        none = f"No changed line of the implementation that tests run has a mutant (compared with {seen.base}){late}"
        yield _of_lines(Outcome.PASSED if seen.tried else Outcome.NOT_APPLICABLE, f"{some if seen.tried else none}.")


def _missed(mutants: list[MissedMutant]) -> Finding:
    """Name the first of the mutants of a line that no test notices, and the tests that ran it."""
    first, others = mutants[0], len(mutants) - 1
    beside = f" (and {counted(others, 'more mutant')} of the line)" if others else ""
    message = f"{first.title} is noticed by no test{beside}. It was run by {first_of(first.tests, NAMED)}."
    advice = "Add a test at this bound, or with a value that tells the two apart."
    said = {"location": first.location, "subject": first.title, "actual": "survived", "remediation": advice}
    return _of_lines(Outcome.FAILED, message, evidence="ChangedLines.json", **said)


def _of_lines(outcome: Outcome, message: str, **more: object) -> Finding:
    severity = Severity.LOW if outcome is Outcome.FAILED else Severity.INFO
    said = {"outcome": outcome, "message": message, "severity": severity, "level": Level.ADVISORY, **more}
    return Finding.model_validate({"rule": "BL023", "check": "changed-lines", **said})


def _row(symbol: EmptiedSymbol) -> tuple[str, str, int]:
    """Return what noticed, for which criterion, and how many tests were asked."""
    by = "none" if symbol.unnoticed else f"not judged: {symbol.why}"
    return symbol.by or symbol.end.value if symbol.noticed else by, symbol.criterion, symbol.tests


CHECK = Check(
    name="faults",
    gate="business-logic",
    order=30,
    rules=RULES,
    uses=(EmptiedCode, ChangedLines),
    plan=plan,
    judge=judge,
    page=page,
)
