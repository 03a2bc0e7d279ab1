"""A test run: can it be believed as a whole, what failed, and what was left out of it?"""

import re
from collections import Counter
from collections.abc import Iterator

from gates.check import About, Check, EvidenceSet
from gates.child.probing import advice_on
from gates.evidence.lines.executed_lines import ExecutedLines
from gates.evidence.tests.pytest_run import LOG, RAISED, PytestRun
from gates.evidence.tests.test_records import BAD, LeftOut, Out, TestOutcome, TestRecord
from gates.model import Basis, Finding, Level, Location, Outcome, Planned, Row, Severity
from gates.report import Section
from gates.task.task import Task
from gates.words import counted, in_shell

INTERNAL = "INTERNALERROR>"
SUITE = About(rule="EX001", check="suite", evidence=LOG, expected="exit code 0, all witnesses agree")
DATA = About(rule="EX013", check="data")
MEND = "Make the test pass; if the test is wrong, fix the test."
SETTLE = "Find what differs: state left by another test, time, randomness, order of a set."
RUN_IT = "Run it where it can run."
COLLECT = "Let pytest collect it: see collect_ignore, --ignore, norecursedirs and python_files."
NAME = "Let pytest collect it, or give it a name that is no test's."
ASIDE = {TestOutcome.SKIPPED, TestOutcome.XFAILED, TestOutcome.XPASSED}


