"""Build and imports, judged on built evidence: what blocks, and what only costs score."""

import pytest
from building import a_task, evidence
from covering import a_module, started

from gates.check import Evidence, EvidenceSet
from gates.checks.startup import Built, Startup, judge, plan
from gates.model import Finding, Location, Outcome, Severity
from gates.render._views import causes

TASK = a_task()
P, F, U, N = Outcome.PASSED, Outcome.FAILED, Outcome.UNKNOWN, Outcome.NOT_APPLICABLE


def findings(rule: str, *pieces: Evidence) -> list[Finding]:
    everything = list(judge(TASK, evidence(*pieces)))
    assert {f.check for f in everything} == {check.id for check in plan(TASK)}
    return [f for f in everything if f.rule == rule]


def a_build(ending: Outcome, **changes: bool) -> Startup:
    return started(build=Built(ending=ending, backend="flit_core", problem="why", **changes))


BUILDS = {
    "built": (started(), P, Severity.INFO, False),
    "no package": (a_build(Outcome.NOT_APPLICABLE), N, Severity.INFO, False),
    "not seen": (a_build(Outcome.UNKNOWN), U, Severity.LOW, False),
    "failed": (a_build(Outcome.FAILED), F, Severity.HIGH, True),
    "failed to compile": (a_build(Outcome.FAILED, compiled=True), F, Severity.MEDIUM, False),
}


@pytest.mark.parametrize("case", BUILDS)
def test_build_blocks_only_where_it_was_seen_to_fail(case: str) -> None:
    seen, outcome, severity, blocks = BUILDS[case]
    (finding,) = findings("EX007", seen)
    assert (finding.outcome, finding.severity, finding.blocks) == (outcome, severity, blocks)
    assert not finding.leaves_open


@pytest.mark.parametrize("ending", [P, F, U])
def test_import_blocks_only_where_it_is_a_defect(ending: Outcome) -> None:
    (finding,) = findings("EX008", started(a_module(ending=ending, error="E: x")))
    assert (finding.outcome, finding.blocks, finding.leaves_open) == (ending, ending is F, False)


def test_modules_that_fail_at_one_line_are_one_cause() -> None:
    where = Location(path="pkg/__init__.py", line=3)
    why = "does not import by itself: E: x"
    modules = [a_module(f"pkg.m{i}", F, error="E: x", why=why, location=where) for i in range(3)]
    (cause,) = causes(findings("EX008", started(*modules)))
    assert cause.title == "pkg.m0 does not import by itself: E: x (and 2 more like it)"


def test_module_that_was_not_reached_is_unknown() -> None:
    (finding,) = findings("EX008", started(problem="2 modules were not reached"))
    assert (finding.outcome, finding.leaves_open) == (U, False)


def test_nothing_seen_is_unknown_and_asks_for_nothing() -> None:
    found = list(judge(TASK, EvidenceSet()))
    assert {f.outcome for f in found} == {U}
    assert not any(f.blocks or f.leaves_open for f in found)
