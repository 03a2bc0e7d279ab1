"""The business logic gate, judged on built evidence: code that is live, tests that passed, shares that are exact."""

from dataclasses import replace

import pytest
from building import a_criterion, a_measure, a_record, a_run, a_task, a_tree, all_evidence, evidence, folded
from recording import ORDER, a_recorded, happened, recorded

from gates.code.symbols import SymbolTrace, Use
from gates.criteria import stand
from gates.evidence.source_tree import RuleTrace, SourceTree, Watchful
from gates.evidence.tests.test_records import LeftOut, Out, TestOutcome
from gates.model import Finding, Level, Location, Outcome, Severity, Status
from gates.pipeline import judge as judge_gate
from gates.scan.rule import Site
from gates.stages import BUSINESS_LOGIC as GATE
from gates.task.task import Task, narrowed

P, F, U, N = Outcome.PASSED, Outcome.FAILED, Outcome.UNKNOWN, Outcome.NOT_APPLICABLE
ONE = a_task(criteria=[a_criterion()], measurements=[])


def bl(task: Task, rule: str, *pieces: object) -> list[Finding]:
    return [f for f in GATE.judge(task, all_evidence(task, *pieces)) if f.rule == rule]  # type: ignore[arg-type]  # built pieces


def only(task: Task, rule: str, *pieces: object) -> Finding:
    (finding,) = bl(task, rule, *pieces)
    return finding


def with_symbol(**changes: object) -> SourceTree:
    facts = {"symbol": "pkg.core:double", "wanted": (), "location": Location(path="pkg/core.py", line=1), **changes}
    return SourceTree(how="", files=1, symbols=(SymbolTrace.model_validate(facts),), rules=(), unparsed=())


def test_good_evidence_passes_every_check() -> None:
    task = a_task()
    assert [(f.check, f.outcome) for f in GATE.judge(task, all_evidence(task))] == [
        ("code:AC1", P), ("tests:AC1", P), ("code:AC2", P), ("tests:AC2", N), ("markers", P),
        ("emptied:AC1", P), ("emptied:AC2", N), ("changed-lines", P), ("assertions:AC1", P), ("assertions:AC2", N),
        ("called:AC1", P), ("called:AC2", P), ("goalposts", P), ("base-tests", P),
    ]  # fmt: skip


def test_symbol_that_is_not_there_is_not_implemented() -> None:
    finding = only(ONE, "BL001", with_symbol(location=None, problem="pkg/core.py defines no 'double'"))
    assert (finding.outcome, finding.actual, finding.severity) == (F, "not implemented", Severity.CRITICAL)
    assert str(finding.location) == "tasks/T1.yaml:9"


def test_symbol_that_was_not_checked_is_unknown() -> None:
    finding = only(ONE, "BL001", with_symbol(location=None, checked=False, problem="not checked, pkg/core.py:1: bad"))
    assert finding.outcome is U


def test_each_use_that_is_missing_fails_by_name() -> None:
    task = a_task(criteria=[a_criterion(code=[{"symbol": "pkg.core:double", "uses": ["a.b", "c.d"]}])])
    uses = (Use(name="a.b", lines=()), Use(name="c.d", lines=(2, 3)))
    finding = only(task, "BL001", with_symbol(wanted=("a.b", "c.d"), uses=uses))
    assert (finding.outcome, finding.severity) == (F, Severity.HIGH)
    assert finding.message == "pkg.core:double does not use a.b."


def test_use_that_may_be_looked_up_is_unknown() -> None:
    task = a_task(criteria=[a_criterion(code=[{"symbol": "pkg.core:double", "uses": ["a.b"]}])])
    use = Use(name="a.b", lines=(), looked_up=True)
    assert only(task, "BL001", with_symbol(wanted=("a.b",), uses=(use,))).outcome is U


RULED = a_task(criteria=[a_criterion(code=[{"rule": "amp-step-order"}])])


def ruled(*sites: Site, problem: str = "", unparsed: tuple[str, ...] = ()) -> SourceTree:
    trace = RuleTrace(rule="amp-step-order", sites=sites, problem=problem)
    return SourceTree(how="", files=1, symbols=(), rules=(trace,), unparsed=unparsed)


def site(*, ok: bool, line: int = 1) -> Site:
    return Site("pkg/core.py", line, line, ok=ok, message=f"line {line}")


def test_rule_passes_and_fails_by_site() -> None:
    seen = bl(RULED, "BL001", ruled(site(ok=True), site(ok=False, line=2)))
    assert [(f.outcome, str(f.location)) for f in seen] == [(P, "pkg/core.py:1"), (F, "pkg/core.py:2")]