def plan(_task: Task) -> Iterator[Planned]:
    """Plan the suite as a whole, its tests, and what was left out of it."""
    yield Planned(id="suite", title="Test suite ran to its end, and all records of it agree")
    yield Planned(id="tests", title="Every test that ran passed")
    yield Planned(id="data", title="The tests read what the commit has", scored=False)
    yield Planned(id="left-out", title="No test was skipped or expected to fail", level=Level.ADVISORY)
    title = "Every public function was executed by a test"
    yield Planned(id="executed", title=title, level=Level.ADVISORY, basis=Basis.READ, row=Row.CODE)


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Believe a run only where process, plan, records and files agree; a skipped test proves nothing."""
    if (run := evidence.get(PytestRun)) is None:
        for planned, rule in zip(plan(task), ("EX001", "EX002", "EX013", "EX003"), strict=False):
            about = About(rule=rule, check=planned.id, level=planned.level, location=task.place(task))
            fix = "Name the tests of the task under 'tests' and make them run."
            yield about.unknown(f"No test run to judge: {evidence.why_missing(PytestRun)}", fix)
    else:
        yield from _suite(run)
        yield from _tests(run)
        for path in run.untracked:
            fix, own = "Commit it, or let the tests make it anew in a temporary folder.", DATA.but(subject=path)
            yield own.unknown(f"Tests read {path}, which the commit does not have.", fix, location=Location(path=path))
        if not run.untracked:
            yield DATA.passed("Tests read no file beside them that the commit lacks.")
        yield from _aside(run)
    yield from _executed(task, evidence)


def _suite(run: PytestRun) -> Iterator[Finding]:
    ended, said = run.process, _said(run)
    about = SUITE.but(actual=ended.ended, location=next((t.location for t in run.tests if t.id in run.running), None))
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
        message = f"pytest ran no test ({ended.ended}: {said}){_at(run)}."
        yield SUITE.unknown(message, advice_on(said) or fix, actual=f"no test, {ended.ended}")
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
    ended = run.process
    held = f"; it held {ended.peak_memory_bytes / 2**20:.0f} MiB at most" if ended.peak_memory_bytes else ""
    if ended.signal:
        fix, impact = "Run the named test alone and fix the crash.", f"No test after this one was seen{held}."
        return about.failed(f"The test process was {ended.ended}{_at(run)}.", fix, impact=impact)
    fix = "Fix the hang, or raise the limit with --timeout where the suite is only slow."
    impact = f"What would have come is unknown{held}."
    return about.unknown(f"The test suite was {ended.ended}{_at(run)}.", fix, impact=impact)


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
        yield SUITE.unknown(message, fix, actual="tests deselected", location=unexplained[0].location)
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
        where = next((test.location for test in run.tests if test.id in repeat.running), None)
        own = SUITE.but(actual=what, subject=f"run {number}", location=where)
        tell = own.failed if ended.signal else own.unknown
        yield tell(message, "Find which test leaves something behind that another one meets.")


def _at(run: PytestRun) -> str:
    """Return, in words, which test was running when a run ended, or nothing where none was."""
    at = f"while running {', '.join(run.running[:3])}" if run.running else run.stage
    return f", {at}" if at and not at.startswith("after the session") else ""


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
    text = f"{ended.stdout.tail}\n{ended.stderr.tail}"
    lines = [line.removeprefix(INTERNAL).rstrip() for line in text.splitlines() if line.startswith(INTERNAL)]
    frames = [number for number, line in enumerate(lines) if line.lstrip().startswith('File "')]
    after = lines[frames[-1] + 1 :] if frames else []  # what an exception says may go on for many lines
    raised = next((line.strip() for line in after if line and not line[1:].startswith(" ")), "")
    return raised[:300] or ended.last_words.strip("= ")


def _tests(run: PytestRun) -> Iterator[Finding]:
    """Name every test that failed; a pass needs a believed run in which something passed."""
    passed = sum(test.passed for test in run.tests)
    about = About(check="tests", evidence=LOG, expected="every test passes")
    about = about.but(actual=f"{passed} of {len(run.tests)} passed")
    bad = [(test, f"{test.ended}: {test.reason}") for test in run.tests if test.outcome in BAD]
    ends = [(test, f"{ends}: {test.reason}" if test.message else f"{ends}.") for test, ends in run.unstable]
    for rule, told, fix in (("EX002", bad, MEND), ("EX011", ends, SETTLE)):
        for test, ended in told:
            own = about.but(rule=rule, subject=test.id, location=test.crash or test.location, severity=Severity.HIGH)
            own = own.but(actual=test.outcome.value, command=in_shell(["python", "-m", "pytest", test.id]))
            yield own.failed(f"{test.id} {ended}", fix)
    if bad or ends:
        return
    about = about.but(rule="EX002")
    if not run.complete or not passed:
        why = "the run cannot be believed (EX001)" if not run.complete else "no test passed: all were skipped"
        yield about.unknown(f"The tests prove nothing: {why}.", "Fix the run first.", follows=not run.complete)
        return
    each = f", in each of {1 + len(run.repeats)} runs" if run.repeats else ""
    yield about.passed(f"{passed} tests passed, none failed{each}.")


def _aside(run: PytestRun) -> Iterator[Finding]:
    """Name what was skipped, expected to fail, left out by a mark, or never collected."""
    about = About(rule="EX003", check="left-out", evidence=LOG, level=Level.ADVISORY)
    aside = [test for test in run.tests if test.outcome in ASIDE or test.subtests_left_out]
    unplanned = [one for one in run.out(Out.UNPLANNED) if not one.doubted]
    told: list[tuple[TestRecord | LeftOut, str, str]] = [
        *((test, f"{test.ended}: {test.reason}", RUN_IT) for test in aside),
        *((skip, f"was {skip.said}", RUN_IT) for skip in run.out(Out.SKIPPED)),
        *((file, "looks like tests, and pytest collected none of it.", COLLECT) for file in run.out(Out.UNCOLLECTED)),
        *((one, f"is written as a test and was not planned: {one.why}.", NAME) for one in unplanned),
    ]
    for left, said, fix in told:
        yield about.unknown(f"{left.id} {said}", fix, subject=left.id, location=left.location)
    if by_mark := [test for test in run.out(Out.DESELECTED) if not test.doubted]:
        message = f"{len(by_mark)} tests were left out by the project's mark expression, first {by_mark[0].id}."
        fix = "Run them where they can run: remove -m, or run them in a task of their own."
        yield about.unknown(message, fix, subject="deselected", location=by_mark[0].location)
    if not told and not by_mark:
        said = "No test was skipped or expected to fail." if run.complete else "What was left out is not known (EX001)."
        yield about(Outcome.PASSED if run.complete else Outcome.UNKNOWN, said, severity=Severity.INFO)


def _executed(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Name the public functions that no test was seen to run; they ask nothing of anybody."""
    about = About(rule="EX005", check="executed", level=Level.ADVISORY, basis=Basis.READ)
    seen, run = evidence.get(ExecutedLines), evidence.get(PytestRun)
    if seen is None:
        message = f"Not known which lines the tests executed: {evidence.why_missing(ExecutedLines)}"
        yield about.unknown(message, "Install `coverage` for the project, and trace nothing yourself.")
        return
    if task.only:
        message = f"Only what verifies {task.only} was run (--only): it need not execute all public functions."
        yield about.not_asked(message)
        return
    public = [function for function in seen.functions if function.counts]
    absent = [function for function in public if not seen.contexts_in(function.body)]
    unseen = seen.doubt() if run and run.complete else "the run cannot be believed (EX001)"
    about = about.but(actual=f"{len(public) - len(absent)} of {len(public)} executed")
    if not absent:
        message = f"{counted(len(public), 'public function')} of the implementation, each executed by the test run."
        yield about.passed(message) if public else about.not_asked(message)
    about = about.but(severity=Severity.MEDIUM)
    for function in absent:
        doubt = unseen or ("a decorator may answer in its place" if function.wrapped else "")
        own = about.but(location=function.location, subject=f"{function.location.path}:{function.name}", actual="")
        tell = own.unknown if doubt else own.failed
        message = f"No test executed {function.name}() of {function.location.path}."
        yield tell(message, "Add a test that calls it.", impact=doubt and f"Not all was seen: {doubt}.")


