"""Why no test caught a crash of an entry point, from what the tests executed."""

import pytest
from building import a_process, a_record, a_run, a_task, all_evidence, entries, evidence
from covering import TEST, a_function, executed

from gates.check import Evidence, EvidenceSet
from gates.checks.entry_points import EntryPointRuns, EntryRun, judge, page, why_uncaught
from gates.evidence.lines.executed_lines import ExecutedLines
from gates.evidence.tests.test_records import TestOutcome
from gates.model import Location, Outcome, Severity

CRASH = Location(path="pkg/core.py", line=2)
FINE = "which did not fail: none of them gives it what this entry point does"
WHYS: dict[str, tuple[tuple[Evidence, ...], str]] = {
    "no test calls it": ((executed(ran=()),), "`double` (pkg/core.py:1-2) was executed by no test"),
    "no test comes so far": (
        (executed(a_function(body=Location(path="pkg/core.py", line=2, last_line=9)), ran=(9,)),),
        f"line 2 of `double` was executed by no test; other lines of it were, by {TEST}",
    ),
    "a test runs it and passes": ((executed(), a_run()), f"line 2 of `double` was executed by {TEST}, {FINE}"),
    "a test runs it and fails too": (
        (executed(), a_run(a_record(TestOutcome.FAILED))),
        f"line 2 of `double` was executed by {TEST}, of which {TEST} failed",
    ),
    "only an import runs it": (
        (executed(contexts=("",)),),
        "line 2 of `double` was executed at import or in a fixture, by no test itself",
    ),
    "it may have run unseen": (
        (executed(ran=(), doubts=("it died",)),),
        "`double` (pkg/core.py:1-2) was executed by no test, as far as was seen (it died)",
    ),
    "outside of the implementation": (
        (executed(a_function(line=40)),),
        "not known: pkg/core.py:2 lies in no function of the task's implementation, whose lines alone are noted",
    ),
    "not measured": ((), "not known: it was not collected"),
}


@pytest.mark.parametrize("case", WHYS)
def test_why_no_test_caught_a_crash(case: str) -> None:
    pieces, why = WHYS[case]
    assert why_uncaught(CRASH, evidence(*pieces)) == why


def test_long_list_of_tests_is_cut() -> None:
    names = [f"tests/t.py::test_{i}" for i in range(5)]
    seen = executed(contexts=tuple(f"test:{name}" for name in names), sets=("1f",))
    assert f"{names[2]} and 2 more, which did not fail" in why_uncaught(CRASH, evidence(seen))


CALLING = a_task(entry_points=[{"call": "pkg.core:double", "args": [{"a": 1}]}])


def crashed() -> EvidenceSet:
    run = EntryRun(
        index=0,
        name=CALLING.entry_points[0].name,
        process=a_process(1),
        crash=CRASH,
        error="KeyError: 'train_data'",
        function="double",
    )
    return evidence(EntryPointRuns(how="", runs=(run,)), executed(ran=()), a_run())


def test_crash_of_a_call_names_exception_place_arguments_and_reason() -> None:
    (finding,) = judge(CALLING, crashed())
    assert (finding.outcome, finding.severity, str(finding.location)) == (Outcome.FAILED, Severity.CRITICAL, str(CRASH))
    assert finding.message == "`pkg.core:double({\"a\": 1})`: exit code 1: KeyError: 'train_data' in `double`"
    assert "Why no test caught it: `double` (pkg/core.py:1-2) was executed by no test." in finding.impact


def test_crash_has_a_section_of_its_own() -> None:
    _, section = page(CALLING, crashed())
    assert section.text == "pkg.core:double({\"a\": 1}): KeyError: 'train_data'"


def test_returned_value_is_shown() -> None:
    run = EntryRun(index=0, name="x", process=a_process(), returned="42")
    section, *_ = page(CALLING, evidence(EntryPointRuns(how="", runs=(run,))))
    assert section.rows == (("exit code 0", "42", "1.00", "x"),)


def test_command_that_returns_its_failure_fails() -> None:
    run = EntryRun(index=0, name="x", process=a_process(1), returned="1")
    (finding,) = judge(CALLING, evidence(EntryPointRuns(how="", runs=(run,))))
    assert (finding.outcome, finding.severity, finding.actual) == (Outcome.FAILED, Severity.CRITICAL, "exit code 1")
    assert finding.message.endswith("`: exit code 1: it wrote nothing (it returned 1)")


def test_sound_entry_points_pass_whatever_was_covered() -> None:
    task = a_task()
    for seen in (entries(task), executed(ran=())):
        assert isinstance(seen, ExecutedLines | EntryPointRuns)
        assert {f.outcome for f in judge(task, all_evidence(task, seen))} == {Outcome.PASSED}
