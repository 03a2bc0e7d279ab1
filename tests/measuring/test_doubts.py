"""Samples that nobody took are none at every number that can decide; their sound twins are."""

from typing import Any

import pytest
from building import a_measure

from gates.measuring.fitness import doubts
from gates.measuring.samples import Metric
from gates.task.task import Measure

TIMES = [0.0291, 0.0293, 0.0290, 0.0296, 0.0292, 0.0291]
NOISE = [1e-5, -2e-5, 3e-5, 0.0, -1e-5, 2e-5, -3e-5, 1e-5]
FINE = [0.029113, 0.029652, 0.030871, 0.029402, 0.029234, 0.029915, 0.030312, 0.029718]
OTHERS = [0.0141, 0.0148, 0.0145, 0.0144, 0.0149, 0.0142]


def a_metric(old: list[float], new: list[float], unit: str = "s") -> Metric:
    return Metric.model_validate({"unit": unit, "direction": "lower", "paired": True, "arms": {"old": old, "new": new}})


MADE_UP: dict[str, tuple[Metric, dict[str, Any], str]] = {
    "a constant": (a_metric([0.03] * 6, OTHERS), {}, "all 6 samples of old are 0.03 s, which no clock gives"),
    "a constant rate": (a_metric([291.0] * 20, [1 / t for t in OTHERS * 3 + OTHERS[:2]], "1/s"),
                        {"of": "tokens_per_s"}, "all 20 samples of old are 291 1/s"),
    "a series": (a_metric([0.02 + i / 1000 for i in range(6)], OTHERS), {}, "by the same amount each time"),
    "a copy in another order": (a_metric(FINE, [t / 2 for t in sorted(FINE)]), {}, "of new, scaled or shifted"),
    "itself": (a_metric(TIMES, TIMES), {}, "of old are those of new, scaled or shifted, which no two clocks give"),
    "a copy with something added": (a_metric(TIMES, [t / 3 + 0.01 for t in TIMES]), {}, "of new, scaled or shifted"),
    "three that were written twice": (a_metric(FINE[:3] * 2, OTHERS[:3] * 2), {}, "are the first 3 again and again"),
    "a copy that was rounded": (
        a_metric(FINE, [round(t / 1.7, 5) for t in FINE]), {}, "of old are those of new, scaled or shifted"),
    "a series that was rounded": (
        a_metric([round(0.02 + i / 7000, 6) for i in range(12)], OTHERS * 2), {}, "by the same amount"),
    "a comparison that cannot differ": (
        a_metric([0.0] * 6, [0.0] * 6, "fraction"),
        {"ratio": None, "difference": ["old", "new"], "at_least": None, "below": 0.01, "of": "accuracy"},
        "was not seen to differ at all"),
}  # fmt: skip
SOUND: dict[str, tuple[Metric, dict[str, Any]]] = {
    "times": (a_metric(TIMES, OTHERS), {}),
    "a clock of milliseconds": (a_metric([0.029, 0.029, 0.030, 0.029, 0.029, 0.030], OTHERS), {}),
    "arms that wait for the same machine": (
        a_metric(FINE, [t / 2 + n for t, n in zip(FINE, NOISE, strict=True)]), {}),
    "clocks of milliseconds": (
        a_metric([0.029, 0.031, 0.030, 0.029, 0.032, 0.030], [0.014, 0.015, 0.015, 0.014, 0.016, 0.015]), {}),
    "odd and even steps": (a_metric([0.029, 0.031] * 6, [0.014, 0.015] * 6), {}),
    "bytes": (a_metric([4096.0] * 6, [2048.0] * 6, "B"), {"of": "peak_memory_bytes"}),
    "accuracies that differ once": (
        a_metric([0.5, 0.5, 0.5, 0.5, 0.5, 0.51], [0.5] * 6, "fraction"),
        {"ratio": None, "difference": ["old", "new"], "at_least": None, "below": 0.01, "of": "accuracy"}),
    "few": (a_metric([0.03] * 2, [0.01] * 2), {}),
}  # fmt: skip


@pytest.mark.parametrize("case", MADE_UP)
def test_samples_that_nobody_took_are_doubted(case: str) -> None:
    metric, changes, said = MADE_UP[case]
    found = list(doubts(Measure.model_validate(a_measure(**changes)), metric))
    assert any(said in each for each in found), found


@pytest.mark.parametrize("case", SOUND)
def test_sound_samples_are_not(case: str) -> None:
    metric, changes = SOUND[case]
    assert list(doubts(Measure.model_validate(a_measure(**changes)), metric)) == []
