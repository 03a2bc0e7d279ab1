"""Other tools' rules, and the table that sets them beside the gate's own."""

import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from taking import a_taken, some_samples

from benchmarks.deciding import replay, rules
from benchmarks.deciding.windows import Trace, adaptive, windows
from gates.model import Outcome

QUIET = [1.0 + i / 1000 for i in range(32)]


@pytest.mark.parametrize("rule", rules.SEQUENTIAL.values(), ids=rules.SEQUENTIAL)
def test_each_rule_tells_a_clear_difference_from_none(rule: Callable[..., str]) -> None:
    assert rule(QUIET, QUIET, 1.05) == rules.PASS
    assert rule(QUIET, [v * 1.2 for v in QUIET], 1.05) == rules.BLOCK


def as_trace(base: list[float], cand: list[float], split: int = 1) -> Trace:
    """A trace of these times, from a machine that had nothing else to do."""
    pairs, samples = len(base), some_samples(old=base, new=cand)
    metric = samples.metrics["step_time_s"]
    arms = {"base": metric.arms["old"], "cand": metric.arms["new"]}
    calm = dict.fromkeys(arms, (1.0,) * pairs)
    return Trace(
        samples=samples.model_copy(update={"metrics": {"step_time_s": metric.model_copy(update={"arms": arms})}}),
        taken=a_taken(pairs=pairs, most=pairs, split=split, restarts=tuple(i // (8 * split) for i in range(pairs)),
                      stretch=calm, switches={}, copies=((1.0, 1.0),) * (pairs // 4)),
    )  # fmt: skip


def test_rules_that_compare_two_moments_are_fooled_by_drift_and_the_gate_is_not() -> None:
    source = random.Random(2)
    drift, again = ([0.001 * (1 + i / 400) * math.exp(source.gauss(0, 0.003)) for i in range(400)] for _ in range(2))
    trace = as_trace(drift, again)
    same = {name: ends for name, (ends, _) in replay.table(trace, 1.0, 1.03, 50).items()}
    slow = {name: ends for name, (ends, _) in replay.table(trace, 1.1, 1.03, 50).items()}
    assert (same["this gate"], slow["this gate"]) == ({"PASS": 50}, {"BLOCK": 50})
    assert same["asv"]["BLOCK"] > 0
    assert same["pyperf"]["BLOCK"] > 0


def a_trace(*, noise: float, pairs: int = 400, split: int = 1) -> Trace:
    """A trace as it would be recorded on a machine of that much noise."""
    source = random.Random(3)
    base, cand = ([0.001 * math.exp(source.gauss(0, noise)) for _ in range(pairs)] for _ in range(2))
    return as_trace(base, cand, split)


def ends(trace: Trace, factor: float) -> Counter[Outcome]:
    return Counter(adaptive(window, 1.05)[0] for window in windows(trace, 200, factor))


@pytest.mark.parametrize("trace", [{"noise": 0.005}, {"noise": 0.03, "pairs": 2400, "split": 6}])
def test_calm_machine_is_right(trace: dict[str, Any]) -> None:
    assert ends(a_trace(**trace), 1.0) == {Outcome.PASSED: 200}
    assert ends(a_trace(**trace), 1.1) == {Outcome.FAILED: 200}


def test_noisy_machine_is_open_rather_than_wrong() -> None:
    trace = a_trace(noise=0.3)
    assert ends(trace, 1.0)[Outcome.FAILED] == ends(trace, 1.1)[Outcome.PASSED] == 0
    assert ends(trace, 1.0)[Outcome.UNKNOWN] > 190
