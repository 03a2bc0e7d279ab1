"""Training steps, judged by what was recorded of them."""

from typing import Any

import pytest
from building import a_criterion, a_process, a_record, a_run, a_task, all_evidence, evidence
from recording import (
    ORDER,
    a_recorded,
    a_trained_task,
    after_overflow,
    an_attempt,
    compared,
    happened,
    logged,
    overflowed,
    recorded,
)

from gates.check import EvidenceSet
from gates.checks.training_steps.judge import CHECK
from gates.criteria import stand
from gates.evidence.recorded_step import Absent, Logged, Recorded, Recording
from gates.model import Finding, Level, Outcome, Status
from gates.pipeline import judge as judge_gate
from gates.stages import BUSINESS_LOGIC as GATE
from gates.task.task import Task

EVERYTHING = ["scaler", "autocast", "gradients", "overflow", "logged-scale"]


def judged(recording: Recording | None = None, task: Task | None = None) -> list[Finding]:
    task = task or a_trained_task(needs=EVERYTHING)
    return list(CHECK.judge(task, evidence(recording) if recording else EvidenceSet()))


def of(aspect: str, findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.check == f"training_steps:0:{aspect}"]


def test_criterion_that_only_a_training_step_stands_for_passes() -> None:
    task = a_trained_task(needs=EVERYTHING).model_copy(
        update={"criteria": a_task(criteria=[a_criterion(tests=[])]).criteria, "entry_points": ()}
    )
    seen = all_evidence(task, recorded(), a_run(a_record(id="tests/test_other.py::test_x")))
    (tests,) = (f for f in judge_gate(GATE, task, seen).findings if f.check == "tests:AC1")
    assert tests.outcome is Outcome.NOT_APPLICABLE
    assert stand(task, task.criteria[0], [judge_gate(GATE, task, seen)], None).status is Status.PASS


def test_sound_recording_passes_for_its_criterion() -> None:
    findings = judged(recorded())
    assert {f.outcome for f in findings if not f.check.endswith("schedule")} == {Outcome.PASSED}
    (criterion,) = of("for:AC1", findings)
    assert (criterion.criterion, criterion.level) == ("AC1", Level.MUST)
    assert "run, order, precision, gradients, parameters, overflow, logging" in criterion.message


def words(*order: str, **facts: Any) -> Recorded:
    return a_recorded(events=happened(*order, **facts))


def test_what_was_cut_off_has_no_end() -> None:
    cut = a_recorded(events=happened("scaled_backward", "step", turns=1), complete=False)
    (finding,) = of("order", judged(recorded(cut)))
    assert finding.outcome is Outcome.UNKNOWN


PLAIN = {
    "outside of autocast": ("precision", a_recorded(events=happened(*ORDER, products={"float32": 2}))),
    "without a scaler": ("precision", words("backward", "plain_step", scaler=None, scaling=False)),
    "scaled gradients": ("gradients", a_recorded(compared=(compared(factor=1024.3, error=1023.0),))),
    "gradients too small": ("gradients", a_recorded(compared=(compared(factor=1 / 1024, error=1.0),))),
    "half parameters": ("parameters", a_recorded(attempts=(an_attempt(params=("bfloat16",)),))),
    "scale not logged": ("logging", a_recorded(logged=(logged(1.0), logged(1.0)))),
    "nothing logged": ("logging", a_recorded(logged=())),
    "crash": ("run", a_recorded(complete=False, process=a_process(1), error="ValueError: no")),
}


@pytest.mark.parametrize(("aspect", "run"), PLAIN.values(), ids=PLAIN.keys())
def test_fault_of_the_plain_run_blocks_and_fails_its_criterion(aspect: str, run: Recorded) -> None:
    findings = judged(recorded(run, after_overflow() if aspect != "logging" else after_overflow(logged=run.logged)))
    assert any(finding.blocks for finding in of(aspect, findings))
    assert of("for:AC1", findings)[0].outcome is Outcome.FAILED


OVERFLOWS = {
    "applied": overflowed(changed=3),
    "moments": overflowed(state_changed=("exp_avg",)),
    "scale stays": overflowed(scale_after=1024.0),
    "scale grows": overflowed(scale_after=2048.0),
}


@pytest.mark.parametrize("seen", OVERFLOWS.values(), ids=OVERFLOWS.keys())
def test_overflow_that_is_not_handled_blocks(seen: Any) -> None:
    assert any(finding.blocks for finding in of("overflow", judged(recorded(None, after_overflow(overflows=(seen,))))))


@pytest.mark.parametrize(("after", "steps", "stopped"), [(0, 6, True), (0, 2, False), (3, 6, False)])
def test_training_that_takes_no_step_after_an_overflow_blocks(after: int, steps: int, *, stopped: bool) -> None:
    plain = a_recorded(attempts=(an_attempt(),) * steps)
    over = after_overflow().model_copy(update={"attempts": (an_attempt(),), "steps_after_overflow": after})
    seen = evidence(recorded(plain, over))
    told = [f for f in GATE.judge(a_trained_task(needs=EVERYTHING), seen) if f.actual == "no step after the overflow"]
    assert bool(told) is stopped
    assert all(f.blocks for f in told)


