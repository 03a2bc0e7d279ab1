"""Mutants of changed lines that no test noticed: told on the page, and never in the way of a merge."""

from collections.abc import Iterator
from itertools import groupby

from gates.check import Check, EvidenceSet
from gates.checks.changed_lines.collect import ChangedLines, MissedMutant
from gates.model import Finding, Level, Outcome, Planned, RuleText, Severity
from gates.task.task import Task
from gates.words import counted, first_of

CHECK_ID, SHOWN, NAMED = "changed-lines", 10, 3
RULES = (
    RuleText(
        id="BL023",
        title="The tests kill the mutants of changed lines",
        meaning="Where there is a base, mutants of the changed lines run against the tests that execute them. "
        "One that no test kills is listed. It never blocks.",
    ),
)


def plan(_task: Task) -> Iterator[Planned]:
    """Plan one look at the changed lines, which has no share of the score."""
    yield Planned(id=CHECK_ID, title="The tests kill the mutants of changed lines", level=Level.ADVISORY, scored=False)


def judge(_task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Name each mutant that the tests that ran it did not notice."""
    seen = evidence.get(ChangedLines)
    if seen is None:
        why = evidence.why_missing(ChangedLines)
        yield _told(Outcome.UNKNOWN, f"Whether the tests notice mutants of the changed lines was not seen: {why}")
        return
    lines = [[*found] for _, found in groupby(seen.missed, key=lambda mutant: str(mutant.location))]
    yield from map(_missed, lines[:SHOWN])
    if more := lines[SHOWN:]:
        yield _told(Outcome.FAILED, f"Mutants of {counted(len(more), 'more line')} survived (ChangedLines.json).")
    if not seen.missed:
        late = f"; there was no time for {seen.untried} more" if seen.untried else ""
        some = f"The tests noticed each of {counted(seen.tried, 'mutant')} of the lines changed since {seen.base}{late}"
        none = f"No changed line of the implementation that tests run has a mutant (compared with {seen.base}){late}"
        yield _told(Outcome.PASSED if seen.tried else Outcome.NOT_APPLICABLE, f"{some if seen.tried else none}.")


def _missed(mutants: list[MissedMutant]) -> Finding:
    """Name the first of the mutants of a line that no test notices, and the tests that ran it."""
    first, others = mutants[0], len(mutants) - 1
    beside = f" (and {counted(others, 'more mutant')} of the line)" if others else ""
    message = f"{first.title} is noticed by no test{beside}. It was run by {first_of(first.tests, NAMED)}."
    advice = "Add a test at this bound, or with a value that tells the two apart."
    said = {"location": first.location, "subject": first.title, "actual": "survived", "remediation": advice}
    return _told(Outcome.FAILED, message, evidence="ChangedLines.json", **said)


def _told(outcome: Outcome, message: str, **more: object) -> Finding:
    severity = Severity.LOW if outcome is Outcome.FAILED else Severity.INFO
    said = {"outcome": outcome, "message": message, "severity": severity, "level": Level.ADVISORY, **more}
    return Finding.model_validate({"rule": "BL023", "check": CHECK_ID, **said})


CHECK = Check(
    name="changed_lines", gate="business-logic", order=135, rules=RULES, uses=(ChangedLines,), plan=plan, judge=judge
)
