"""Tests of the comparison of training quality."""

import dataclasses

import pytest

from amp_core.benchmark.quality import Lesson, NothingLearned, metrics, refuse_untrained, train_arms

TINY = Lesson(device="cpu", steps=2, batch_size=8, train_sequences=64, val_sequences=32)
ARMS = ("fp32", "bf16", "fp16")
pytestmark = pytest.mark.criterion("T035/AC6")


def test_arms_are_paired_by_seed_and_each_metric_has_a_sample_of_each() -> None:
    runs = train_arms(TINY, ARMS, seeds=2)
    losses = [[result.val_loss for result in results] for results in runs.values()]
    assert losses[0] != losses[1] == pytest.approx(losses[0], abs=2e-3)
    assert losses[0] != losses[2] == pytest.approx(losses[0], abs=2e-3)
    assert losses[0][0] != losses[0][1]
    found = metrics(runs)
    assert list(found) == ["val_accuracy", "val_loss", "applied_steps", "skipped_steps", "final_loss_scale"]
    for metric in found.values():
        assert {arm: len(samples) for arm, samples in metric.arms.items()} == dict.fromkeys(ARMS, 2)
    assert found["final_loss_scale"].arms == {"fp32": (1.0, 1.0), "bf16": (1.0, 1.0), "fp16": (65536.0, 65536.0)}
    assert found["applied_steps"].arms == dict.fromkeys(ARMS, (2.0, 2.0))


def test_a_model_that_learned_nothing_is_refused() -> None:
    hardly = dataclasses.replace(TINY, lr=1e-6)
    message = r"^arm 'fp32' learned nothing: accuracy 0\.[01]\d+, expected at least 0\.[23]\d+ \(chance 0\.06"
    with pytest.raises(NothingLearned, match=message):
        refuse_untrained(train_arms(hardly, ("fp32",), seeds=1))
