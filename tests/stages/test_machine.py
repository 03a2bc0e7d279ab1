"""Measurements that the gate took itself, judged: an unfit machine overrules, attempts add up, failures share."""

import re
from typing import Any

import pytest
from building import a_measure, evidence
from taking import NEW, OLD, PAIRS, a_machine, a_taken, a_timed_task, an_attempt, seen, some_samples

from gates.evidence.measurements import Measurements
from gates.measuring.answers import MORE_STARTS, WAITS
from gates.measuring.machine import Gpu
from gates.model import Finding, Outcome, Severity
from gates.stages import PERFORMANCE as GATE
from gates.task.task import Task

P, F, U = Outcome.PASSED, Outcome.FAILED, Outcome.UNKNOWN


def by_check(task: Task, *pieces: Measurements) -> dict[str, Finding]:
    return {finding.check: finding for finding in GATE.judge(task, evidence(*pieces))}


def outcomes(task: Task, *pieces: Measurements) -> list[Outcome]:
    return [finding.outcome for finding in by_check(task, *pieces).values()]


def facts(task: Task, piece: Measurements) -> dict[str, str]:
    (section,) = [s for s in GATE.describe(task, evidence(piece)) if s.title == "Measurement bench on any"]
    return dict(section.facts)


DISTURBED: dict[str, dict[str, Any]] = {
    "cores": {"after": a_machine(cores=1)},
    "quota": {"after": a_machine(quota="100000 100000")},
    "throttled": {"after": a_machine(throttled_s=0.5)},
    "crowd with threads": {"threads": 2, "waiting": 0.4},
    "more threads than cores": {"threads": 3},
    "waiting for a processor": {"stretch": {"old": (1.0,) * PAIRS, "new": (1.5,) * PAIRS}, "waiting": 0.5},
    "pushed off the processor": {
        "stretch": {"new": (1.5,) * PAIRS}, "waiting": None, "switches": {"new": (9,) * PAIRS},
    },
    "pushed off the processor once in each short pair": {
        "stretch": {"new": (1.5,) * PAIRS}, "waiting": None, "switches": {"new": (1,) * PAIRS}, "split": 4,
    },
    "GPU throttled": {"gpu": Gpu(throttled="0x4")},
    "GPU slow": {"gpu": Gpu(clock_share=0.5)},
    "GPU shared": {"gpu": Gpu(others=1)},
    "two copies differ": {"copies": ((1.0, 1.3),) * 6},
}  # fmt: skip


@pytest.mark.parametrize("limit", [1.5, 2.5])
@pytest.mark.parametrize("changes", DISTURBED.values(), ids=DISTURBED)
def test_unfit_machine_overrules_any_interval(changes: dict[str, Any], limit: float) -> None:
    task = a_timed_task(a_measure(at_least=limit))
    assert outcomes(task, seen()) == [P if limit == 1.5 else F]
    (found,) = by_check(task, seen(None, a_taken(**changes))).values()
    assert (found.outcome, found.rule, "is not believed" in found.message) == (U, "PF002", True)
    assert "quieter machine" in found.remediation


CALM: dict[str, dict[str, Any]] = {
    "work that sleeps": {"stretch": {"old": (9.0,) * PAIRS}, "waiting": 0.0},
    "work that sleeps, in short pairs": {
        "stretch": {"old": (9.0,) * PAIRS}, "waiting": None, "switches": {"old": (1, 0, 0, 0) * 4}, "split": 4,
    },
    "work that sleeps, where nothing tells of pressure": {
        "stretch": {"old": (9.0,) * PAIRS}, "waiting": None, "switches": {"old": (0,) * PAIRS},
    },
    "one steady process beside one thread on two cores": {
        "stretch": {"old": (1.02,) * PAIRS, "new": (1.04,) * PAIRS}, "waiting": 0.2,
        "switches": {"old": (1,) * PAIRS, "new": (1,) * PAIRS},
    },
    "a crowd beside one thread that gets its processor": {"waiting": 0.9},
    "copies that differ less than what is to be shown": {"copies": ((1.0, 1.02),) * 6},
    "copies that differ by chance": {"copies": ((1.0, 1.4), (1.0, 0.7)) * 4},
    "clocks that somebody set": {"gpu": Gpu(clock_share=0.99)},
}  # fmt: skip


@pytest.mark.parametrize("changes", CALM.values(), ids=CALM)
def test_what_disturbs_nothing_is_let_through(changes: dict[str, Any]) -> None:
    assert outcomes(a_timed_task(), seen(None, a_taken(**changes))) == [P]


