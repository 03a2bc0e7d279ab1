"""Claims about a test run against the records of this run."""

from gates.check import EvidenceSet
from gates.claims._answer import Answer, confirmed, contradicted, unsupported
from gates.claims.claim import AllPassed, Duration, ExitCode, Said, Standing, TestCounts, TestEnd
from gates.evidence.pytest_run import PytestRun
from gates.evidence.test_records import TestOutcome, TestRecord, function_of

NEAR = 0.5  # of a duration: another run of the same tests is never exactly as long
NAMES = {"error": TestOutcome.ERROR, **{outcome.value: outcome for outcome in TestOutcome}}
BAD = {TestOutcome.FAILED, TestOutcome.ERROR}


def answer(said: Said, evidence: EvidenceSet) -> Answer:
    """Answer a claim about tests; without a run, or from one that cannot be believed, it is unsupported."""
    expected = _expected(said)
    run = evidence.get(PytestRun)
    if not isinstance(said, TestCounts | AllPassed | TestEnd | ExitCode | Duration):
        return unsupported(expected, "nothing in it can be checked")
    if run is None:
        return unsupported(expected, f"no test run was seen: {evidence.why_missing(PytestRun)}")
    if isinstance(said, ExitCode):
        return _exit_code(said, run, expected)
    if not run.complete:
        return unsupported(expected, f"the test run of this evidence cannot be believed ({run.process.ended})")
    if isinstance(said, Duration):
        seen = f"this run took {run.process.duration_s:.2f} s"
        near = abs(run.process.duration_s - said.seconds) <= NEAR * max(said.seconds, run.process.duration_s)
        return (confirmed if near else unsupported)(expected, seen)
    if isinstance(said, TestEnd):
        return _test_end(said, run, expected)
    tests = _in_scope(said.scope, run)
    if not tests:
        return unsupported(expected, f"this run has no test in {said.scope}")
    told = _counts(said, run, tests, expected) if isinstance(said, TestCounts) else _all(tests, expected)
    if said.part and told.standing is Standing.CONTRADICTED:
        return unsupported(expected, f"it speaks of a part ({said.part:.40}) that this run does not know; {told.seen}")
    return told


def _expected(said: Said) -> str:
    if isinstance(said, TestCounts):
        counts = ", ".join(f"{count} {name}" for name, count in said.counts.items())
        whole = f" of {said.total}" if said.total is not None else ""
        return counts + whole + (f" in {said.scope}" if said.scope else "")
    if isinstance(said, TestEnd):
        return f"{said.test} {said.outcome}"
    if isinstance(said, ExitCode):
        return f"exit code {said.value}"
    if isinstance(said, Duration):
        return f"{said.seconds:g} s"
    return "every test passed" if isinstance(said, AllPassed) else "a statement"


def _in_scope(scope: str, run: PytestRun) -> list[TestRecord]:
    """Return the tests of a file or folder; `scope` may leave out the folders before it."""
    if not scope:
        return list(run.tests)
    return [test for test in run.tests if f"/{test.id}".find(f"/{scope.strip('/')}") >= 0]


def _counts(said: TestCounts, run: PytestRun, tests: list[TestRecord], expected: str) -> Answer:
    seen = {name: sum(test.outcome is NAMES[name] for test in tests) for name in said.counts if name in NAMES}
    if "errors" in said.counts:
        seen["errors"] = sum(test.outcome is TestOutcome.ERROR for test in tests)
    if "deselected" in said.counts:
        seen["deselected"] = len(run.deselected)
    if "total" in said.counts:
        seen["total"] = len(tests)
    off = [name for name, count in said.counts.items() if name in seen and seen[name] != count]
    text = ", ".join(f"{count} {name}" for name, count in seen.items()) + f", {len(tests)} tests in all"
    if off or (said.total is not None and said.total != len(tests)):
        return contradicted(expected, text)
    return (confirmed if seen else unsupported)(expected, text)


def _all(tests: list[TestRecord], expected: str) -> Answer:
    bad = [test for test in tests if test.outcome in BAD]
    open_ = [test for test in tests if not test.passed]
    if bad:
        return contradicted(expected, f"{len(bad)} of {len(tests)} failed, first {bad[0].id}", bad[0].location)
    if open_:
        first = open_[0]
        seen = f"{len(open_)} of {len(tests)} did not pass, first {first.id}: {first.ended}"
        return unsupported(expected, seen, first.location)
    return confirmed(expected, f"{len(tests)} of {len(tests)} passed")


def _test_end(said: TestEnd, run: PytestRun, expected: str) -> Answer:
    found = [test for test in run.tests if _is_named(test.id, said.test)]
    if not found:
        return unsupported(expected, "this run has no such test")
    outcomes = sorted({test.outcome.value for test in found})
    seen = f"{' and '.join(outcomes)} in this run"
    if len(outcomes) > 1 and said.outcome in outcomes:
        return unsupported(expected, f"{len(found)} tests have this name: {seen}", found[0].location)
    return (confirmed if outcomes == [said.outcome] else contradicted)(expected, seen, found[0].location)


def _is_named(test: str, name: str) -> bool:
    """Return whether a test's id is a name or ends with it; its parameters may be left out."""
    endings = (f"::{name}", f"/{name}")
    return any(known == name or known.endswith(endings) for known in (test, function_of(test)))


def _exit_code(said: ExitCode, run: PytestRun, expected: str) -> Answer:
    if run.process.exit_code is None or run.disagreements:
        return unsupported(expected, f"this run: {run.process.ended}")
    if said.scope:
        tests = _in_scope(said.scope, run)
        if not tests or said.value not in {0, 1}:
            return unsupported(expected, f"{len(tests)} tests of this run are in {said.scope}")
        bad = sum(test.outcome in BAD for test in tests)
        check = confirmed if bool(bad) == bool(said.value) else contradicted
        return check(expected, f"{bad} of {len(tests)} tests in {said.scope} failed")
    check = confirmed if run.process.exit_code == said.value else contradicted
    return check(expected, f"this run: {run.process.ended}")
