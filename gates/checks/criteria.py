"""Criteria: traced to live code, verified by tests; and the markers that bind tests."""

import re
from collections.abc import Iterator, Sequence
from functools import partial

from gates.check import About, Check, EvidenceSet, about_criterion
from gates.code.symbols import SymbolTrace
from gates.evidence.called_code import CalledCode
from gates.evidence.recorded_step import Seen, seen_of
from gates.evidence.source_tree import PatternTrace, RuleTrace, SourceTree
from gates.evidence.tests.pytest_run import LOG, PytestRun, tests_of
from gates.evidence.tests.test_records import BAD, LeftOut, Out, TestRecord
from gates.model import Basis, Finding, Level, Outcome, Planned, Row, Severity
from gates.project.files import is_under
from gates.proving.emptied_code import EmptiedCode, EmptiedSymbol
from gates.report import Section
from gates.scan.rule import Site
from gates.task.measurement import CodeBinding
from gates.task.task import TASK_ID, Criterion, Task
from gates.words import counted, in_shell, meant

Findings = Iterator[Finding]
NONE = "The criterion has no implementation."
FORM = re.compile(rf"{TASK_ID.pattern}/{TASK_ID.pattern}")


def plan(task: Task) -> Iterator[Planned]:
    """Plan for each criterion its code and its tests, and the markers."""
    for criterion in task.criteria:
        about = partial(Planned, level=criterion.level, criterion=criterion.id)
        title = f"{criterion.id} is traced to live code"
        yield about(id=f"code:{criterion.id}", title=title, basis=Basis.READ, row=Row.CODE)
        yield about(id=f"tests:{criterion.id}", title=f"{criterion.id} is verified by tests")
    yield Planned(id="markers", title="Markers name criteria that exist")


def judge(task: Task, evidence: EvidenceSet) -> Findings:
    """Judge each criterion by its code and its tests, and the markers."""
    for criterion in task.criteria:
        yield from judge_code(task, criterion, evidence)
        otherwise = criterion.measures or task.shown_by(criterion)  # then no test must speak for it
        yield from judge_tests(task, criterion, evidence, asked=bool(criterion.tests) or not otherwise)
    yield from judge_markers(task, evidence)


def judge_tests(task: Task, criterion: Criterion, evidence: EvidenceSet, *, asked: bool = True) -> Findings:
    """Judge the tests of a criterion, by markers also where none is `asked` for; what did not run shows nothing."""
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


def _left_out(about: About, task: Task, criterion: Criterion, run: PytestRun) -> Findings:
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


def _not_passed(about: About, criterion: Criterion, bound: list[TestRecord], run: PytestRun) -> Findings:
    """Name the tests that ran and do not stand for the criterion, those that failed first."""
    about, unstable = about.but(expected="passed", evidence=LOG), {test.id: ends for test, ends in run.unstable}
    doubtful = [test for test in bound if not test.passed or test.id in unstable]
    for test in sorted(doubtful, key=lambda test: test.outcome not in BAD):
        ended = test.ended if not test.passed else unstable[test.id]
        message = f"{test.id} {ended}: {test.reason}" if test.message else f"{test.id} {ended}"
        own = about.but(subject=test.id, actual=ended, location=test.crash or test.location)
        if test.outcome in BAD:
            yield own.failed(message, "Make the test pass.", command=in_shell(["python", "-m", "pytest", test.id]))
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


def judge_markers(task: Task, evidence: EvidenceSet) -> Findings:
    """Refuse markers that name no criterion of the task, or are none: a test would verify nothing, unseen."""
    run, about = evidence.get(PytestRun), About(rule="BL004", check="markers")
    if run is None:
        message = f"The markers were not seen: {evidence.why_missing(PytestRun)}"
        yield about.unknown(message, level=Level.ADVISORY)
        return
    impact = "The test verifies nothing, and the criterion it means has one less."
    found = [*_loose(about.but(severity=Severity.HIGH, impact=impact), task, run)]
    yield from found
    if not found:
        marked = sum(any(m.startswith(f"{task.id}/") for m in test.criteria) for test in run.tests)
        message = f"{marked} tests are marked for criteria of {task.id}, each of which exists."
        outcome = Outcome.PASSED if run.tests else Outcome.UNKNOWN
        yield about(outcome, message, severity=Severity.INFO, level=Level.ADVISORY)


def _loose(about: About, task: Task, run: PytestRun) -> Findings:
    known, own = {f"{task.id}/{criterion.id}" for criterion in task.criteria}, f"{task.id}/"
    tests: list[TestRecord | LeftOut] = [*run.tests, *run.out(Out.DESELECTED)]
    for (test, name), place in {(t.id, name): t.location for t in tests for name in t.criteria}.items():
        formed, ours = FORM.fullmatch(name), name.startswith(own)
        # of this task's, others than asked for are not looked at (--only); of other tasks `gates trace` speaks
        if name not in known and (not task.only if ours else not formed):
            says = "does not exist" if formed else "has not the form TASK/CRITERION"
            message = f"{test} is marked for {name!r}, which {says}{meant(name, known)}"
            yield about.failed(message, "Fix the marker's id.", subject=f"{test} {name}", location=place)


