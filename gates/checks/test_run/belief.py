"""Whether a test run as a whole can be believed."""

import re
from collections.abc import Iterator

from gates.check import About
from gates.child.probing import advice_on
from gates.evidence.tests.pytest_run import RAISED, PytestRun
from gates.evidence.tests.test_records import BAD, Out
from gates.model import Finding, Location

LOG = "pytest/run.stdout.txt"
INTERNAL = "INTERNALERROR>"
SUITE = About(rule="EX001", check="suite", evidence=LOG, expected="exit code 0, all witnesses agree")


def judge_suite(run: PytestRun) -> Iterator[Finding]:
    """Say whether the run as a whole can be believed."""
    ended, said = run.process, _said(run)
    about = SUITE.but(actual=ended.ended, location=_where(run, run.running))
    yield from _collect_errors(run)
    if ended.signal or ended.timed_out:
        yield _stopped(about, run)
    elif run.collect_errors:
        return
    elif ended.exit_code not in {0, 1, 5}:
        fix = advice_on(said) or "Run the command of the audit trail by hand and fix what it reports."
        yield about.unknown(f"pytest did not come to its end ({ended.ended}: {said}){_at(run)}.", fix)
    elif not run.tests:
        fix = "Point 'tests' of the task at files that hold tests, and check that pytest collects them."
        about = SUITE.but(actual=f"no test, {ended.ended}")
        yield about.unknown(f"pytest ran no test ({ended.ended}: {said}){_at(run)}.", advice_on(said) or fix)
    elif run.canaries or run.disagreements:
        for canary in run.canaries:
            fix = "Find what rewrites results or removes assertions: conftest.py, plugins, options."
            yield SUITE.failed(f"The harness is rigged: {canary}.", fix, actual=canary, subject=canary)
        for what in run.disagreements if not run.canaries else ():
            fix = "Find what changes results or ends the run early: conftest.py, plugins, os._exit."
            message = f"The records of the run contradict each other: {what}{_at(run)}."
            yield about.unknown(message, fix, actual=what, subject=what)
    else:
        yield from _believed(run)


def _stopped(about: About, run: PytestRun) -> Finding:
    """Say that a signal or the time limit ended the run, and at what."""
    ended = run.process
    during = f" while running {', '.join(run.running[:3])}" if run.running else f" {run.stage}" if run.stage else ""
    held = f"; it held {ended.peak_memory_bytes / 2**20:.0f} MiB at most" if ended.peak_memory_bytes else ""
    if ended.signal:
        fix, impact = "Run the named test alone and fix the crash.", f"No test after this one was seen{held}."
        return about.failed(f"The test process was {ended.ended}{during}.", fix, impact=impact)
    fix = "Fix the hang, or raise the limit with --timeout where the suite is only slow."
    impact = f"What would have come is unknown{held}."
    return about.unknown(f"The test suite was {ended.ended}{during}.", fix, impact=impact)


def _believed(run: PytestRun) -> Iterator[Finding]:
    """Judge a run whose witnesses agree: its exit code must be explained by its tests, and none be deselected."""
    ended = run.process
    if ended.exit_code == 1 and not any(test.outcome in BAD for test in run.tests):
        said = [line for line in ended.stdout.tail.splitlines() if line.strip() and not line.startswith("=")]
        last = said[-1][:300] if said else "it wrote nothing"
        fix = "Read the end of the log: a plugin (such as a coverage limit) failed the run."
        yield SUITE.failed(f"pytest ended with exit code 1 though no test failed: {last}", fix, actual=ended.ended)
        return
    if unexplained := [test for test in run.out(Out.DESELECTED) if test.doubted]:
        message = f"{len(unexplained)} tests were deselected and not seen, first {unexplained[0].id}."
        fix = "Remove -k or --deselect from the pytest configuration, or name exact 'tests' in the task."
        facts = {"actual": f"{len(unexplained)} tests deselected", "location": unexplained[0].location}
        yield SUITE.unknown(message, fix, **facts)
        return
    unplanned = [test for test in run.out(Out.UNPLANNED) if test.doubted]
    for test in unplanned:
        own = SUITE.but(actual="written, not planned", subject=test.id, location=test.location)
        fix = "Give the test a name of its own, or find what hides it from pytest."
        yield own.unknown(f"{test.id} is written as a test and was never planned: {test.why}.", fix)
    for path in run.foreign:
        own = SUITE.but(actual="other code", subject=path)
        fix = "Install the project anew (`pip install -e .`), or let the tests import this tree."
        yield own.unknown(f"The tests imported {path}, and this tree has other code.", fix)
    broken = [*_repeats(run)]
    yield from broken
    if not (unplanned or run.foreign or broken):
        count = len(run.tests)
        message = f"{count} tests planned, {count} ended; process, plan, records and files agree."
        yield SUITE.passed(message, actual=ended.ended)


def _repeats(run: PytestRun) -> Iterator[Finding]:
    """Name the further runs of the same tests that did not come to their end, or contradict themselves."""
    for number, repeat in enumerate(run.repeats, 2):
        ended, said = repeat.process, repeat.disagreements
        if ended.exit_code in {0, 1} and not said:
            continue
        what = said[0] if said else f"its end is {ended.ended}"
        during = f", while running {repeat.running[0]}" if repeat.running else ""
        message = f"Run {number} of the tests (seed {repeat.seed}) cannot be believed: {what}{during}."
        own = SUITE.but(actual=what, subject=f"run {number}", location=_where(run, repeat.running))
        tell = own.failed if ended.signal else own.unknown
        yield tell(message, "Find which test leaves something behind that another one meets.")


def _at(run: PytestRun) -> str:
    """Return, in words, which test was running when a run ended, or nothing where none was."""
    if run.running:
        return f", while running {', '.join(run.running[:3])}"
    return f", {run.stage}" if run.stage and not run.stage.startswith("after the session") else ""


def _collect_errors(run: PytestRun) -> Iterator[Finding]:
    """Name each cause that keeps files from being collected, with the files."""
    causes: dict[str, list[str]] = {}
    for error in run.collect_errors:
        lines = [line.strip() for line in error.message.splitlines() if line.strip()] or ["no reason given"]
        raised = re.fullmatch(rf"E\s+(.*)|({RAISED.pattern}.*)", lines[-1])
        cause = (raised[1] or raised[2]) if raised else " ".join(lines)[:300]
        causes.setdefault(cause, []).append(error.id)
    for cause, ids in causes.items():
        more = f" and {len(ids) - 1} more files" if len(ids) > 2 else " and one more file" if len(ids) == 2 else ""
        impact = "None of its tests ran." if len(ids) == 1 else f"None of their tests ran: {', '.join(ids)}."
        where = Location(path=ids[0].split("::")[0]) if ids[0] else None
        own = SUITE.but(expected="every test file imports", actual="collection error", subject=ids[0], location=where)
        message = f"{ids[0] or 'A file'}{more} could not be collected: {cause}"
        yield own.failed(message, advice_on(cause) or "Fix what keeps it from being collected.", impact=impact)


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
