"""The execution gate, judged on built evidence: what is believed, what fails, what stays open."""

import shlex
from dataclasses import replace
from typing import Any

import pytest
from building import a_process, a_record, a_run, a_task, all_evidence, entries, evidence

from gates.check import About, Check, EvidenceSet
from gates.checks.entry_points import EntryPointRuns, EntryRun
from gates.child.process import Stream
from gates.criteria import decide
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import CollectError, LeftOut, Out, TestOutcome
from gates.model import Decision, Finding, Level, Location, Outcome, Severity
from gates.render._views import causes, folded
from gates.stages import EXECUTION as GATE
from gates.words import grouped

TASK = a_task()
BARE = a_task(entry_points=[])


def findings(run: PytestRun) -> dict[str, list[Finding]]:
    return grouped(GATE.judge(BARE, evidence(run)), lambda finding: finding.rule)


def outcomes(run: PytestRun) -> dict[str, Outcome]:
    return {rule: one.outcome for rule, (one, *_) in findings(run).items()}


P, F, U = Outcome.PASSED, Outcome.FAILED, Outcome.UNKNOWN


def test_good_run_passes_every_check() -> None:
    seen = list(GATE.judge(TASK, all_evidence(TASK)))
    assert {f.outcome for f in seen} <= {P, Outcome.NOT_APPLICABLE}
    assert {f.check for f in seen if f.outcome is P} >= {"suite", "tests", "left-out", "entry:0"}
    assert [f.check for f in seen] == [check.id for check in GATE.plan(TASK)]


@pytest.mark.parametrize("end", [TestOutcome.FAILED, TestOutcome.ERROR])
def test_bad_test_fails_at_its_crash_with_a_command(end: TestOutcome) -> None:
    crash = Location(path="pkg/core.py", line=2)
    bad = a_record(end, id="tests/test_core.py::test_x[a b]", message="Boom\nmore", crash=crash)
    (finding,) = findings(a_run(a_record(), bad))["EX002"]
    assert (finding.outcome, finding.severity, str(finding.location)) == (F, Severity.HIGH, "pkg/core.py:2")
    assert finding.message == f"tests/test_core.py::test_x[a b] {end.value}: Boom"
    assert finding.command == "python -m pytest 'tests/test_core.py::test_x[a b]'"


def test_command_of_a_hostile_test_runs_nothing_else() -> None:
    name = "tests/t.py::test_x[$(touch x); 'y' \"z\" \n`w` & é]"
    (finding,) = findings(a_run(a_record(TestOutcome.FAILED, id=name)))["EX002"]
    assert shlex.split(finding.command) == ["python", "-m", "pytest", name]


UNBELIEVED: dict[str, tuple[dict[str, Any], Outcome]] = {
    "signal": ({"process": a_process(None, signal="SIGSEGV")}, F),
    "time limit": ({"process": a_process(None, timed_out=True)}, U),
    "collection error": ({"collect_errors": (CollectError(id="t.py", message="x"),), "process": a_process(2)}, F),
    "unheard-of code": ({"process": a_process(77)}, U),
    "disagreement": ({"disagreements": ("they differ",)}, U),
    "nothing collected": ({"tests": (), "process": a_process(5)}, U),
    "no test and yet 0": ({"tests": ()}, U),
    "exit code 1 of nothing": ({"process": a_process(1)}, F),
}


@pytest.mark.parametrize("case", UNBELIEVED)
def test_run_that_cannot_be_believed_passes_nothing(case: str) -> None:
    changes, expected = UNBELIEVED[case]
    seen = outcomes(a_run(**changes))
    assert seen["EX001"] is expected
    decision = decide(GATE.judge(BARE, evidence(a_run(**changes)))).decision
    assert decision is (Decision.BLOCK if expected is F else Decision.INCONCLUSIVE)
    if case != "exit code 1 of nothing":
        assert seen["EX002"] is U


def left_out(*, by_mark: bool) -> LeftOut:
    where = Location(path="tests/test_core.py", line=9)
    return LeftOut(id="tests/test_core.py::test_slow", location=where, how=Out.DESELECTED, doubted=not by_mark)


def test_long_lists_are_cut_and_still_fail() -> None:
    run = a_run(*(a_record(TestOutcome.FAILED, id=f"tests/test_core.py::test_{i}") for i in range(60)))
    seen = findings(run)["EX002"]
    assert [f.outcome for f in seen] == [F] * 51
    assert seen[-1].message == "10 more findings are like these; the raw evidence has all."
    assert causes([f.model_copy(update={"location": None}) for f in seen])[0].title.endswith("(and 59 more like it)")
    assert folded(seen)[0][1].endswith("(and 59 more like it)")


def test_a_long_list_hides_no_criterion() -> None:
    about = About(rule="BL022", check="base-tests", criterion="AC1")
    told = [*(about.failed(f"{i}", "") for i in range(60)), about.but(criterion="AC2").failed("one", "")]
    gate = replace(GATE, checks=(Check("base_tests", "execution", 1, judge=lambda _task, _evidence: told),))
    assert [f.criterion for f in gate.judge(BARE, EvidenceSet())].count("AC2") == 1


def test_deselected_test_leaves_the_suite_open() -> None:
    (finding,) = findings(a_run(left_out=(left_out(by_mark=False),)))["EX001"]
    assert (finding.outcome, finding.level) == (U, Level.MUST)
    assert "test_slow" in finding.message


def test_failed_test_in_an_unbelieved_run_still_fails() -> None:
    assert outcomes(a_run(a_record(TestOutcome.FAILED), process=a_process(None, timed_out=True)))["EX002"] is F