def judge_code(task: Task, criterion: Criterion, evidence: EvidenceSet) -> Findings:
    """Trace a criterion to code: the symbol must exist, do something, and use what it is bound to use."""
    about = about_criterion(criterion, "BL001", f"code:{criterion.id}", location=task.place(criterion))
    tree, emptied = evidence.get(SourceTree), evidence.get(EmptiedCode)
    promised = {(one.criterion, one.symbol): one for one in (emptied.symbols if emptied else ()) if one.promise}
    if not criterion.code:
        said = f"{criterion.id} names no code, so nothing shows where it is implemented."
        yield about.unknown(said, f"Name the symbols that implement {criterion.id} under 'code'.", actual="no binding")
    for binding in criterion.code:
        own = about.but(location=task.place(binding), subject=binding.name)
        if tree is None:
            message = f"{binding.name} was not traced: {evidence.why_missing(SourceTree)}"
            fix = "Fix 'implementation' of the task, or what keeps its files from being read."
            yield own.unknown(message, fix, actual="not looked at")
            continue
        if binding.rule:
            yield from _by_rule(own, binding.name, tree, tree.rule(binding.rule), seen_of(binding.rule, evidence))
        elif binding.pattern:
            yield from _by_pattern(own, binding, tree.pattern(binding))
        else:
            yield from _by_symbol(own, binding, tree.symbol(binding), promised.get((criterion.id, binding.name)))
        yield from _watchful(own, task, criterion, binding, tree)


def _absent(about: About, message: str, fix: str, **own: object) -> Finding:
    """Say that code is not there; what rests on not finding something is high at most."""
    found = about.failed(message, fix, impact=NONE, **own)
    return found.model_copy(update={"severity": Severity.HIGH}) if found.severity is Severity.CRITICAL else found


def _by_symbol(about: About, binding: CodeBinding, trace: SymbolTrace | None, kept: EmptiedSymbol | None) -> Findings:
    name = binding.name
    about = about.but(expected=f"{name} exists" + (f" and uses {', '.join(binding.uses)}" if binding.uses else ""))
    kept = None if binding.uses else kept
    if trace is None or not trace.checked:
        message = f"{name}: {trace.problem if trace else 'was not traced'}"
        yield about.unknown(message, "Fix the file first.", actual="not checked")
    elif trace.location is not None:
        yield from _uses(about.but(location=trace.location), name, trace)
    elif kept is not None and kept.noticed:
        message = f"{name} does nothing, and {kept.by or 'a test'} asserts that it does so."
        yield about.passed(message, location=trace.promise, actual="found")
    elif kept is not None and (kept.unnoticed or kept.exchanged):
        message = f"{name} does nothing, and no test of {kept.criterion} notices what it is: {trace.problem}."
        fix = f"Assert on what {name} is there for, or bind the criterion to the code that does it."
        yield about.unknown(message, fix, location=trace.promise, actual="nothing noticed")
    else:
        fix = f"Implement {name}, or bind the criterion to the code that does."
        message = f"{name} is not implemented: {trace.problem}"
        yield about.failed(message, fix, actual="not implemented", impact=NONE, absent=True)


def _uses(about: About, name: str, trace: SymbolTrace) -> Findings:
    """Judge what a symbol must use: a name that is not written may still be looked up, where code does such."""
    unused = [use for use in trace.uses if not use.lines]
    for missing in unused:
        own, fix = about.but(subject=f"{name} uses {missing.name}"), f"Use {missing.name} in {name}."
        if missing.looked_up:
            message = f"{name} does not name {missing.name}, and looks names up: whether it uses it is unknown."
            yield own.unknown(message, fix, actual="names are looked up")
        else:
            yield _absent(own, f"{name} does not use {missing.name}.", fix, actual=f"no live use of {missing.name}")
    if not unused:
        used = "; ".join(f"{use.name} in line {', '.join(map(str, use.lines))}" for use in trace.uses)
        yield about.passed(f"{name} is live code{f' and uses {used}' if used else ''}.", actual="found")


def _by_rule(about: About, name: str, tree: SourceTree, trace: RuleTrace | None, steps: Sequence[Seen]) -> Findings:
    yield from _recorded_as_broken(about, name, steps)
    if trace is None or trace.problem or tree.unparsed:
        why = trace.problem if trace and trace.problem else "; ".join(tree.unparsed) or "it was not applied"
        yield about.unknown(f"{name} could not be checked: {why}", "Fix what is named.", actual="not checked")
        return
    for site in trace.sites:
        own = about.but(location=site.location, subject=f"{name} {site.message}", expected=name)
        yield _at_site(own, name, trace, site, steps)
    if not trace.sites:
        message = f"{name} finds no code that it speaks of: nothing shows that the criterion is implemented."
        fix = "Implement what the rule describes, or bind the criterion to the code that does."
        yield about.unknown(message, fix, actual="found nothing", expected=name)