def describe(_task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell the run, or why there is none."""
    run = evidence.get(PytestRun)
    unseen = Section(title="Test Execution Results", text=f"Not run: {evidence.why_missing(PytestRun)}.")
    yield from _described(run) if run else [unseen]


def _described(run: PytestRun) -> Iterator[Section]:
    seeds = ", ".join(repeat.seed for repeat in run.repeats)
    memory = f"{most / 2**20:.0f} MiB (largest process)" if (most := run.process.peak_memory_bytes) else "not known"
    ends = Counter(test.outcome for test in run.tests)
    counts = ", ".join(f"{ends[outcome]} {outcome.value}" for outcome in TestOutcome if ends[outcome]) or "no test"
    yield Section(
        title="Test Execution Results",
        facts=(
            ("Command", run.commands[0].line),
            ("Ended", run.process.ended),
            ("Seen by", run.how),
            ("Results", f"{counts}, {len(run.warnings)} distinct warnings"),
            ("Duration", f"{run.process.duration_s:.2f} s"),
            ("Peak memory", memory),
            ("Orders", f"as collected; then shuffled, seeds {seeds}" if seeds else "as collected, once"),
            ("Versions", ", ".join(f"{name} {version}" for name, version in sorted(run.versions.items()))),
        ),
    )
    if run.process.exit_code is None or run.running:
        yield _certificate(run, memory)
    for outcome in TestOutcome:
        tests = [test for test in run.tests if test.outcome is outcome]
        if tests and outcome not in {*BAD, TestOutcome.PASSED}:  # a bad one is a finding, a good one a count
            rows = tuple((t.id, str(t.location), t.message.split("\n")[0]) for t in tests)
            title, columns = f"{outcome.value.capitalize()} Tests ({len(tests)})", ("Test", "Place", "Reason")
            yield Section(title=title, columns=columns, rows=rows)
    told = tuple((w.category, str(w.location), w.message) for w in run.warnings)
    yield Section(title="Warnings", text="" if told else "None.", columns=("Category", "Place", "Message"), rows=told)


def _certificate(run: PytestRun, memory: str) -> Section:
    """Tell how a run died: what was running, of what, how much memory it held, and where it was."""
    tests, last = ", ".join(run.running) or "no test", run.stage or "never"
    facts = (("Ended", run.process.ended), ("Running", tests), ("Last seen", last), ("Peak memory", memory))
    stack = run.stack or "No stack was written: SIGKILL and os._exit leave no time for one."
    return Section(title="Death Certificate", facts=facts, code=stack)


CHECK = Check("test_run", "execution", 10, (PytestRun, ExecutedLines), plan, judge, describe)
