"""PF001 of the arms `now` and `base`: what a comparison with the base says, and when it says nothing."""

import pytest
from building import evidence
from regressing import a_regressing_task, compared, sides, taken

from gates.checks.measures.collect import Regressions
from gates.checks.measures.judge import BASE, judge
from gates.criteria import unseen
from gates.model import Finding, Outcome, Status
from gates.task.task import Task

F, P, U, N = Outcome.FAILED, Outcome.PASSED, Outcome.UNKNOWN, Outcome.NOT_APPLICABLE


def judged(seen: Regressions | None, task: Task | None = None) -> list[Finding]:
    return list(judge(task or a_regressing_task(), evidence(*([seen] if seen else []))))


def outcome(seen: Regressions | None, task: Task | None = None) -> Outcome:
    (finding,) = judged(seen, task)
    return finding.outcome


@pytest.mark.parametrize(("times", "expected"), [(0.5, P), (1.0, P), (1.99, P), (2.01, F), (9.0, F)])
def test_what_takes_more_than_the_limit_over_the_base_fails(times: float, expected: Outcome) -> None:
    assert outcome(compared(sides(times))) is expected


def test_of_a_rate_less_is_worse() -> None:
    task = a_regressing_task({"of": "items_per_s", "ratio": ["base", "now"]})
    assert outcome(compared(sides(0.4, "items_per_s")), task) is F
    assert outcome(compared(sides(2.5, "items_per_s")), task) is P


def test_no_bundle_is_asked_for_that_could_not_bring_a_comparison_with_the_base() -> None:
    (finding,) = judged(None, a_regressing_task({"on": "cuda"}))
    assert (finding.command, "no bundle brings" in finding.remediation) == ("gates run T1", True)


def test_the_finding_names_both_sides_and_the_raw_file() -> None:
    (finding,) = judged(compared(sides(2.5)))
    assert finding.message == (
        "ratio now/base of step_time_s <= 2 on any: 2.5 [2.5, 2.5] from 16 samples misses the target, on a cpu"
    )
    assert (finding.expected, finding.actual, finding.criterion) == ("<= 2", "2.5 [2.5, 2.5], n = 16, on a cpu", "AC1")
    assert str(finding.location) == "tasks/T1.yaml:20"
    assert finding.evidence == "regressions/bench-work-any.json"


def test_an_interval_around_a_limit_is_open() -> None:
    values = {"base": [1.0] * 16, "now": [1.9, 2.1] * 8}
    metric = sides().metrics["step_time_s"].model_copy(update={"arms": {k: tuple(v) for k, v in values.items()}})
    assert outcome(compared(sides().model_copy(update={"metrics": {"step_time_s": metric}}))) is U
    assert outcome(compared(sides().model_copy(update={"metrics": {}}))) is U


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (compared(changed=(), runs=()), "nothing has changed since main (bbbbbbbbbbbb): there is nothing to compare"),
        (compared(is_new=True, runs=()), "main (bbbbbbbbbbbb) has no file of the implementation"),
    ],
)
def test_where_there_is_nothing_to_compare_no_limit_applies_and_no_gain_is_seen(seen: Regressions, why: str) -> None:
    for limit, expected in (({}, N), ({"ratio": ["base", "now"], "at_most": None, "at_least": 1.3}, U)):
        (finding,) = judged(seen, a_regressing_task(limit))
        assert (finding.outcome, why in finding.message) == (expected, True), finding.message
        task = a_regressing_task(limit)
        seen_of_it = [one for one in unseen(task, [finding], {task.criteria[0].id: Status.UNVERIFIED}) if expected is N]
        assert all(why in one.message for one in seen_of_it)
        assert bool(seen_of_it) is (expected is N)
    (section,) = BASE.page(a_regressing_task(), evidence(seen))
    assert "main (bbbbbbbbbbbb)" in str(section)


@pytest.mark.parametrize(
    "seen",
    [
        compared(problem="base: ModuleNotFoundError: no module named 'pkg'"),
        compared(problem="", runs=()).model_copy(update={"problem": "the baseline does not build: exit code 1"}),
        compared(seen=taken(threads=4)),
        compared(seen=taken(copies=((1.0, 2.0),) * 8)),
        None,
    ],
    ids=["arm failed", "no build", "unfit", "copies differ", "not collected"],
)
def test_what_was_not_seen_is_unknown(seen: Regressions | None) -> None:
    (finding,) = judged(seen)
    assert finding.leaves_open
    assert finding.remediation
    assert list(BASE.page(a_regressing_task(), evidence(*([seen] if seen else []))))


def test_unequal_results_are_no_comparison_where_the_task_asks_for_equal_ones() -> None:
    same: dict[str, tuple[str, ...]] = {"base": ("a",), "now": ("a",)}
    other = {**same, "now": ("b",)}
    assert outcome(compared(seen=taken(digests=same, same_result=True))) is P
    assert outcome(compared(seen=taken(digests=other, same_result=True))) is U
    assert outcome(compared(seen=taken(same_result=True))) is U
    assert outcome(compared(seen=taken(digests=other))) is P


def test_several_failures_share_the_error() -> None:
    just = sides(2.01).metrics["step_time_s"].arms
    values = {"base": just["base"], "now": (1.5, 1.5, 1.5, *just["now"][3:])}  # but for three pairs
    metric = sides().metrics["step_time_s"].model_copy(update={"arms": values})
    hardly = compared(sides().model_copy(update={"metrics": {"step_time_s": metric}}), taken(restarts=()))
    assert outcome(hardly) is F
    assert {one.outcome for one in judged(hardly, a_regressing_task({}, {}, {}, {}))} == {U}


def test_a_device_that_was_not_measured_is_unknown() -> None:
    assert outcome(compared(), a_regressing_task({"on": "cuda"})) is U