def _at_site(about: About, name: str, trace: RuleTrace, site: Site, steps: Sequence[Seen]) -> Finding:
    """Judge a place that a rule speaks of: a recording of its lines knows better than reading."""
    kept = next((step.name for step in steps if step.events >= {*site.trace}), "") if site.trace else ""
    message, path = f"{name}: {site.message}", " -> ".join(site.trace)
    if kept and not site.ok and not any(step.broken for step in steps):
        seen = f"Read as broken ({site.message}). {kept} ran these lines, and its recording keeps {name}."
        return about.passed(seen, actual="recorded in the right order")
    if site.ok:
        return about.passed(message, actual="kept")
    if site.undecided:
        fix = "Split the function, so that its paths can be followed."
        return about.unknown(message, fix, actual=path or "not decided")
    command = f"gates explain {trace.rule}"
    fix = trace.fix or f"See `{command}`."
    return about.failed(message, fix, actual=path or "broken", impact=trace.impact, command=command)


def _recorded_as_broken(about: About, name: str, steps: Sequence[Seen]) -> Findings:
    """Tell of what a recorded step did against a rule, whatever reading says of its lines."""
    for place, (step, breach) in {str(b.place.location): (s, b) for s in steps for b in s.broken}.items():
        order, path = breach.rule, " -> ".join(f"{event.word} {event.location}" for event in breach.trace)
        own = about.but(location=breach.place.location, subject=f"{name} recorded {place}", expected=name)
        message = f"{name}, recorded in {step.name}: {order.problem}"
        yield own.failed(message, order.fix, actual=path, impact=order.impact)


def _by_pattern(about: About, binding: CodeBinding, trace: PatternTrace | None) -> Findings:
    name, count = binding.name, binding.at_least
    about = about.but(expected=f"{count} place{'s' if count > 1 else ''} of live code")
    if trace is None or not trace.checked:
        message = f"{name}: {trace.problem if trace else 'was not applied'}"
        yield about.unknown(message, "Fix the file first.", actual="not checked")
        return
    if trace.problem:
        at = about.but(location=trace.places[0]) if trace.places else about
        fix = "Write the code that the pattern describes where it runs, or bind the criterion to the code that does it."
        yield _absent(at, f"{name} is not implemented: {trace.problem}.", fix, actual=f"{len(trace.places)} of {count}")
        return
    for number, found in enumerate(trace.places, 1):
        own = about.but(location=found, subject=name if number == 1 else f"{name} #{number}")
        yield own.passed(f"{name} fits live code in {found}.", actual="found")


def _watchful(about: About, task: Task, criterion: Criterion, binding: CodeBinding, tree: SourceTree) -> Findings:
    """Say so of code that asks whether a test looks on, where nothing but tests shows what it does."""
    seen = next((one for one in tree.watchful if one.symbol == binding.symbol), None)
    if seen is None or criterion.measures or any(criterion.id in entry.criteria for entry in task.entry_points):
        return
    message = f"{binding.name} asks whether a test looks on ({seen.asks}): what it does without one was not seen."
    fix = "Let it do the same for everybody, or let an entry point show the criterion."
    yield about.unknown(message, fix, location=seen.location, subject=f"{binding.name} in use", actual=seen.asks)


KEPT = {Outcome.PASSED: "yes", Outcome.FAILED: "no"}


def page(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell what was traced: the code of each criterion, what it must be and use, and what it is."""
    if (tree := evidence.get(SourceTree)) is None:
        yield Section(title="Files Read", text=f"None: {evidence.why_missing(SourceTree)}.")
        return
    rows = [
        (KEPT.get(f.outcome, "not checked"), f.subject or f.criterion or "", f.expected, f"{f.location}: {f.message}")
        for criterion in task.criteria
        for f in judge_code(task, criterion, evidence)
    ]
    title, columns = "Expected and Actual Architecture", ("Kept", "Code", "Expected", "Actual")
    text = "What the code that criteria are bound to must be and use, and what it does."
    yield Section(title=title, text=text, columns=columns, rows=tuple(dict.fromkeys(rows)))
    metrics = (
        ("Files analysed", str(tree.files)),
        ("Files not parsed", "; ".join(tree.unparsed) or "none"),
        ("Requirements traced", str(len(task.criteria))),
        ("Symbols resolved", f"{sum(t.location is not None for t in tree.symbols)} of {len(tree.symbols)}"),
        ("Code rules applied", str(len(tree.rules))),
        *([("Patterns applied", str(len(tree.patterns)))] if tree.patterns else ()),
    )
    yield Section(title="Metrics of this Verification", facts=metrics)


CHECK = Check("criteria", "business-logic", 10, (SourceTree, PytestRun, CalledCode, EmptiedCode), plan, judge, page)