def test_crash_after_an_overflow_blocks_at_its_line() -> None:
    run = after_overflow(complete=False, process=a_process(1), error="KeyError: 'x'", overflows=())
    (finding,) = of("overflow", judged(recorded(None, run)))
    assert finding.blocks
    assert "crashes after an overflow: KeyError: 'x'" in finding.message


@pytest.mark.parametrize(
    "seen",
    [overflowed(scale_before=1.0, scale_after=1.0), overflowed(scale_before=1.0, scale_after=1.0, backoff=None),
     overflowed(scale_before=1.5, scale_after=1.0, least=1.0)],
)  # fmt: skip
def test_overflow_that_is_handled_otherwise_passes(seen: Any) -> None:
    (finding,) = of("overflow", judged(recorded(None, after_overflow(overflows=(seen,)))))
    assert finding.outcome is Outcome.PASSED


ADVICE = {
    "schedule": (a_recorded(attempts=(an_attempt(), an_attempt(lr=(0.05,)))), overflowed(rates_after=(0.05,))),
    "overflow": (None, overflowed(scale_after=256.0)),
    "precision": (a_recorded(events=happened(*ORDER, products={"bfloat16": 2})), overflowed()),
    "order": (words("autocast_enter", "forward", "scaled_backward", "autocast_exit", "step", "update"), overflowed()),
}


@pytest.mark.parametrize("aspect", ADVICE)
def test_what_trains_all_the_same_is_advice(aspect: str) -> None:
    run, seen = ADVICE[aspect]
    found = of(aspect, judged(recorded(run, after_overflow(overflows=(seen,)))))
    failed = [finding for finding in found if finding.outcome is Outcome.FAILED]
    assert [(finding.level, finding.blocks) for finding in failed] == [(Level.ADVISORY, False)]
    assert "overflows again" not in failed[0].impact  # of a scale that fell too far


UNSEEN = {
    "other outputs": compared(outputs_off=0.5),
    "no copy": compared(why_not="the module cannot be computed again", factor=None, error=None),
    "other gradients": compared(factor=0.7, error=0.9, error_less_factor=0.9),
    "used outside of modules": compared(left_out=2),
    "a reference of nothing": compared(factor=None, error=None, error_less_factor=None),
}


@pytest.mark.parametrize("before", [(), (compared(),)], ids=["alone", "after a good one"])
@pytest.mark.parametrize("seen", UNSEEN.values(), ids=UNSEEN.keys())
def test_gradients_that_cannot_be_compared_are_unknown(seen: Any, before: tuple[Any, ...]) -> None:
    run = a_recorded(compared=(*before, seen))
    (needed,) = of("gradients", judged(recorded(run)))
    (not_needed,) = of("gradients", judged(recorded(run), a_trained_task()))
    assert (needed.outcome, needed.leaves_open) == (Outcome.UNKNOWN, True)
    assert (not_needed.outcome, not_needed.leaves_open) == (Outcome.UNKNOWN, False)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_gradients_that_half_precision_may_blur_are_said_to_be_so(dtype: str) -> None:
    blurred = compared(factor=0.9, error=0.4, error_less_factor=0.4)
    run = a_recorded(compared=(blurred,), events=happened(*ORDER, products={dtype: 2}))
    (told,) = of("gradients", judged(recorded(run)))
    assert ("too coarse for so small a model" in told.message) is (dtype == "bfloat16")


def test_lost_gradients_that_are_not_right_stay_unknown() -> None:
    run = a_recorded(compared=(compared(factor=0.5, error=0.7, error_less_factor=0.9, lost=0.5),))
    findings = judged(recorded(run))
    told = {(finding.outcome, finding.leaves_open) for finding in of("gradients", findings)}
    assert told == {(Outcome.FAILED, False), (Outcome.UNKNOWN, True)}
    assert of("for:AC1", findings)[0].outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("optimizer", "others", "outcome"),
    [(1, (), Outcome.UNKNOWN), (1, (compared(),), Outcome.PASSED), (2, (compared(),), Outcome.UNKNOWN)],
)
def test_each_optimizer_is_to_show_its_gradients_in_a_step_that_does_not_overflow_by_itself(
    optimizer: int, others: tuple[Any, ...], outcome: Outcome
) -> None:
    infinite = compared(optimizer=optimizer, finite=False, factor=None, error=None, error_less_factor=None)
    (finding,) = of("gradients", judged(recorded(a_recorded(compared=(infinite, *others)))))
    assert finding.outcome is outcome


@pytest.mark.parametrize(("swallowed", "outcome"), [(True, Outcome.FAILED), (False, Outcome.UNKNOWN)])
def test_overflow_that_was_made_finite_is_not_handled(swallowed: bool, outcome: Outcome) -> None:
    seen = overflowed(changed=3, finite_at_step=True, swallowed=swallowed, scale_after=1024.0)
    findings = judged(recorded(None, after_overflow(overflows=(seen,))))
    (finding,) = of("overflow", findings)
    assert (finding.outcome, finding.level) == (outcome, Level.MUST)
    assert of("for:AC1", findings)[0].outcome is outcome


