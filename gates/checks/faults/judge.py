"""Whether the tests of a criterion notice that its code does nothing, and which of them do not."""

from collections.abc import Iterator, Sequence

from gates.check import Check, EvidenceSet
from gates.evidence.tests.pytest_run import PytestRun
from gates.model import Finding, Level, Location, Outcome, Planned, RuleText, Severity
from gates.proving.emptied_code import AskedTest, EmptiedCode, EmptiedSymbol
from gates.report import Section
from gates.task.task import Criterion, Task, stands_beside

RAW = "EmptiedCode.json"
RULES = (
    RuleText(
        id="BL016",
        title="The tests of a criterion notice when its code is stubbed out",
        meaning="Each symbol is stubbed out, or returns something else. Where no test fails, "
        "the criterion is inconclusive. A test function that notices nothing is named.",
    ),
)


def plan(task: Task) -> Iterator[Planned]:
    """Plan a check for each criterion that is traced to symbols or patterns."""
    for criterion in _traced(task):
        title = f"The tests of {criterion.id} notice when its code is stubbed out"
        yield Planned(
            id=f"emptied:{criterion.id}", title=title, level=Level.ADVISORY, criterion=criterion.id, scored=False
        )


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


def page(_task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell of each emptied symbol which test noticed."""
    seen = evidence.get(EmptiedCode)
    if seen is None or not seen.symbols:
        return
    yield Section(
        title="Tests Against Stubbed Code",
        text="Each symbol was emptied in a copy, and the tests of its criterion ran again: one of them has to notice.",
        columns=("Criterion", "Noticed by", "Symbol", "Tests asked"),
        rows=tuple(
            (one.criterion, _noticed_by(one), f"{one.symbol} ({one.location})", str(one.tests) if one.tests else "-")
            for one in seen.symbols
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
    head = "With other values in" if symbol.exchanged else "Without the body of"
    asked = symbol.tests - len(symbol.aside)
    tests = "its test passes" if asked == 1 else f"all {asked} tests that run it pass"
    remedy = "Assert on what it returns, raises or changes, or leave it out of the criterion."
    if symbol.aside:
        others = "the one other test that runs it passes" if asked == 1 else f"all {asked} other tests that run it pass"
        tests = f"{others} ({symbol.aside[0]} fails in a copy of the project whatever it does, and could not be asked)"
        remedy = f"Assert in the others, too, on what it does, or let {symbol.aside[0]} pass in a copy of the project."
    message = f"{head} {symbol.symbol} {tests}: nothing of {criterion.id} is seen to depend on it."
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


def _noticed_by(symbol: EmptiedSymbol) -> str:
    if symbol.noticed:
        return symbol.by or symbol.end.value
    return "**none**" if symbol.unnoticed else f"not judged: {symbol.why}"


CHECK = Check(
    name="faults", gate="business-logic", order=30, rules=RULES, uses=(EmptiedCode,), plan=plan, judge=judge, page=page
)
