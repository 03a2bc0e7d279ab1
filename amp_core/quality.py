"""Training quality by precision: the same seeds trained in each, paired by seed."""

import dataclasses
import statistics
from collections.abc import Mapping, Sequence

from amp_core.samples import Direction, Metric
from amp_core.trainer import TrainConfig, TrainResult, train

Runs = Mapping[str, Sequence[TrainResult]]


class NothingLearned(RuntimeError):
    """An arm's accuracy is no better than chance, so that comparing accuracies would prove nothing."""


def train_arms(config: TrainConfig, arms: Sequence[str], seeds: int) -> Runs:
    """Train once per precision and seed; a seed's runs share initial weights, data, order and validation split."""
    runs: dict[str, list[TrainResult]] = {arm: [] for arm in arms}
    for seed in range(seeds):
        for arm in arms:
            runs[arm].append(train(dataclasses.replace(config, precision=arm, use_amp=None, seed=seed)))
    return runs


def refuse_untrained(runs: Runs) -> None:
    """Raise NothingLearned unless each arm's median accuracy is nearer to the best one possible than to chance."""
    for arm, results in runs.items():
        accuracy = statistics.median(result.val_accuracy for result in results)
        enough = (results[0].chance_accuracy + results[0].best_accuracy) / 2
        if accuracy < enough:
            raise NothingLearned(
                f"arm {arm!r} learned nothing: accuracy {accuracy:.4f}, expected at least {enough:.4f}"
                f" (chance {results[0].chance_accuracy:.4f}): train longer or with another lr"
            )


def metrics(runs: Runs) -> dict[str, Metric]:
    """Return the quality metrics of the runs, one sample a seed."""
    half = [arm for arm in ("bf16", "fp16") if arm in runs]
    return {
        "val_accuracy": _metric(runs, list(runs), "val_accuracy", "1", Direction.HIGHER),
        "val_loss": _metric(runs, list(runs), "val_loss", "nat", Direction.LOWER),
        "applied_steps": _metric(runs, half, "applied_steps", "1", Direction.HIGHER),
        "skipped_steps": _metric(runs, half, "skipped_steps", "1", Direction.LOWER),
        "final_loss_scale": _metric(runs, ["fp16"], "loss_scale", "1", Direction.NONE),
    }


def _metric(runs: Runs, arms: Sequence[str], field: str, unit: str, direction: Direction) -> Metric:
    values = {arm: tuple(float(getattr(result, field)) for result in runs[arm]) for arm in arms}
    return Metric(unit, direction, paired=True, arms=values)
