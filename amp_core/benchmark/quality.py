"""Training quality by precision: the same seeds trained in each, paired by seed."""

import dataclasses
import statistics
from collections.abc import Mapping, Sequence

from amp_core.benchmark.setup import Measured, Setup
from amp_core.samples import Direction, Metric
from amp_core.trainer import TrainConfig, TrainResult, train

Runs = Mapping[str, Sequence[TrainResult]]


class NothingLearned(RuntimeError):
    """An arm's accuracy is no better than chance, so that comparing accuracies would prove nothing."""


def measure_quality(setup: Setup) -> Measured:
    """Train in every precision, and return what it came to.

    Raises:
        NothingLearned: the trained models are no better than chance.
    """
    config = TrainConfig(device=str(setup.device), steps=setup.train_steps)
    runs = train_arms(config, setup.trained, setup.plan.seeds)
    refuse_untrained(runs)
    settings = {
        "seeds": str(setup.plan.seeds),
        "quality_model": str(config.model),
        "quality_steps": f"{config.steps} of {config.batch_size} sequences",
        "quality_val_tokens": str(config.val_sequences * config.model.context),
    }
    return Measured(metrics(runs), settings)


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
    return {
        "val_accuracy": _metric(runs, "val_accuracy", "1", Direction.HIGHER),
        "val_loss": _metric(runs, "val_loss", "nat", Direction.LOWER),
        "applied_steps": _metric(runs, "applied_steps", "1", Direction.HIGHER),
        "skipped_steps": _metric(runs, "skipped_steps", "1", Direction.LOWER),
        "final_loss_scale": _metric(runs, "loss_scale", "1", Direction.NONE),
    }


def _metric(runs: Runs, field: str, unit: str, direction: Direction) -> Metric:
    values = {arm: tuple(float(getattr(result, field)) for result in results) for arm, results in runs.items()}
    return Metric(unit, direction, paired=True, arms=values)