@pytest.mark.parametrize(
    ("needs", "run"),  # the last one moves nothing
    [("autocast", a_recorded(events=happened(*ORDER, products={}))), ("overflow", a_recorded(attempts=())),
     ("autocast", a_recorded(attempts=(an_attempt(moved=False),)))],
)  # fmt: skip
def test_criterion_is_inconclusive_where_what_is_needed_did_not_pass(needs: str, run: Recorded) -> None:
    seen = recorded(run).model_copy()
    step = seen.seen[0].model_copy(update={"overflow": None})
    (criterion,) = of("for:AC1", judged(seen.model_copy(update={"seen": (step,)}), a_trained_task(needs=[needs])))
    assert criterion.outcome is not Outcome.PASSED


def in_windows(*windows: int, scaler: int = 1, scale: float = 1024.0) -> tuple[Any, ...]:
    return tuple(an_attempt(scaler=scaler, scale=scale, window=window) for window in windows)


LOGGED = {
    "two optimizers of one scaler": (in_windows(0, 0, 1, 1), Outcome.PASSED, ""),
    "one beside an optimizer without": ((*in_windows(0, 1), an_attempt(scaler=None, scale=1.0)), Outcome.PASSED, ""),
    "steps of their own": (in_windows(0, 1, 2, 3), Outcome.FAILED, ""),
    "one scaler of two": ((*in_windows(0, 1), *in_windows(0, 1, scaler=2, scale=64.0)), Outcome.FAILED, "scaler 2"),
}


@pytest.mark.parametrize(("attempts", "outcome", "said"), LOGGED.values(), ids=LOGGED.keys())
def test_scale_is_logged_once_for_each_update(attempts: tuple[Any, ...], outcome: Outcome, said: str) -> None:
    overflow = after_overflow(attempts=attempts, logged=(logged(1024.0), logged(1024.0)))
    (finding,) = of("logging", judged(recorded(a_recorded(attempts=attempts), overflow)))
    assert (finding.outcome, said in finding.message) == (outcome, True), finding.message


def test_scale_that_no_step_was_taken_with_is_not_compared() -> None:
    run = a_recorded(attempts=(an_attempt(scaler=None, scale=None),))
    (finding,) = of("logging", judged(recorded(run, after_overflow(attempts=run.attempts))))
    assert (finding.outcome, "no scale to compare" in finding.message) == (Outcome.UNKNOWN, True)


def test_process_that_leaves_early_is_told_as_that() -> None:
    (finding,) = of("run", judged(recorded(a_recorded(complete=False, process=a_process(0)))))
    assert finding.outcome is Outcome.FAILED
    assert "left its process before it returned" in finding.message


def test_no_scaler_is_a_failure_only_where_one_is_needed() -> None:
    run = a_recorded(events=happened("backward", "plain_step", scaler=None, scaling=False, products={"float32": 1}),
                     compared=(compared(),), attempts=(an_attempt(scaler=None, scale=1.0),))  # fmt: skip
    bare = judged(recorded(run, overflow=None).model_copy(), a_trained_task(needs=[]))
    assert not [one for one in bare if one.outcome is Outcome.FAILED and one.check.endswith("precision")]
    needing = of("precision", judged(recorded(run), a_trained_task(needs=["scaler"])))
    assert [finding.blocks for finding in needing if finding.outcome is Outcome.FAILED] == [True]


def test_report_tells_each_training_step() -> None:
    (section,) = CHECK.page(a_trained_task(), evidence(recorded()))
    assert section.rows == (("exit code 0", "left out", "1.0e-04", "2", "float16", "float32", "pkg.train:few(2)"),)


def test_number_that_ends_not_finite_is_told() -> None:
    run = a_recorded(logged=(logged(1024.0), Logged(to="return", values={"loss": None, "loss_scale": 1024.0})))
    found = [f for f in of("run", judged(recorded(run))) if f.outcome is Outcome.FAILED]
    assert [(f.level, f.subject.split()[-1]) for f in found] == [(Level.SHOULD, "loss")]
    (criterion,) = of("for:AC1", judged(recorded(run)))
    assert (criterion.outcome, found[0].message.partition(": ")[2] in criterion.message) == (Outcome.PASSED, True)


@pytest.mark.parametrize(("products", "absent", "outcome"), [
    ({"bfloat16": 1}, (), Outcome.PASSED), ({"float16": 1}, (), Outcome.FAILED),
    ({"float32": 1}, (Absent(what="no CUDA", dtype="float16"),), Outcome.FAILED),
    ({"float32": 1}, (Absent(what="no CUDA"),), Outcome.UNKNOWN),
])  # fmt: skip
def test_dtype_that_is_needed_is_the_one_that_is_asked_for(products: Any, absent: Any, outcome: Outcome) -> None:
    run = a_recorded(events=happened(*ORDER, products=products), absent=absent)
    assert of("for:AC1", judged(recorded(run), a_trained_task(needs=["bf16"])))[0].outcome is outcome
