"""Whether a test run as a whole can be believed."""

from collections.abc import Iterator

from gates.child.probing import advice_on
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import BAD
from gates.model import Finding, Location, Outcome

LOG = "pytest/run.stdout.txt"
INTERNAL = "INTERNALERROR>"
NAMED = 50  # so many tests have a finding of their own


def _suite(outcome: Outcome, actual: str, message: str, remediation: str, **more: object) -> Finding:
    """Say something of the run as a whole."""
    said = {"outcome": outcome, "actual": actual, "message": message, "remediation": remediation, **more}
    expected = "exit code 0, all witnesses agree"
    return Finding.model_validate({"rule": "EX001", "check": "suite", "evidence": LOG, "expected": expected, **said})


def judge_suite(run: PytestRun) -> Iterator[Finding]:
    """Say whether the run as a whole can be believed."""
    ended = run.process
    yield from _collect_errors(run)
    if ended.signal or ended.timed_out:
        yield _stopped(run)
    elif run.collect_errors:
        return
    elif ended.exit_code not in {0, 1, 5}:
        message = f"pytest did not come to its end ({ended.ended}: {_said(run)}){_at(run)}."
        advice = advice_on(_said(run)) or "Run the command of the audit trail by hand and mend what it reports."
        yield _suite(Outcome.UNKNOWN, ended.ended, message, advice, location=_where(run, run.running))
    elif not run.tests:
        message = f"pytest ran no test ({ended.ended}: {_said(run)}){_at(run)}."
        advice = "Point 'tests' of the task at files that hold tests, and check that pytest collects them."
        yield _suite(Outcome.UNKNOWN, f"no test, {ended.ended}", message, advice_on(_said(run)) or advice)
    elif run.canaries or run.disagreements:
        yield from _contradicted(run)
    else:
        yield from _believed(run)


def _stopped(run: PytestRun) -> Finding:
    """Say that a signal or the time limit ended the run, and at what."""
    ended, where = run.process, _where(run, run.running)
    during = f" while running {', '.join(run.running[:3])}" if run.running else f" {run.stage}" if run.stage else ""
    held = f"; it held {ended.peak_memory_bytes / 2**20:.0f} MiB at most" if ended.peak_memory_bytes else ""
    if ended.signal:
        message, advice = f"The test process was {ended.ended}{during}.", "Run the named test alone and mend the crash."
        impact = f"No test after this one was seen{held}."
        return _suite(Outcome.FAILED, ended.ended, message, advice, impact=impact, location=where)
    message = f"The test suite was {ended.ended}{during}."
    advice = "Mend the hang, or raise the limit with --timeout where the suite is only slow."
    impact = f"What would have come is unknown{held}."
    return _suite(Outcome.UNKNOWN, ended.ended, message, advice, impact=impact, location=where)


def _contradicted(run: PytestRun) -> Iterator[Finding]:
    """Say which results are no results: those of a rigged harness, or of witnesses that disagree."""
    for said in run.canaries:
        advice = "Find what rewrites results or removes assertions: conftest.py, plugins, options."
        yield _suite(Outcome.FAILED, said, f"The harness is rigged: {said}.", advice, subject=said)
    for said in run.disagreements if not run.canaries else ():
        message = f"The records of the run contradict each other: {said}{_at(run)}."
        advice = "Find what changes results or ends the run early: conftest.py, plugins, os._exit."
        where = _where(run, run.running)
        yield _suite(Outcome.UNKNOWN, said, message, advice, subject=said, location=where)


