"""Every test that ran, and every test that was left out: what the run says of them."""

import shlex
from collections.abc import Iterator

from gates.check import About, Check, EvidenceSet
from gates.checks.test_run.belief import LOG, judge_suite
from gates.evidence.lines.executed_lines import ExecutedLines
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import BAD, LeftOut, Out, TestOutcome, TestRecord
from gates.model import Basis, Finding, Level, Location, Planned, Row, Severity, as_rules
from gates.report import Section
from gates.task.task import Task
from gates.words import counted

MEND = "Make the test pass; if the test is wrong, fix the test."
SETTLE = "Find what differs: state left by another test, time, randomness, order of a set."
RUN_IT = "Run it where it can run."
COLLECT = "Let pytest collect it: see collect_ignore, --ignore, norecursedirs and python_files."
NAME = "Let pytest collect it, or give it a name that is no test's."
ASIDE = {TestOutcome.SKIPPED, TestOutcome.XFAILED, TestOutcome.XPASSED}
RULES = as_rules(
    EX001="The test run can be believed. Every planned test has an end, and process status, plugin, JSON and JUnit "
    "agree. A crash or uncollectable file fails. A run cut short, empty, contradictory or of other code is unknown.",
    EX002="Every test that ran passed. A failed or broken test fails. Where no test passed, or the run cannot be "
    "believed, it is unknown.",
    EX003="No test was left out. Skipped, expected-to-fail and unexpectedly passing tests are listed. They verify "
    "nothing, count for no criterion, and cost score. Alone they do not block.",
    EX005="Public code is executed by a test. A public function of the implementation that no test executed is "
    "listed. Where tests started other processes, it is unknown. It costs score and never blocks.",
    EX013="Tests read what the commit has. Tests read a file beside them that is not committed. A fresh checkout of "
    "the same commit could have another verdict, so the run stays open.",
    EX011="A test ends the same way each time. A test that ended in two ways fails, with --repeat or where a plugin "
    "ran it again. The run that passed does not undo the one that failed.",
)


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
    run = evidence.get(PytestRun)
    if run is None:
        yield from _without_run(task, evidence.why_missing(PytestRun))
    else:
        yield from judge_suite(run)
        yield from _tests(run)
        yield from _data(run)
        yield from _aside(run)
    yield from _executed(task, evidence)


def _without_run(task: Task, why: str) -> Iterator[Finding]:
    for planned, rule in zip(plan(task), ("EX001", "EX002", "EX013", "EX003"), strict=False):
        about = About(rule=rule, check=planned.id, level=planned.level, location=task.place(task))
        fix = "Name the tests of the task under 'tests' and make them run."
        yield about.unknown(f"No test run to judge: {why}", fix)


def _tests(run: PytestRun) -> Iterator[Finding]:
    """Name every test that failed; a pass needs a believed run in which something passed."""
    passed = sum(test.passed for test in run.tests)
    about = About(
        check="tests", evidence=LOG, expected="every test passes", actual=f"{passed} of {len(run.tests)} passed"
    )
    bad = [(test, f"{test.ended}: {test.reason}") for test in run.tests if test.outcome in BAD]
    ends = [(test, f"{ends}: {test.reason}" if test.message else f"{ends}.") for test, ends in run.unstable]
    for rule, told, fix in (("EX002", bad, MEND), ("EX011", ends, SETTLE)):
        for test, ended in told:
            own = about.but(rule=rule, subject=test.id, location=test.crash or test.location, severity=Severity.HIGH)
            own = own.but(actual=test.outcome.value, command=f"python -m pytest {shlex.quote(test.id)}")
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


def _data(run: PytestRun) -> Iterator[Finding]:
    """Name each file that tests read and that the commit does not have."""
    about = About(rule="EX013", check="data")
    for path in run.untracked:
        fix, own = "Commit it, or let the tests make it anew in a temporary folder.", about.but(subject=path)
        yield own.unknown(f"Tests read {path}, which the commit does not have.", fix, location=Location(path=path))
    if not run.untracked:
        yield about.passed("Tests read no file beside them that the commit lacks.")


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
        none = about.but(severity=Severity.INFO)
        said = "No test was skipped or expected to fail."
        yield none.passed(said) if run.complete else none.unknown("The run did not come to its end.")


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
        impact = doubt and f"Not all was seen: {doubt}."
        yield tell(f"No test executed {function.name}().", "Add a test that calls it.", impact=impact)


def describe(_task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell the run, or why there is none."""
    run = evidence.get(PytestRun)
    if run is None:
        yield Section(title="Test Execution Results", text=f"Not run: {evidence.why_missing(PytestRun)}.")
    else:
        yield from _described(run)


SLOWEST = 10


def _described(run: PytestRun) -> Iterator[Section]:
    """Tell the run: command, counts, tests by name, slowest tests, warnings."""
    counts = ", ".join(f"{run.count(o)} {o.value}" for o in TestOutcome if run.count(o)) or "no test"
    yield Section(
        title="Test Execution Results",
        facts=(
            ("Command", run.commands[0].line),
            ("Ended", run.process.ended),
            ("Seen by", run.how),
            ("Results", f"{counts}, {len(run.warnings)} distinct warnings"),
            ("Duration", f"{run.process.duration_s:.2f} s"),
            ("Peak memory", _memory(run.process.peak_memory_bytes)),
            ("Orders", _orders(run)),
            ("Versions", ", ".join(f"{name} {version}" for name, version in sorted(run.versions.items()))),
        ),
    )
    if run.process.exit_code is None or run.running:
        yield _certificate(run)
    for outcome in TestOutcome:
        tests = [test for test in run.tests if test.outcome is outcome]
        if tests and outcome not in {*BAD, TestOutcome.PASSED}:  # a bad one is a finding, a good one a count
            rows = tuple((t.id, str(t.location), t.message.split("\n")[0]) for t in tests)
            title, columns = f"{outcome.value.capitalize()} Tests ({len(tests)})", ("Test", "Place", "Reason")
            yield Section(title=title, columns=columns, rows=rows)
    slowest = sorted(run.tests, key=lambda test: -test.duration_s)[:SLOWEST]
    yield Section(
        title="Slowest Tests",
        columns=("Duration (s)", "Test"),
        rows=tuple((f"{test.duration_s:.2f}", test.id) for test in slowest),
    )
    yield Section(
        title="Warnings",
        text="" if run.warnings else "None.",
        columns=("Category", "Place", "Message"),
        rows=tuple((w.category, str(w.location), w.message) for w in run.warnings),
    )


def _certificate(run: PytestRun) -> Section:
    """Tell how a run died: what was running, of what, how much memory it held, and where it was."""
    return Section(
        title="Death Certificate",
        facts=(
            ("Ended", run.process.ended),
            ("Running", ", ".join(run.running) or "no test"),
            ("Last seen", run.stage or "never"),
            ("Peak memory", _memory(run.process.peak_memory_bytes)),
        ),
        code=run.stack or "No stack was written: SIGKILL and os._exit leave no time for one.",
    )


def _memory(count: int | None) -> str:
    return f"{count / 2**20:.0f} MiB (largest process)" if count else "not known"


def _orders(run: PytestRun) -> str:
    seeds = ", ".join(repeat.seed for repeat in run.repeats)
    return f"as collected; then shuffled, seeds {seeds}" if seeds else "as collected, once"


CHECK = Check("test_run", "execution", 10, RULES, (PytestRun, ExecutedLines), plan, judge, describe)