READ = ("scaled_backward pkg/train.py:7", "clip pkg/train.py:7")


@pytest.mark.parametrize(
    ("order", "trace", "expected"),
    [(ORDER, READ, [P]), (ORDER, (*READ[:1], "clip pkg/train.py:8"), [F]), (ORDER, (), [F]),
     ((*ORDER[:5], "clip", "unscale", *ORDER[7:]), READ, [F, F])],
    ids=["read as broken and recorded as kept", "a line that was not recorded", "no path", "broken in both"],
)  # fmt: skip
def test_recorder_decides_where_it_saw_the_lines_that_were_read(
    order: tuple[str, ...], trace: tuple[str, ...], expected: list[Outcome]
) -> None:
    run = recorded(a_recorded(events=happened(*order)))
    assert [f.outcome for f in bl(RULED, "BL001", ruled(replace(site(ok=False), trace=trace)), run)] == expected


def test_what_is_read_as_kept_and_recorded_as_broken_fails() -> None:
    events = happened(*ORDER[:5], "clip", "unscale", *ORDER[7:])
    broken, kept = bl(RULED, "BL001", ruled(site(ok=True)), recorded(a_recorded(events=events)))
    assert (broken.outcome, str(broken.location), kept.outcome) == (F, "pkg/train.py:7", P)
    assert "amp-step-order, recorded in pkg.train:few(2): Gradients are clipped" in broken.message


def test_rule_that_finds_nothing_shows_nothing() -> None:
    finding = only(RULED, "BL001", ruled())
    assert (finding.outcome, finding.actual) == (U, "found nothing")


@pytest.mark.parametrize("tree", [ruled(site(ok=True), unparsed=("pkg/x.py:1: bad",)), ruled(problem="no rule 'x'")])
def test_rule_is_unknown_where_not_everything_was_looked_at(tree: SourceTree) -> None:
    assert only(RULED, "BL001", tree).outcome is U


def test_criterion_without_code_is_unknown() -> None:
    assert only(a_task(criteria=[a_criterion(code=[])]), "BL001").outcome is U


@pytest.mark.parametrize(
    ("end", "expected"),
    [(TestOutcome.PASSED, P), (TestOutcome.FAILED, F), (TestOutcome.ERROR, F), (TestOutcome.SKIPPED, U),
     (TestOutcome.XFAILED, U), (TestOutcome.XPASSED, U), (TestOutcome.NOT_RUN, U)],
)  # fmt: skip
def test_bound_test_stands_for_its_criterion_only_when_it_passed(end: TestOutcome, expected: Outcome) -> None:
    finding = only(ONE, "BL002", a_run(a_record(end)))
    assert (finding.outcome, finding.command.startswith("python -m pytest tests/")) == (expected, expected is F)


def test_one_skipped_among_many_passed_leaves_the_criterion_open() -> None:
    run = a_run(a_record(), a_record(TestOutcome.SKIPPED, id="tests/test_core.py::test_other"))
    assert [f.outcome for f in bl(ONE, "BL002", run)] == [U]


def test_passed_tests_of_an_unbelieved_run_prove_nothing() -> None:
    assert only(ONE, "BL002", a_run(disagreements=("they differ",))).outcome is U


def test_path_under_which_no_test_ran_is_unknown() -> None:
    finding = only(ONE, "BL002", a_run(a_record(id="tests/test_other.py::test_x")))
    assert (finding.outcome, finding.message) == (U, "No test of tests/test_core.py was run.")


@pytest.mark.parametrize(
    ("path", "bound"),
    [("tests", True), ("tests/", True), ("tests/test_core.py", True), ("tests/test_core.py::test_double", True),
     ("tests/test_cor", False), ("tests/test_core.py::test_dou", False), ("test_core.py", False)],
)  # fmt: skip
def test_path_binds_whole_names_only(path: str, *, bound: bool) -> None:
    assert (only(a_task(criteria=[a_criterion(tests=[path])]), "BL002").outcome is P) == bound


def test_parameters_of_a_named_test_are_bound() -> None:
    task = a_task(criteria=[a_criterion(tests=["tests/test_core.py::test_x"])])
    run = a_run(a_record(id="tests/test_core.py::test_x[1]"), a_record(id="tests/test_core.py::test_xy"))
    assert only(task, "BL002", run).actual == "1 of 1 passed"