@pytest.mark.parametrize("end", [TestOutcome.SKIPPED, TestOutcome.XFAILED, TestOutcome.XPASSED])
def test_test_that_was_left_out_proves_nothing(end: TestOutcome) -> None:
    (finding,) = findings(a_run(a_record(), a_record(end, id="t::left", message="why")))["EX003"]
    assert (finding.outcome, finding.level, finding.subject) == (U, Level.ADVISORY, "t::left")
    assert outcomes(a_run(a_record(end)))["EX002"] is U


def entry(end: Any, crash: Location | None = None) -> list[Finding]:
    return [f for f in GATE.judge(TASK, all_evidence(TASK, entries(TASK, end, crash=crash))) if f.rule == "EX004"]


def test_entry_point_speaks_for_itself_and_for_its_criteria() -> None:
    whole, criterion = entry(a_process())
    assert (whole.check, whole.criterion, whole.outcome) == ("entry:0", None, P)
    assert (criterion.check, criterion.criterion, criterion.outcome) == ("entry:0:AC1", "AC1", P)
    assert whole.fingerprint != criterion.fingerprint


@pytest.mark.parametrize("end", [a_process(1), a_process(3), a_process(None, signal="SIGKILL")], ids=str)
def test_entry_point_that_crashes_is_critical_and_located(end: Any) -> None:
    for finding in entry(end, Location(path="pkg/core.py", line=7)):
        assert (finding.outcome, finding.severity, str(finding.location)) == (F, Severity.CRITICAL, "pkg/core.py:7")


def test_entry_point_that_hangs_is_unknown() -> None:
    assert {f.outcome for f in entry(a_process(None, timed_out=True))} == {U}


def test_entry_point_that_could_not_start_is_unknown() -> None:
    runs = EntryPointRuns(how="", runs=(EntryRun(index=0, name="x", process=None, problem="No such file"),))
    seen = [f for f in GATE.judge(TASK, evidence(a_run(), runs)) if f.rule == "EX004"]
    assert {f.outcome for f in seen} == {U}
    assert all("No such file" in f.message for f in seen)


def test_level_of_a_criterion_goes_with_its_entry_point() -> None:
    task = a_task(criteria=[c.model_dump(by_alias=True) | {"level": "advisory"} for c in TASK.criteria])
    _, finding = [f for f in GATE.judge(task, EvidenceSet()) if f.rule == "EX004"]
    assert finding.level is Level.ADVISORY


def test_suite_whose_every_subtest_was_skipped_proves_nothing() -> None:
    run = a_run(a_record(subtests_left_out=2))
    (finding,) = [f for f in GATE.judge(a_task(), all_evidence(a_task(), run)) if f.rule == "EX002"]
    assert (finding.outcome, finding.actual) == (Outcome.UNKNOWN, "0 of 1 passed")


def test_one_cause_that_keeps_files_from_being_collected_is_one_finding_with_what_to_install() -> None:
    said = "E   ModuleNotFoundError: No module named 'pkg'"
    errors = [CollectError(id=f"tests/test_{i}.py", message=said) for i in "abc"]
    differ = CollectError(id="gw1", message="Different tests were collected\n--- gw0\n\nTo see why, see the docs")
    (told,) = findings(a_run(collect_errors=(differ,), process=a_process(2)))["EX001"]
    assert told.message == "gw1 could not be collected: Different tests were collected --- gw0 To see why, see the docs"
    found = findings(a_run(collect_errors=(*errors, CollectError(id="t.py", message="E  boom")), process=a_process(2)))
    first, other = found["EX001"]
    assert "tests/test_a.py and 2 more files could not be collected: ModuleNotFoundError" in first.message
    assert "pip install -e ." in first.remediation and "tests/test_c.py" in first.impact
    assert other.message == "t.py could not be collected: boom"
    assert other.remediation == "Fix what keeps it from being collected."


@pytest.mark.parametrize(
    ("wrote", "fix"),
    [
        ("/usr/bin/python3: No module named pytest\n", "Install pytest and pytest-json-report"),
        (
            "ERROR: x\npython -m pytest: error: unrecognized arguments: --json-report a\n  rootdir: /p\n",
            "Install pytest-j",
        ),
    ],
)
def test_what_the_interpreter_lacks_to_run_tests_is_named(wrote: str, fix: str) -> None:
    process = a_process(4)
    stderr = process.stderr.model_copy(update={"tail": wrote})
    (finding,) = findings(a_run(process=process.model_copy(update={"stderr": stderr})))["EX001"]
    assert finding.remediation.startswith(fix)
    assert "rootdir" not in finding.message


INTERNAL = """\
INTERNALERROR> Traceback (most recent call last):
INTERNALERROR>   File "conftest.py", line 2, in pytest_sessionstart
INTERNALERROR>     raise RuntimeError("...")
INTERNALERROR> RuntimeError: the option is unset.
INTERNALERROR>   It will take another value.
"""
LIMIT = "TOTAL 8 1 88%\nFAIL Required test coverage of 100% not reached.\n=== 2 passed in 0.53s ==="


@pytest.mark.parametrize(("code", "said", "named"), [(3, INTERNAL, "3: Runtime"), (1, LIMIT, "failed: FAIL Required")])
def test_end_of_a_run_is_named_by_its_cause_not_by_what_was_written_last(code: int, said: str, named: str) -> None:
    streams = [Stream(bytes=len(text), tail=text) for text in (said, "a warning")]
    (finding,) = findings(a_run(process=a_process(code, stdout=streams[0], stderr=streams[1])))["EX001"]
    assert named in finding.message