CROWDED = {"stretch": {"old": (1.5,) * PAIRS, "new": (1.5,) * PAIRS}, "waiting": 0.9}


@pytest.mark.parametrize(("clock", "decided"), [("wall", U), ("either", P), ("cpu", P)])
def test_cpu_time_decides_only_where_the_task_lets_it(clock: str, decided: Outcome) -> None:
    found = by_check(a_timed_task(), seen(some_samples(step_cpu_time_s=(OLD, NEW)), a_taken(clock=clock, **CROWDED)))
    assert found["measure:AC1:0"].outcome is decided
    assert ("by step_cpu_time_s" in found["measure:AC1:0"].message) == (decided is P)


def test_cpu_time_does_not_decide_against_the_wall_clock() -> None:
    """What waits for something else takes no CPU time."""
    same = some_samples(old=NEW, new=[value * 1.001 for value in OLD], step_cpu_time_s=(OLD, NEW))
    found = by_check(a_timed_task(), seen(same, a_taken(clock="either", **CROWDED)))["measure:AC1:0"]
    assert (found.outcome, "by the wall clock 0.4995" in found.message, found.remediation) == (U, True, WAITS)


def test_cpu_time_is_no_response_time() -> None:
    waits = some_samples(old=[3.0] * PAIRS, new=[3.0] * PAIRS, step_cpu_time_s=([0.01] * PAIRS, [0.01] * PAIRS))
    task = a_timed_task(a_measure(ratio=None, value="new", at_least=None, at_most=2.0))
    assert outcomes(task, seen(waits, a_taken(clock="either", **CROWDED))) == [U]
    assert outcomes(task, seen(waits)) == [F]


def test_response_time_that_is_kept_in_a_crowd_is_kept_alone() -> None:
    quick = some_samples(old=[1.0] * PAIRS, new=[1.5] * PAIRS)
    kept, broken, slow = (a_measure(ratio=None, value="new", at_least=None, **{sign: limit})
                          for sign, limit in (("at_most", 2.0), ("at_most", 1.2), ("below", 1.4)))  # fmt: skip
    at_least = a_measure(ratio=None, value="new", at_least=1.0)
    assert outcomes(a_timed_task(kept, broken, slow, at_least), seen(quick, a_taken(**CROWDED))) == [P, U, U, U]


def test_memory_does_not_mind_a_crowd() -> None:
    held = some_samples(peak_memory_bytes=([100.0] * 8, [50.0] * 8))
    task = a_timed_task(a_measure(ratio=None, reduction=["old", "new"], of="peak_memory_bytes", at_least=0.4))
    assert outcomes(task, seen(held, a_taken(**CROWDED))) == [P]


def test_trying_again_does_not_launder_a_block() -> None:
    slow, lucky = [1.12 + i / 1000 for i in range(48)], [1.04 + i / 10000 for i in range(PAIRS)]
    task = a_timed_task(a_measure(ratio=["new", "old"], at_least=None, at_most=1.05))
    now = some_samples(old=[1.0] * PAIRS, new=lucky)
    assert outcomes(task, seen(now)) == [P]
    again = an_attempt(old=[1.0] * 48, new=slow)
    assert outcomes(task, seen(now, None, again)) == [F]
    assert facts(task, seen(now))["Attempt"] == "1"
    told = facts(task, seen(now, None, again, an_attempt(unfit=("crowded",))))["Attempt"]
    assert told == "3; the pairs of all earlier ones count, save for 1 that did not end or had an unfit machine"