def test_marker_binds_a_test_of_another_file() -> None:
    task = a_task(criteria=[a_criterion(tests=[])], entry_points=[])
    assert only(task, "BL002", a_run(a_record(id="tests/test_far.py::test_x", criteria=("T1/AC1",)))).outcome is P
    assert only(task, "BL002", a_run(a_record(id="tests/test_far.py::test_x", criteria=("T2/AC1",)))).outcome is U


def test_deselected_test_that_stands_for_a_criterion_leaves_it_open() -> None:
    where = Location(path="t.py", line=1)
    hidden = LeftOut(id="t.py::test_x", location=where, how=Out.DESELECTED, criteria=("T1/AC1",))
    assert only(ONE, "BL002", a_run(left_out=(hidden,))).actual == "deselected"


@pytest.mark.parametrize("certain", [True, False])
def test_test_that_never_ran_because_another_has_its_name_leaves_its_criterion_open(certain: bool) -> None:
    where = Location(path="tests/test_core.py", line=3)
    said = {"how": Out.UNPLANNED, "why": "it is defined again in line 9", "doubted": certain}
    replaced = LeftOut.model_validate({"id": "tests/test_core.py::test_double", "location": where, **said})
    finding = only(ONE, "BL002", a_run(left_out=(replaced,)))
    assert (finding.outcome, finding.actual, finding.location) == (U, "never planned", replaced.location)


def test_fifty_first_failure_still_fails() -> None:
    names = [f"tests/test_core.py::test_{i}" for i in range(60)]
    skipped = [a_record(TestOutcome.SKIPPED, id=f"{name}s") for name in names]
    failed = [a_record(TestOutcome.FAILED, id=name) for name in names]
    for run in (a_run(*skipped, *failed), a_run(*failed)):
        assert [f.outcome for f in bl(ONE, "BL002", run)].count(F) == 51


def test_code_alone_never_passes_a_criterion() -> None:
    task = a_task(criteria=[a_criterion(tests=[])], entry_points=[], measurements=[])
    report = judge_gate(GATE, task, all_evidence(task))
    assert only(task, "BL002").outcome is U
    assert stand(task, task.criteria[0], [report], a_run()).status is Status.UNVERIFIED


def covered(task: Task, *pieces: object) -> tuple[Outcome, str]:
    report = folded(task, all_evidence(task, *pieces), [GATE])  # type: ignore[arg-type]  # built pieces
    (finding,) = [finding for finding in report.every_finding if finding.rule == "BL003"]
    return finding.outcome, finding.actual


def of_criteria(passed: int, failed: int, unseen: int, **changes: object) -> tuple[Task, tuple[object, ...]]:
    names = [f"AC{i}" for i in range(1, passed + failed + unseen + 1)]
    task = a_task(
        criteria=[a_criterion(id=name, tests=[f"tests/{name}.py"]) for name in names],
        entry_points=[],
        measurements=[],
        **changes,
    )
    ends = [TestOutcome.PASSED] * passed + [TestOutcome.FAILED] * failed + [TestOutcome.SKIPPED] * unseen
    records = [a_record(end, id=f"tests/{name}.py::test_x") for name, end in zip(names, ends, strict=True)]
    return task, (a_run(*records),)


@pytest.mark.parametrize(
    ("passed", "failed", "unseen", "outcome", "actual"),
    [(5, 0, 0, P, "5/5 (100.0%)"), (4, 1, 0, P, "4/5 (80.0%)"), (3, 2, 0, F, "3/5 (60.0%)"),
     (4, 0, 1, P, "4/5 (80.0%)"), (3, 1, 1, U, "3/5 (60.0%)"), (3, 0, 2, U, "3/5 (60.0%)"), (2, 2, 1, F, "2/5 (40.0%)"),
     (0, 0, 5, U, "0/5 (0.0%)"), (0, 5, 0, F, "0/5 (0.0%)"), (2, 1, 0, F, "2/3 (66.7%)")],
)  # fmt: skip
def test_coverage_is_the_share_of_passed(passed: int, failed: int, unseen: int, outcome: Outcome, actual: str) -> None:
    task, pieces = of_criteria(passed, failed, unseen)
    assert covered(task, *pieces) == (outcome, actual)


def test_share_of_exactly_the_limit_passes_whatever_a_product_comes_to() -> None:
    task, pieces = of_criteria(11, 9, 0, coverage_at_least=0.55)
    assert covered(task, *pieces) == (P, "11/20 (55.0%)")


