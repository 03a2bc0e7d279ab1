"""Criteria: traced to live code, verified by tests; and the markers that bind tests."""

import re
import shlex
from collections.abc import Iterator
from functools import partial

from gates.check import About, Check, EvidenceSet, about_criterion
from gates.checks.criteria.traced import judge_code, page
from gates.evidence.called_code import CalledCode
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.pytest_run import PytestRun, tests_of
from gates.evidence.tests.test_records import BAD, LeftOut, Out, TestRecord
from gates.model import Basis, Finding, Level, Location, Outcome, Planned, Row, Severity, as_rules
from gates.project.files import is_under
from gates.proving.emptied_code import EmptiedCode
from gates.task.task import TASK_ID, Criterion, Task
from gates.task.yaml_source import meant
from gates.words import counted

LOG = "pytest/run.stdout.txt"
FORM = re.compile(rf"{TASK_ID.pattern}/{TASK_ID.pattern}")


RULES = as_rules(
    BL001="A criterion is traced to live code. Each symbol must be defined, do something, and use what the task "
    "names. Each pattern must fit, and each rule must be kept. A file that cannot be parsed leaves it unknown.",
    BL002="Tests verify a criterion. Every test bound to the criterion must have passed in a run that can be "
    "believed. Tests that were skipped, expected to fail, replaced or never collected leave it unknown.",
    BL004="Markers name criteria that exist. A marker must have the form TASK/CRITERION, such as T035/AC3, and name a "
    "criterion of the task. A test marked for one that does not exist would verify nothing.",
)