def test_trying_again_until_it_is_uncertain_does_not_launder_a_block() -> None:
    slower = a_measure(ratio=["new", "old"], at_least=None, at_most=1.05)
    task = a_timed_task(slower)
    noisy = some_samples(old=[1.0] * PAIRS, new=[1.0 + (i % 8) / 40 for i in range(PAIRS)])
    name = task.criteria[0].measures[0].name
    missed = an_attempt(old=[1.0] * PAIRS, new=[1.12 + i / 1000 for i in range(PAIRS)], missed=(name,))
    found = by_check(task, seen(noisy, None, missed))["measure:AC1:0"]
    assert (found.outcome, found.rule) == (F, "PF003")
    assert found.message.endswith("attempt 1 missed it, and with this one it is too uncertain to say otherwise")
    assert outcomes(task, seen(noisy, None, missed.model_copy(update={"missed": ()}))) == [U]
    assert outcomes(task, seen(noisy, None, missed.model_copy(update={"unfit": ("crowded",)}))) == [U]
    assert outcomes(a_timed_task({**slower, "at_most": 1.04}), seen(noisy, None, missed)) == [U]
    fast = some_samples(old=[1.0] * 48, new=[0.9 + i / 1000 for i in range(48)])
    better = a_taken(pairs=48, restarts=tuple(i // 4 for i in range(48)))
    short = an_attempt(old=[1.0] * 8, new=[1.12 + i / 1000 for i in range(8)], missed=missed.missed)
    assert outcomes(task, seen(fast, better, short)) == [P]


def test_changed_ledger_leaves_it_open() -> None:
    (found,) = by_check(a_timed_task(), seen(problem="line 1 was changed")).values()
    assert (found.outcome, found.rule, found.severity) == (U, "PF003", Severity.HIGH)
    assert found.remediation.startswith("Put the ledger of attempts back")


def test_failures_share_the_error_and_passes_do_not_dilute_it() -> None:
    close = some_samples(old=[1.0] * 6, new=[1.1] * 6)
    slower = a_measure(ratio=["new", "old"], at_least=None, at_most=1.05)
    taken = a_taken(pairs=6, most=6, restarts=())
    assert outcomes(a_timed_task(slower), seen(close, taken)) == [F]
    assert outcomes(a_timed_task(slower, a_measure(at_least=0.5)), seen(close, taken)) == [F, P]
    both = by_check(a_timed_task(slower, {**slower, "at_most": 1.06}), seen(close, taken))
    assert [f.outcome for f in both.values()] == [U, U]
    assert "error shared by all criteria" in both["measure:AC1:0"].message
    advisory = {**slower, "at_most": 1.06, "level": "should"}
    assert outcomes(a_timed_task(slower, advisory), seen(close, taken)) == [F, F]


@pytest.mark.parametrize(
    ("digests", "outcome"),
    [
        ({"old": ("a",), "new": ("a",)}, P),
        ({"old": ("a",), "new": ("b",)}, F),
        ({"old": ("a", "b"), "new": ("a",)}, U),
        ({}, U),
    ],
)
def test_fast_wrong_answer_is_found(digests: dict[str, tuple[str, ...]], outcome: Outcome) -> None:
    assert outcomes(a_timed_task(), seen(None, a_taken(digests=digests))) == [P]
    (found,) = by_check(a_timed_task(), seen(None, a_taken(digests=digests, same_result=True))).values()
    assert found.outcome is outcome
    if outcome is not P:
        assert (found.rule, found.remediation.startswith("Make the arms return the same")) == ("PF002", True)


def test_nothing_measured_is_unknown_with_its_reason() -> None:
    run = seen().runs[0].model_copy(update={"samples": None, "taken": None, "problem": "amp: MemoryError"})
    (found,) = by_check(a_timed_task(), Measurements(how="", runs=(run,))).values()
    assert (found.outcome, "amp: MemoryError" in found.message) == (U, True)
    assert found.remediation.startswith("Make the measurement end with good samples")
    assert outcomes(a_timed_task()) == [U]


def test_report_tells_the_noise_of_two_equal_arms_and_what_would_settle_it() -> None:
    wide = some_samples(new=[1.0 + (i % 4) / 4 for i in range(PAIRS)])
    sections = {s.title: s for s in GATE.describe(a_timed_task(), evidence(seen(wide)))}
    told = facts(a_timed_task(), seen(wide))
    assert told["A second copy of old"].endswith("(noise floor of wall time 0.2%)")
    assert told["Pairs"] == "16 of at most 64, ended: decided"
    (open_still,) = by_check(a_timed_task(), seen(wide)).values()
    assert re.search(r"At this noise about \d+ pairs may do\.", open_still.remediation)
    assert "several required targets share the error" in sections["Method"].text


@pytest.mark.parametrize(("starts", "outcome"), [(1, U), (2, U), (3, P)])
def test_fewer_starts_than_it_takes_decide_nothing(starts: int, outcome: Outcome) -> None:
    taken = a_taken(restarts=tuple(1 + i * starts // PAIRS for i in range(PAIRS)), planned_starts=6)
    found = by_check(a_timed_task(), seen(None, taken))["measure:AC1:0"]
    assert found.outcome is outcome
    if outcome is U:
        assert f"were started only {'once' if starts == 1 else '2 times'}" in found.message
        assert found.remediation == MORE_STARTS.format("bench")


def test_task_may_ask_for_few_starts_and_the_report_says_what_is_missing_then() -> None:
    taken = a_taken(restarts=(1,) * PAIRS, planned_starts=1)
    task = a_timed_task(restarts=1)
    assert outcomes(task, seen(None, taken)) == [P]
    told = facts(task, seen(None, taken))["Processes"]
    assert told == "1 start, 1 thread each: how they differ is not in the interval"