INSTEAD: dict[str, dict[str, object]] = {
    "hot_paths": {"call": "pkg.core:double", "limits": {"host_reads": 0}},
    "scaling": {"call": "pkg.core:double", "over": {"n": [1, 2, 4]}, "of": "python_calls", "exponent": {"at_most": 1}},
    "leaks": {"call": "pkg.core:double"},
    "training_steps": {"call": "pkg.core:double"},
    "entry_points": {"run": ["python", "-m", "pkg"]},
}


@pytest.mark.parametrize("name", INSTEAD)
def test_criterion_that_something_else_stands_for_lacks_no_test(name: str) -> None:
    facts: dict[str, object] = {"entry_points": [], "measurements": []}
    facts |= {name: [{**INSTEAD[name], "criteria": ["AC1"], "line": 9}]}
    task = a_task(criteria=[a_criterion(tests=[])], **facts)
    other = a_record(id="tests/test_other.py::test_it")
    assert only(task, "BL002", a_run(other)).outcome is N
    skipped = other.model_copy(update={"criteria": ("T1/AC1",), "outcome": TestOutcome.SKIPPED})
    assert only(task, "BL002", a_run(skipped)).outcome is U
    named = a_task(criteria=[a_criterion()], **facts)
    assert only(named, "BL002", a_run(a_record(id="tests/test_other.py::test_it"))).outcome is U


def test_code_that_asks_whether_a_test_looks_on_is_open_unless_something_else_shows_it() -> None:
    asks = Watchful(symbol="pkg.core:double", location=Location(path="pkg/core.py", line=2), asks="sys.gettrace()")
    seen = with_symbol().model_copy(update={"watchful": (asks,)})
    alone = a_task(criteria=[a_criterion()], measurements=[], entry_points=[])
    assert [f.outcome for f in bl(alone, "BL001", a_run(), seen)] == [P, U]
    entry = {"run": ["python", "-m", "pkg"], "criteria": ["AC1"], "line": 9}
    shown = a_task(criteria=[a_criterion()], measurements=[], entry_points=[entry])
    assert [f.outcome for f in bl(shown, "BL001", a_run(), seen)] == [P]


def test_markers_of_other_tasks_are_none_of_ours_and_own_ones_must_exist() -> None:
    assert only(ONE, "BL004", a_run(a_record(criteria=("T2/AC77", "T1/AC1")))).outcome is P
    missing = only(ONE, "BL004", a_run(a_record(criteria=("T1/AC12",))))
    said = "tests/test_core.py::test_double is marked for 'T1/AC12', which does not exist; did you mean 'T1/AC1'?"
    assert (missing.outcome, missing.message) == (F, said)
    assert only(narrowed(a_task(), "AC1"), "BL004", a_run(a_record(criteria=("T1/AC2",)))).outcome is P


@pytest.mark.parametrize("marker", ["AC1", "T1-AC1", "", "T1/", "T1/AC1 ", "T1/AC1/x", "7"])
def test_a_marker_that_is_not_of_the_form_is_refused(marker: str) -> None:
    finding = only(ONE, "BL004", a_run(a_record(criteria=(marker,))))
    assert (finding.outcome, finding.level) == (F, Level.MUST)


def test_unseen_markers_are_unknown() -> None:
    assert [f.outcome for f in GATE.judge(ONE, evidence(a_tree(ONE))) if f.rule == "BL004"] == [U]


@pytest.mark.parametrize(
    ("level", "severity"),
    [(Level.MUST, Severity.CRITICAL), (Level.SHOULD, Severity.MEDIUM), (Level.ADVISORY, Severity.LOW)],
)
def test_severity_follows_from_the_level(level: Level, severity: Severity) -> None:
    finding = only(a_task(criteria=[a_criterion(level=level)]), "BL002", a_run(a_record(TestOutcome.FAILED)))
    assert (finding.level, finding.severity) == (level, severity)


def test_measured_criterion_leaves_its_tests_to_the_performance_gate() -> None:
    assert only(a_task(criteria=[a_criterion(tests=[], measures=[a_measure()])]), "BL002").outcome is N


@pytest.mark.parametrize("bound", ["tests", "tests/test_two.py"])
def test_file_that_was_never_collected_leaves_its_criterion_open(bound: str) -> None:
    file = "tests/test_two.py"
    run = a_run(left_out=(LeftOut(id=file, location=Location(path=file), how=Out.UNCOLLECTED),))
    (finding, *_) = bl(a_task(criteria=[a_criterion(tests=[bound])]), "BL002", run)
    assert (finding.outcome, str(finding.location)) == (Outcome.UNKNOWN, "tests/test_two.py")
    assert "never collected" in finding.message
