"""Evidence from elsewhere, judged: what answers a measure, how several machines are merged, and what is said of it."""

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from building import NEW, OLD, a_criterion, a_measure, evidence, measured, samples
from bundling import CUDA, a_cuda_task, handed, with_bundles
from taking import PAIRS, a_taken, a_timed_task, some_samples

from gates import pipeline
from gates.check import EvidenceSet
from gates.evidence.bundles import HandedIn
from gates.model import Decision, Finding, Level, Outcome
from gates.stages import PERFORMANCE as GATE
from gates.task.task import Task

TASK = a_cuda_task(bundles=("a.json", "b.json", "c.json"))
SLOW = samples(device="cuda", new=[3 * new for new in NEW])
NOISY = samples(device="cuda", new=[4 * new if i % 2 else new for i, new in enumerate(NEW)])
OTHER = samples(device="cuda", old=[3 * old for old in OLD])


def about(task: Task, seen: EvidenceSet) -> Finding:
    """The finding on the measure."""
    (found,) = [finding for finding in GATE.judge(task, seen) if finding.check.startswith("measure:")]
    return found


def of(path: str, seen: EvidenceSet, task: Task = TASK) -> Finding:
    """The finding on a bundle."""
    (found,) = [finding for finding in GATE.judge(task, seen) if finding.check == f"bundle:{path}"]
    return found


def test_bundle_answers_what_this_machine_cannot() -> None:
    found = about(TASK, with_bundles(handed()))
    assert (found.outcome, found.evidence) == (Outcome.PASSED, "bundles/0.json")
    assert found.message.endswith("meets the target, on a cuda (a.json)")
    assert of("a.json", with_bundles(handed())).outcome is Outcome.PASSED


def test_without_a_bundle_the_command_that_makes_one_is_told() -> None:
    found = about(TASK, with_bundles())
    assert (found.outcome, found.command) == (Outcome.UNKNOWN, "gates measure T1 --on cuda")


@pytest.mark.parametrize("said", ["cuda", "any", "cpu"])
def test_cpu_numbers_never_answer_a_cuda_criterion_whatever_the_bundle_says(said: str) -> None:
    bundle = handed(samples())
    run = bundle.runs[0].run.model_copy(update={"device": said})
    lying = bundle.model_copy(update={"runs": (bundle.runs[0].model_copy(update={"run": run}),)})
    assert about(TASK, with_bundles(lying)).outcome is Outcome.UNKNOWN
    assert of("a.json", with_bundles(lying)).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("seen", "outcome"),
    [
        ((CUDA, OTHER), Outcome.PASSED),
        ((CUDA, SLOW), Outcome.FAILED),
        ((CUDA, NOISY), Outcome.PASSED),
        ((NOISY, SLOW), Outcome.FAILED),
        ((CUDA, NOISY, SLOW), Outcome.FAILED),
        ((NOISY,), Outcome.UNKNOWN),
    ],
)
def test_machines_merge_in_any_order_to_the_same_verdict(seen: Sequence[object], outcome: Outcome) -> None:
    bundles = [handed(one, f"{name}.json") for one, name in zip(seen, "abc", strict=False)]  # type: ignore[arg-type]  # samples
    found = [about(TASK, with_bundles(*order)) for order in itertools.permutations(bundles)]
    assert {one.outcome for one in found} == {outcome}
    assert len(set(found)) == 1


def test_failure_here_is_not_outvoted_by_another_machine() -> None:
    assert about(TASK, with_bundles(handed(), here=(SLOW,))).outcome is Outcome.FAILED
    assert about(TASK, with_bundles(handed(SLOW), here=(CUDA,))).outcome is Outcome.FAILED


FEW = samples(device="cuda", old=OLD[:6], new=NEW[:6])


def test_same_run_twice_is_no_more_than_once() -> None:
    once, twice = with_bundles(handed(FEW)), with_bundles(handed(FEW), handed(FEW, "b.json"))
    assert about(TASK, once).outcome is about(TASK, twice).outcome is Outcome.PASSED
    assert about(TASK, once).message == about(TASK, twice).message
    assert about(TASK, with_bundles(handed(FEW), here=(samples(),))).outcome is Outcome.PASSED  # samples of a CPU


def test_second_attempt_shares_the_error_with_the_first() -> None:
    tried = [samples(device="cuda", old=[*OLD[:5], 9.0 + i], new=NEW[:6]) for i in range(3)]
    bundles = [handed(one, f"{name}.json") for one, name in zip(tried, "abc", strict=True)]
    assert about(TASK, with_bundles(bundles[0])).outcome is Outcome.PASSED
    assert about(TASK, with_bundles(*bundles)).outcome is Outcome.UNKNOWN


def changed(bundle: HandedIn, *what: str) -> HandedIn:
    runs = tuple(run.model_copy(update={"changed": what}) for run in bundle.runs)
    return bundle.model_copy(update={"runs": runs, "why": ", ".join(what)})