def _believed(run: PytestRun) -> Iterator[Finding]:
    """Judge a run whose witnesses agree: its exit code must be explained by its tests, and none be deselected."""
    ended = run.process
    if ended.exit_code == 1 and not any(test.outcome in BAD for test in run.tests):
        said = [line for line in ended.stdout.tail.splitlines() if line.strip() and not line.startswith("=")]
        message = (
            f"pytest ended with exit code 1 though no test failed: {said[-1][:300] if said else 'it wrote nothing'}"
        )
        advice = "Read the end of the log: a plugin (such as a coverage limit) failed the run."
        yield _suite(Outcome.FAILED, ended.ended, message, advice)
        return
    if unexplained := [test for test in run.deselected if not test.by_mark]:
        message = f"{len(unexplained)} tests were deselected and not seen, first {unexplained[0].id}."
        advice = "Remove -k or --deselect from the pytest configuration, or name exact 'tests' in the task."
        actual, where = f"{len(unexplained)} tests deselected", unexplained[0].location
        yield _suite(Outcome.UNKNOWN, actual, message, advice, location=where)
        return
    unplanned = [test for test in run.unplanned if test.certain]
    for test in unplanned[:NAMED]:
        message = f"{test.id} is written as a test and was never planned: {test.why}."
        advice, more = (
            "Give the test a name of its own, or find what hides it from pytest.",
            {"location": test.location},
        )
        yield _suite(Outcome.UNKNOWN, "written, not planned", message, advice, subject=test.id, **more)
    broken = [*_repeats(run)]
    yield from broken
    if not unplanned and not broken:
        count = len(run.tests)
        message = f"{count} tests planned, {count} ended; process, plan, records and files agree."
        yield _suite(Outcome.PASSED, ended.ended, message, "")


def _repeats(run: PytestRun) -> Iterator[Finding]:
    """Name the further runs of the same tests that did not come to their end, or contradict themselves."""
    for number, repeat in enumerate(run.repeats, 2):
        ended, said = repeat.process, repeat.disagreements
        if ended.exit_code in {0, 1} and not said:
            continue
        what = said[0] if said else f"its end is {ended.ended}"
        during = f", while running {repeat.running[0]}" if repeat.running else ""
        message = f"Run {number} of the tests (seed {repeat.seed}) cannot be believed: {what}{during}."
        advice = "Find which test leaves something behind that another one meets."
        outcome, where = Outcome.FAILED if ended.signal else Outcome.UNKNOWN, _where(run, repeat.running)
        yield _suite(outcome, what, message, advice, subject=f"run {number}", location=where)


def _at(run: PytestRun) -> str:
    """Return, in words, which test was running when a run ended, or nothing where none was."""
    if run.running:
        return f", while running {', '.join(run.running[:3])}"
    return f", {run.stage}" if run.stage and not run.stage.startswith("after the session") else ""


def _collect_errors(run: PytestRun) -> Iterator[Finding]:
    """Name each cause that keeps files from being collected, with the files."""
    causes: dict[str, list[str]] = {}
    for error in run.collect_errors:
        lines = [line for line in error.message.splitlines() if line.strip()]
        causes.setdefault(lines[-1].removeprefix("E").strip() if lines else "no reason given", []).append(error.id)
    for cause, ids in causes.items():
        more = f" and {len(ids) - 1} more files" if len(ids) > 2 else " and one more file" if len(ids) == 2 else ""
        message = f"{ids[0] or 'A file'}{more} could not be collected: {cause}"
        impact = "None of its tests ran." if len(ids) == 1 else f"None of their tests ran: {', '.join(ids)}."
        where = Location(path=ids[0].split("::")[0]) if ids[0] else None
        advice = advice_on(cause) or "Mend what its import raises."
        said = {"expected": "every test file imports", "subject": ids[0], "location": where, "impact": impact}
        yield _suite(Outcome.FAILED, "collection error", message, advice, **said)


def _said(run: PytestRun) -> str:
    """Return what pytest wrote last; of a command that it refused, why, and of an error what was raised."""
    ended = run.process
    if run.worker_errors:
        return f"a worker was ended by {run.worker_errors[0]}"
    if raised := _raised(f"{ended.stdout.tail}\n{ended.stderr.tail}"):
        return raised[:300]
    refused = [line.strip() for line in ended.stderr.tail.splitlines() if "error: " in line]
    return refused[-1][:300] if refused else ended.last_words.strip("= ")


def _raised(text: str) -> str:
    """Return the line of an internal error that names the exception; what it says may go on for many lines."""
    lines = [line.removeprefix(INTERNAL).rstrip() for line in text.splitlines() if line.startswith(INTERNAL)]
    frames = [number for number, line in enumerate(lines) if line.lstrip().startswith('File "')]
    after = lines[frames[-1] + 1 :] if frames else []
    return next((line.strip() for line in after if line and not line[1:].startswith(" ")), "")


def _where(run: PytestRun, ids: tuple[str, ...]) -> Location | None:
    return next((test.location for test in run.tests if test.id in ids), None)
