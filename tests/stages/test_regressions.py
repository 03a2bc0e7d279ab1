"""PF009: what a comparison with the baseline says, and when it says nothing."""

import pytest
from building import a_criterion, a_measure, evidence
from regressing import QUICK, a_regressing_task, compared, sides, taken
from taking import OLD, a_taken, some_samples
from taking import seen as measured

from gates.check import EvidenceSet
from gates.checks.measures.base.collect import Regressions
from gates.checks.measures.judge import judge as judge_targets
from gates.checks.measures.regressions import describe, judge, plan
from gates.evidence.measurements import Measurements
from gates.model import Finding, Level, Outcome, Severity
from gates.task.selection import narrowed
from gates.task.task import Task

F, P, U, N = Outcome.FAILED, Outcome.PASSED, Outcome.UNKNOWN, Outcome.NOT_APPLICABLE


def judged(seen: Regressions | None, task: Task | None = None) -> list[Finding]:
    asked = task or a_regressing_task()
    findings = list(judge(asked, evidence(*([seen] if seen else []))))
    assert [check.id for check in plan(asked)] == [finding.check for finding in findings]
    return findings


def outcomes(seen: Regressions | None, task: Task | None = None) -> tuple[Outcome, ...]:
    return tuple(finding.outcome for finding in judged(seen, task))


@pytest.mark.parametrize(
    ("times", "expected"),
    [(0.5, (P, P)), (1.0, (P, P)), (1.4, (P, P)), (1.7, (P, F)), (1.99, (P, F)), (2.01, (F, F)), (9.0, (F, F))],
)
def test_a_half_slower_warns_and_twice_as_slow_blocks(times: float, expected: tuple[Outcome, ...]) -> None:
    block, warn = judged(compared(sides(times)))
    assert (block.outcome, warn.outcome) == expected
    assert (block.level, warn.level) == (Level.MUST, Level.SHOULD)
    assert not warn.blocks
    assert block.blocks is (block.outcome is F)


def test_limits_are_the_tasks_and_the_warning_is_never_above_what_blocks() -> None:
    assert outcomes(compared(sides(1.2)), a_regressing_task({"block_at": 0.1})) == (F, F)
    assert outcomes(compared(sides(1.2)), a_regressing_task({"warn_at": 0.1})) == (P, F)
    assert outcomes(compared(sides(3.0)), a_regressing_task({"warn_at": 3, "block_at": 4})) == (P, P)


def test_of_a_rate_less_is_worse() -> None:
    task = a_regressing_task({"of": "items_per_s"})
    assert outcomes(compared(sides(0.4, "items_per_s")), task) == (F, F)
    assert outcomes(compared(sides(2.5, "items_per_s")), task) == (P, P)


def test_the_finding_names_both_sides_and_the_raw_file() -> None:
    block, warn = judged(compared(sides(2.5)))
    assert block.message == (
        "step_time_s of bench on any: candidate over baseline is 2.5 [2.5, 2.5] from 16 samples, "
        "the baseline at main (bbbbbbbbbbbb): it is more than 100 % worse."
    )
    assert warn.message.endswith("it is more than 50 % worse.")
    assert (block.expected, block.actual) == ("<= 2", "2.5 [2.5, 2.5]")
    assert str(block.location) == "tasks/T1.yaml:20"
    assert block.evidence == "regressions/bench-work-any.json"
    assert "git diff bbbbbbbbbbbb -- pkg" in block.remediation
    assert (block.severity, warn.severity) == (Severity.CRITICAL, Severity.MEDIUM)


def test_an_interval_around_a_limit_is_open() -> None:
    noisy = [1.0 + (i % 4) / 4 for i in range(16)]
    seen = compared(sides(baseline=noisy).model_copy(update={"metrics": {}}))
    assert outcomes(seen) == (U, U)
    values = {"baseline": [1.0] * 16, "candidate": [1.9, 2.1] * 8}
    metric = sides().metrics["step_time_s"].model_copy(update={"arms": {k: tuple(v) for k, v in values.items()}})
    assert outcomes(compared(sides().model_copy(update={"metrics": {"step_time_s": metric}}))) == (U, F)


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (compared(changed=(), runs=()), "nothing has changed since main (bbbbbbbbbbbb): there is nothing to compare"),
        (compared(is_new=True, runs=()), "main (bbbbbbbbbbbb) has no file of the implementation"),
    ],
)
def test_where_there_is_nothing_to_compare_it_neither_passes_nor_fails(seen: Regressions, why: str) -> None:
    block, warn = judged(seen)
    assert (block.outcome, warn.outcome) == (N, N)
    assert why in block.message
    (section,) = describe(a_regressing_task(), evidence(seen))
    assert not section.rows


