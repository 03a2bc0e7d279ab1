"""The part of the business logic gate on emptied code: would the tests of a criterion pass without it?"""

import shlex
from collections.abc import Iterator

from gates.check import EvidenceSet
from gates.evidence.emptied_code import AROUND, UNCALLED, EmptiedCode, EmptiedSymbol
from gates.evidence.executed_lines import ExecutedLines
from gates.model import Finding, Level, Location, Outcome, Planned, RuleText, Severity
from gates.report import Section
from gates.stages._coverage import ran_at_import
from gates.task.task import Criterion, Task

RAW = "EmptiedCode.json"
RULES = (
    RuleText(
        id="BL016",
        title="The tests of a criterion notice that its code does nothing",
        meaning="Each symbol that a criterion is traced to is emptied in a copy, its body taken away (of a pattern the "
        "functions that hold it), and the tests of the criterion run again. Where all of them pass, and the emptied "
        "code was seen to be called, they would pass whatever that code does, and leave the criterion open (in the "
        "literature such code is called pseudo-tested). A constant, a field or a class of fields alone has other "
        "values in the copy. What runs at import alone is emptied there, too, and some test has to fail; what is "
        "compiled has to be called. It is not judged where something else stands for the criterion, too, where there "
        "is nothing to take away, or where one of the tests is skipped in a copy. Tests that fail in a copy without "
        "any change are left aside and the others asked; where the tests of the criterion, run by themselves, fail in "
        "the project, too, they depend on other tests, which leaves it open. `gates prove` "
        "asks more: it puts many small faults in.",
    ),
)


def plan(task: Task) -> Iterator[Planned]:
    """Plan a check for each criterion that is traced to symbols or patterns."""
    for criterion in _traced(task):
        title = f"The tests of {criterion.id} notice that its code does nothing"
        yield Planned(
            id=f"emptied:{criterion.id}", title=title, level=Level.ADVISORY, criterion=criterion.id, scored=False
        )


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Leave open each criterion whose tests pass without its code; what could not be tried is only told."""
    seen = evidence.get(EmptiedCode)
    for criterion in _traced(task):
        own = [symbol for symbol in seen.symbols if symbol.criterion == criterion.id] if seen else []
        dependent = {symbol.alone: symbol for symbol in own if symbol.alone}
        yield from (_alone(criterion, symbol) for symbol in dependent.values())
        # of promises BL001 speaks
        pseudo = [symbol for symbol in own if symbol.unnoticed and not symbol.promise and not symbol.alone]
        yield from (_unnoticed(criterion, symbol) for symbol in pseudo)
        noticed = {symbol.symbol.removeprefix(AROUND) for symbol in own if symbol.noticed}
        unheard = [name for name in ran_at_import(task, criterion, evidence) if name not in noticed]
        uncalled = _compiled_and_uncalled(own, evidence.get(ExecutedLines))
        if pseudo or dependent:
            continue
        if unheard:
            yield _at_import(criterion, unheard, next((one.why for one in own if one.symbol in unheard), ""))
        elif uncalled:
            yield _uncalled(criterion, uncalled)
        else:
            yield _told(criterion, own, "" if seen else evidence.why_missing(EmptiedCode))


def describe(_task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell of each emptied symbol which test noticed."""
    seen = evidence.get(EmptiedCode)
    if seen is None or not seen.symbols:
        return
    yield Section(
        title="Tests Without the Code That They Stand For",
        text="Each symbol was emptied in a copy, and the tests of its criterion ran again: one of them has to notice.",
        columns=("Criterion", "Symbol", "Tests asked", "Noticed by"),
        rows=tuple(
            (one.criterion, f"{one.symbol} ({one.location})", str(one.tests) if one.tests else "-", _noticed_by(one))
            for one in seen.symbols
        ),
    )  # fmt: skip


def _traced(task: Task) -> list[Criterion]:
    return [criterion for criterion in task.criteria if any(not binding.rule for binding in criterion.code)]


def _unnoticed(criterion: Criterion, symbol: EmptiedSymbol) -> Finding:
    head = "With other values in" if symbol.exchanged else "Without the body of"
    asked = symbol.tests - len(symbol.aside)
    tests = "its test passes" if asked == 1 else f"all {asked} tests that run it pass"
    remedy = "Assert on what it returns, raises or changes, or leave it out of the criterion."
    if symbol.aside:
        others = "the one other test that runs it passes" if asked == 1 else f"all {asked} other tests that run it pass"
        tests = f"{others} ({symbol.aside[0]} fails in a copy of the project whatever it does, and could not be asked)"
        remedy = f"Assert in the others, too, on what it does, or let {symbol.aside[0]} pass in a copy of the project."
    return Finding(
        rule="BL016", check=f"emptied:{criterion.id}", criterion=criterion.id, level=criterion.level,
        outcome=Outcome.UNKNOWN, severity=Severity.HIGH if criterion.level is Level.MUST else Severity.MEDIUM,
        location=symbol.location, subject=symbol.symbol, evidence=RAW, expected="a test that notices",
        actual="nothing noticed", message=f"{head} {symbol.symbol} {tests}: nothing of {criterion.id} "
        "is seen to depend on it.", impact="The tests would pass whatever that code does.",
        remediation=remedy,
    )  # fmt: skip