def plan(task: Task) -> Iterator[Planned]:
    """Plan for each criterion its code and its tests, and the markers."""
    for criterion in task.criteria:
        about = partial(Planned, level=criterion.level, criterion=criterion.id)
        title = f"{criterion.id} is traced to live code"
        yield about(id=f"code:{criterion.id}", title=title, basis=Basis.READ, row=Row.CODE)
        yield about(id=f"tests:{criterion.id}", title=f"{criterion.id} is verified by tests")
    yield Planned(id="markers", title="Markers name criteria that exist")


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge each criterion by its code and its tests, and the markers."""
    for criterion in task.criteria:
        yield from judge_code(task, criterion, evidence)
        otherwise = criterion.measures or task.shown_by(criterion)  # then no test must speak for it
        yield from judge_tests(task, criterion, evidence, asked=bool(criterion.tests) or not otherwise)
    yield from judge_markers(task, evidence)


def judge_tests(task: Task, criterion: Criterion, evidence: EvidenceSet, *, asked: bool = True) -> Iterator[Finding]:
    """Judge the tests bound to a criterion; one that was skipped or left out verifies nothing.

    Where none is `asked` for, because something else shows the criterion, those that markers bind are judged all the
    same.
    """
    run, name = evidence.get(PytestRun), criterion.id
    about = about_criterion(criterion, "BL002", f"tests:{name}", location=task.place(criterion))
    bound = tests_of(task, criterion, run)
    doubts = [*_left_out(about, task, criterion, run), *_not_passed(about, criterion, bound, run)] if run else []
    yield from doubts
    if doubts:
        return
    if not bound and not asked:
        message = f"{name} is shown by something other than tests; no test is bound to it."
        yield about.not_asked(message, actual="shown otherwise")
    elif run is None:
        message = f"The tests of {name} were not seen: {evidence.why_missing(PytestRun)}"
        yield about.unknown(message, "Make the test suite run.", actual="no test run")
    elif not bound:
        fix = f"Name tests under 'tests', or mark them with @pytest.mark.criterion(\"{task.id}/{name}\")."
        message = f"No test and no measure verifies {name}; reading its code proves nothing."
        yield about.unknown(message, fix, actual="no test")
    else:
        yield _passed(about, name, bound, believed=run.complete)


def _left_out(about: About, task: Task, criterion: Criterion, run: PytestRun) -> Iterator[Finding]:
    """Name what speaks for the criterion and was deselected, skipped as a whole, or never collected."""
    marker = f"{task.id}/{criterion.id}"
    own = [e for e in run.left_out if marker in e.criteria or any(is_under(e.id, path) for path in criterion.tests)]
    own = [each for each in own if not any(each.id != other.id and is_under(each.id, other.id) for other in own)]
    for each in own:
        message = f"{each.id} is bound to {criterion.id} and was {each.said}."
        fix = "Let it run (see -k, -m, --deselect, collect_ignore, skip marks); not run, it proves nothing."
        yield about.unknown(message, fix, subject=each.id, location=each.location, actual=each.how.value)
    known = [*(test.id for test in run.tests), *(each.id for each in own)]
    for path in [path for path in criterion.tests if not any(is_under(name, path) for name in known)]:
        fix = f"Put {path} back, add it to 'tests' of the task, or have the criterion name what took its place."
        fix = "Fix the run first." if run.collect_errors or not run.tests else fix
        yield about.unknown(f"No test of {path} was run.", fix, subject=path, actual="not run")


def _not_passed(about: About, criterion: Criterion, bound: list[TestRecord], run: PytestRun) -> Iterator[Finding]:
    """Name the tests that ran and do not stand for the criterion, those that failed first."""
    about, unstable = about.but(expected="passed", evidence=LOG), {test.id: ends for test, ends in run.unstable}
    failing = [test for test in bound if test.outcome in BAD]
    doubtful = [t for t in bound if t.outcome not in BAD and (not t.passed or t.id in unstable)]
    for test in [*failing, *doubtful]:
        ended = test.ended if not test.passed else unstable[test.id]
        message = f"{test.id} {ended}: {test.reason}" if test.message else f"{test.id} {ended}"
        own = about.but(subject=test.id, actual=ended, location=test.crash or test.location)
        if test.outcome in BAD:
            yield own.failed(message, "Make the test pass.", command=f"python -m pytest {shlex.quote(test.id)}")
        else:
            yield own.unknown(message, _to_mend(criterion, test), follows=not run.complete)  # from what broke it off


def _to_mend(criterion: Criterion, test: TestRecord) -> str:
    """Return what to do of a test that proves nothing: one that a whole file brought along may be of something else."""
    file = next((path for path in criterion.tests if "::" not in path and is_under(test.id, path)), "")
    other = f", or name in {criterion.id} the tests of {file} that are about it" if file else ""
    return f"Run the test where it can run{other}; as it is, it proves nothing."


def _passed(about: About, name: str, bound: list[TestRecord], *, believed: bool) -> Finding:
    count, about = len(bound), about.but(location=bound[0].location, expected="all passed", evidence=LOG)
    if not believed:
        message = f"The tests of {name} prove nothing: the run cannot be believed (EX001)."
        return about.unknown(message, "Fix the run first.", actual="the run cannot be believed", follows=True)
    message = f"{counted(count, 'test')} {'verifies' if count == 1 else 'verify'} {name}, all passed."
    return about.passed(message, actual=f"{count} of {count} passed")


def judge_markers(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Refuse markers that name no criterion of the task, or are none: a test would verify nothing, unseen."""
    run, about = evidence.get(PytestRun), About(rule="BL004", check="markers")
    if run is None:
        message = f"The markers were not seen: {evidence.why_missing(PytestRun)}"
        yield about.unknown(message, level=Level.ADVISORY)
        return
    found = [*_loose(task, run)]
    impact = "The test verifies nothing, and the criterion it means has one less."
    for subject, place, message, fix in found:
        severe = about.but(severity=Severity.HIGH, impact=impact)
        yield severe.failed(message, fix, subject=subject, location=place)
    if not found:
        marked = sum(any(m.startswith(f"{task.id}/") for m in test.criteria) for test in run.tests)
        message = f"{marked} tests are marked for criteria of {task.id}, each of which exists."
        outcome = Outcome.PASSED if run.tests else Outcome.UNKNOWN
        yield about(outcome, message, severity=Severity.INFO, level=Level.ADVISORY)


def _loose(task: Task, run: PytestRun) -> Iterator[tuple[str, Location, str, str]]:
    """Yield the markers that bind nothing: what each is about, its place, what is wrong with it and what to do."""
    known, own = {f"{task.id}/{criterion.id}" for criterion in task.criteria}, f"{task.id}/"
    tests: list[TestRecord | LeftOut] = [*run.tests, *run.out(Out.DESELECTED)]
    for (test, name), place in {(t.id, name): t.location for t in tests for name in t.criteria}.items():
        formed, ours = FORM.fullmatch(name), name.startswith(own)
        # of this task's, others than asked for are not looked at (--only); of other tasks `gates trace` speaks
        if name not in known and (not task.only if ours else not formed):
            says = "does not exist" if formed else "has not the form TASK/CRITERION"
            message = f"{test} is marked for {name!r}, which {says}{meant(name, known)}"
            yield f"{test} {name}", place, message, "Fix the marker's id."
    near = {(t.function, mark, name): t.location for t in run.tests for mark, name in t.near if name in known}
    for (test, mark, name), place in near.items():
        message = f"pytest.mark.{mark} of {test} names {name!r} and binds no test to anything."
        yield f"{test} {name}", place, message, 'Write pytest.mark.criterion("TASK/CRITERION").'


USES = (SourceTree, PytestRun, CalledCode, EmptiedCode)
CHECK = Check("criteria", "business-logic", 10, RULES, USES, plan, judge, page)