def test_stale_bundle_answers_nothing_and_names_what_changed() -> None:
    seen = with_bundles(changed(handed(), "pkg/core.py was changed"))
    found = about(TASK, seen)
    assert found.outcome is Outcome.UNKNOWN
    assert found.message.endswith("there is no CUDA device; a.json is stale: pkg/core.py was changed")
    stale = of("a.json", seen)
    assert (found.command, stale.outcome, stale.level) == (
        "gates measure T1 --on cuda", Outcome.UNKNOWN, Level.ADVISORY,
    )  # fmt: skip
    assert stale.message == "The bundle a.json is stale: pkg/core.py was changed, since it was made."


def test_stale_bundle_beside_a_good_one_leaves_nothing_open() -> None:
    task = a_cuda_task(bundles=("a.json", "b.json"))
    report = pipeline.judge(GATE, task, with_bundles(changed(handed(), "x was added"), handed(OTHER, "b.json")))
    assert report.decision is Decision.PASS


def test_refused_bundle_keeps_a_pass_away_even_where_nothing_needs_it() -> None:
    task = a_cuda_task(bundles=("a.json",))
    refused = HandedIn(path="a.json", why="it was altered")
    assert pipeline.judge(GATE, task, with_bundles(refused, here=(CUDA,))).decision is Decision.INCONCLUSIVE
    assert pipeline.judge(GATE, task, with_bundles(refused, here=(SLOW,))).decision is Decision.BLOCK
    assert of("a.json", with_bundles(refused), task).message == "The bundle a.json is refused: it was altered."
    assert about(task, with_bundles(refused)).message.endswith("a.json is refused: it was altered")
    unseen = of("a.json", EvidenceSet(why="the performance gate was not run"), task)
    assert (unseen.outcome, "not looked at: the performance gate" in unseen.message) == (Outcome.UNKNOWN, True)


def test_bundle_is_not_taken_for_a_limit_that_it_was_not_made_for() -> None:
    lower = a_cuda_task(
        criteria=[a_criterion(id="AC2", tests=[], measures=[a_measure(on="cuda", at_least=1.2)])], bundles=("a.json",)
    )
    found = about(lower, with_bundles(handed()))
    assert (found.outcome, found.message.endswith("a.json was made for another limit")) == (Outcome.UNKNOWN, True)
    assert "no measure asks for what it holds" in of("a.json", with_bundles(handed()), lower).message
    should = a_cuda_task(criteria=[a_criterion(id="AC9", tests=[], measures=[a_measure(on="cuda", level="should")])])
    assert about(should, with_bundles(handed())).outcome is Outcome.PASSED


def test_run_of_another_machine_counts_for_any_device_too() -> None:
    task = a_cuda_task(criteria=[a_criterion(id="AC2", tests=[], measures=[a_measure(on="any")])])
    slow = evidence(measured(samples()), *[*with_bundles(handed(SLOW, task=task)).present.values()][1:])
    assert about(task, slow).outcome is Outcome.FAILED
    noisy_here = evidence(measured(NOISY), *[*with_bundles(handed(task=task)).present.values()][1:])
    assert about(task, noisy_here).outcome is Outcome.PASSED


def test_device_without_the_capability_says_nothing() -> None:
    task = a_cuda_task(criteria=[a_criterion(id="AC2", tests=[], measures=[a_measure(on="cuda", when=["fp8"])])])
    able = samples(device="cuda", old=OTHER.metrics["step_time_s"].arms["old"], capabilities=["fp8"])
    assert about(task, with_bundles(handed(task=task))).outcome is Outcome.NOT_APPLICABLE
    assert about(task, with_bundles(handed(task=task), handed(able, "b.json", task))).outcome is Outcome.PASSED


def test_bundle_that_fits_is_told_with_where_it_is_from() -> None:
    made = "made 2026-01-02T03:04:05Z at commit cccccccccccc by somebody@somewhere (not signed), on cuda: a cuda"
    assert of("a.json", with_bundles(handed())).message == f"The bundle a.json fits, {made}."


def timed(**changes: Any) -> EvidenceSet:
    """A bundle whose arms the gate timed on a CUDA device, with CPU times beside the step times."""
    taken = some_samples(step_cpu_time_s=([2.0] * PAIRS, [1.0] * PAIRS))
    taken = taken.model_copy(update={"device": CUDA.device})
    bundle = handed(taken, task=a_timed_task(a_measure(on="cuda")))
    run = bundle.runs[0].run.model_copy(update={"taken": a_taken(**changes)})
    return with_bundles(bundle.model_copy(update={"runs": (bundle.runs[0].model_copy(update={"run": run}),)}))


def test_how_a_bundle_was_taken_is_judged_as_here() -> None:
    task = a_timed_task(a_measure(on="cuda"))
    assert about(task, timed()).outcome is Outcome.PASSED
    unfit = about(task, timed(copies=((1.0, 1.3),) * 6))
    assert (unfit.outcome, unfit.rule) == (Outcome.UNKNOWN, "PF002")


def test_cpu_time_never_answers_for_another_device() -> None:
    waited = timed(clock="either", waiting=0.5, stretch={"old": (1.0,) * PAIRS, "new": (3.0,) * PAIRS})
    found = about(a_timed_task(a_measure(on="cuda"), clock="either"), waited)
    assert found.outcome is Outcome.UNKNOWN
    assert "step_cpu_time_s" not in found.message