def _alone(criterion: Criterion, symbol: EmptiedSymbol) -> Finding:
    return Finding(
        rule="BL016", check=f"emptied:{criterion.id}", criterion=criterion.id, level=criterion.level,
        outcome=Outcome.UNKNOWN, severity=Severity.HIGH if criterion.level is Level.MUST else Severity.MEDIUM,
        location=Location(path=symbol.alone.split("::")[0]), subject=symbol.alone, evidence=RAW,
        expected="passes without other tests", actual="fails without other tests",
        message=f"{symbol.alone} fails where the tests of {criterion.id} run without the others: it depends on what "
        "other tests leave behind.", impact="What it says holds only after other tests have run.",
        remediation="Set up in the test, or in a fixture, what it needs.",
        command=f"python -m pytest {shlex.quote(symbol.alone)}",
    )  # fmt: skip


def _at_import(criterion: Criterion, names: list[str], why: str) -> Finding:
    return Finding(
        rule="BL016", check=f"emptied:{criterion.id}", criterion=criterion.id, level=criterion.level,
        outcome=Outcome.UNKNOWN, severity=Severity.HIGH if criterion.level is Level.MUST else Severity.MEDIUM,
        subject=names[0], evidence=RAW, expected="a test that runs it, or misses its effects", actual="not seen",
        message=f"{', '.join(names)} ran at import, or between tests, and no test of {criterion.id} was seen to miss "
        f"what it does there{f': {why}' if why else ''}.",
        remediation="Let the tests call it themselves, or assert on what it leaves behind.",
    )  # fmt: skip


def _compiled_and_uncalled(own: list[EmptiedSymbol], seen: ExecutedLines | None) -> EmptiedSymbol | None:
    """Return a symbol of which no line can be seen running, since it is compiled, and that no test calls in a copy."""
    for symbol in own if seen else ():
        if seen and symbol.why == UNCALLED and any(one.compiled for one in seen.within(symbol.location)):
            return symbol
    return None


def _uncalled(criterion: Criterion, symbol: EmptiedSymbol) -> Finding:
    return Finding(
        rule="BL016", check=f"emptied:{criterion.id}", criterion=criterion.id, level=criterion.level,
        outcome=Outcome.UNKNOWN, severity=Severity.HIGH if criterion.level is Level.MUST else Severity.MEDIUM,
        location=symbol.location, subject=symbol.symbol, evidence=RAW, expected="a test that calls it",
        actual="not called", message=f"{symbol.symbol} is compiled, so that no line of it is seen running, and the "
        f"tests of {criterion.id} do not call it in a copy: nothing shows that it works.",
        remediation="Bind tests that call it.",
    )  # fmt: skip


def _told(criterion: Criterion, own: list[EmptiedSymbol], missing: str) -> Finding:
    """Say that the tests of a criterion notice, or why that was not judged."""
    facts = {"rule": "BL016", "check": f"emptied:{criterion.id}", "criterion": criterion.id, "evidence": RAW,
             "level": Level.ADVISORY, "severity": Severity.INFO}  # fmt: skip
    noticed = [symbol for symbol in own if symbol.noticed]
    if noticed:
        rest = next((f"; {symbol.symbol} was not judged: {symbol.why}" for symbol in own if not symbol.noticed), "")
        names = ", ".join(symbol.symbol for symbol in noticed)
        return Finding.model_validate({
            **facts, "outcome": Outcome.PASSED, "actual": f"{len(noticed)} of {len(own)} symbols",
            "message": f"The tests of {criterion.id} fail without the body of {names}{rest}.",
        })  # fmt: skip
    why = missing or next((symbol.why for symbol in own), "no passed test stands for it")
    return Finding.model_validate({
        **facts, "outcome": Outcome.NOT_APPLICABLE, "actual": "not judged" if missing or own else "no test passed",
        "message": f"Whether the tests of {criterion.id} notice that its code does nothing was not judged: {why}.",
    })  # fmt: skip


def _noticed_by(symbol: EmptiedSymbol) -> str:
    if symbol.noticed:
        return symbol.by or symbol.end.value
    return "**none**" if symbol.unnoticed else f"not judged: {symbol.why}"