@pytest.mark.parametrize(
    "seen",
    [
        compared(problem="baseline: ModuleNotFoundError: no module named 'pkg'"),
        compared(problem="", runs=()).model_copy(update={"problem": "the baseline does not build: exit code 1"}),
        compared(seen=taken(threads=4)),
        compared(seen=taken(copies=((1.0, 2.0),) * 8)),
        None,
    ],
    ids=["arm failed", "no build", "unfit", "copies differ", "not collected"],
)
def test_what_was_not_seen_is_unknown(seen: Regressions | None) -> None:
    block, warn = judged(seen)
    assert (block.outcome, warn.outcome) == (U, U)
    assert block.leaves_open
    assert not warn.leaves_open
    assert block.remediation
    assert list(describe(a_regressing_task(), evidence(*([seen] if seen else []))))


def test_unequal_results_are_no_comparison_where_the_task_asks_for_equal_ones() -> None:
    task = a_regressing_task()
    strict = task.model_copy(update={"measurements": (task.measurements[0].model_copy(update={"same_result": True}),)})
    same = taken(digests={"baseline": ("a",), "candidate": ("a",)})
    other = taken(digests={"baseline": ("a",), "candidate": ("b",)})
    assert outcomes(compared(seen=same), strict) == (P, P)
    assert outcomes(compared(seen=other), strict) == (U, U)
    assert outcomes(compared(seen=taken()), strict) == (U, U)
    assert outcomes(compared(seen=other), task) == (P, P)


def hardly_twice_as_slow() -> Regressions:
    """Above what blocks, but for three pairs."""
    just = sides(2.01).metrics["step_time_s"].arms
    values = {"baseline": just["baseline"], "candidate": (1.5, 1.5, 1.5, *just["candidate"][3:])}
    metric = sides().metrics["step_time_s"].model_copy(update={"arms": values})
    return compared(sides().model_copy(update={"metrics": {"step_time_s": metric}}), taken(restarts=()))


def test_several_failures_share_the_error() -> None:
    alone = outcomes(hardly_twice_as_slow())[0]
    shared = outcomes(hardly_twice_as_slow(), a_regressing_task({}, {}, {}, {}))[0]
    assert (alone, shared) == (F, U)


@pytest.mark.parametrize(("level", "outcome"), [("must", U), ("should", F)])
def test_failures_share_the_error_with_the_targets_that_are_required(level: str, outcome: Outcome) -> None:
    hardly = some_samples(new=[value / 3 for value in OLD[:3]] + [value / 2 for value in OLD[3:]])
    (run,) = measured(hardly, a_taken(restarts=(), most=16)).runs
    targets = Measurements(how="arms in turn", runs=(run.model_copy(update={"id": "two"}),))
    criteria = [a_criterion(measures=[a_measure(**{"from": "two", "at_least": 2.2})] * 3, level=level)]
    arms = {"old": {"call": "bench:old"}, "new": {"call": "bench:new"}}
    bench = {**QUICK, "arms": {"work": {"call": "bench:make_step"}}}
    task = a_regressing_task(criteria=criteria, measurements=[bench, {"id": "two", "arms": arms}])
    seen = evidence(hardly_twice_as_slow(), targets)
    assert next(iter(judge(task, seen))).outcome is outcome
    assert {finding.outcome for finding in judge_targets(task, seen)} == {outcome}


def test_a_regression_speaks_for_its_criteria() -> None:
    task = a_regressing_task({"criteria": ["AC1", "AC2"]})
    first, second, warn = judged(compared(sides(3.0)), task)
    assert [one.criterion for one in (first, second, warn)] == ["AC1", "AC2", None]
    only = judged(compared(sides(3.0)), narrowed(task, "AC2"))
    assert [one.criterion for one in only] == ["AC2", None]


def test_a_device_that_was_not_measured_is_unknown() -> None:
    task = a_regressing_task({"on": "cuda"})
    assert outcomes(compared(), task) == (U, U)


def test_a_task_without_regressions_says_nothing_of_them() -> None:
    task = a_regressing_task(regressions=[])
    assert [*plan(task), *judge(task, EvidenceSet()), *describe(task, EvidenceSet())] == []
