"""Training quality by precision: the same seeds trained in each, paired by seed."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from amp_core.benchmark.chain import draw_chain
from amp_core.benchmark.setup import Measured, Setup
from amp_core.data import Stream, loader
from amp_core.evaluation import evaluate
from amp_core.model import GPT, GPTConfig, next_token_loss
from amp_core.precision import precision_for
from amp_core.samples import Direction, Metric
from amp_core.schedule import Schedule, warmup_cosine
from amp_core.step import TrainStep

CHAIN_SEED = 1234  # the task itself is the same in every run; a run's seed draws its weights, data and order


class NothingLearned(RuntimeError):
    """An arm's accuracy is no better than chance, so that comparing accuracies would prove nothing."""


@dataclass(frozen=True)
class Lesson:
    """What is trained: a GPT on tokens of a Markov chain, with AdamW, a warm-up and a cosine."""

    device: torch.device | str
    steps: int
    batch_size: int = 16
    lr: float = 1e-2
    model: GPTConfig = field(default_factory=GPTConfig.smoke)
    train_sequences: int = 1024
    val_sequences: int = 512


@dataclass(frozen=True)
class Learned:
    """What one training came to: how good the model is, beside chance and the best possible, and the scaler's end."""

    val_accuracy: float
    val_loss: float
    chance_accuracy: float
    best_accuracy: float
    applied_steps: int
    skipped_steps: int
    loss_scale: float


Runs = Mapping[str, Sequence[Learned]]


def measure_quality(setup: Setup) -> Measured:
    """Train in every precision, and return what it came to.

    Raises:
        NothingLearned: the trained models are no better than chance.
    """
    lesson = Lesson(setup.device, setup.train_steps)
    runs = train_arms(lesson, setup.trained, setup.plan.seeds)
    refuse_untrained(runs)
    settings = {
        "seeds": str(setup.plan.seeds),
        "quality_model": str(lesson.model),
        "quality_steps": f"{lesson.steps} of {lesson.batch_size} sequences",
        "quality_val_tokens": str(lesson.val_sequences * lesson.model.context),
    }
    return Measured(metrics(runs), settings)


def train_arms(lesson: Lesson, arms: Sequence[str], seeds: int) -> Runs:
    """Train once per precision and seed; a seed's runs share initial weights, data, order and validation split."""
    runs: dict[str, list[Learned]] = {arm: [] for arm in arms}
    for seed in range(seeds):
        for arm in arms:
            runs[arm].append(learn(lesson, arm, seed))
    return runs


def learn(lesson: Lesson, arm: str, seed: int) -> Learned:
    """Train once, and say how good the model is on sequences that it has not seen."""
    device, length = torch.device(lesson.device), lesson.model.context + 1
    chain = draw_chain(lesson.model.vocab_size, sharpness=3.0, generator=_generator(CHAIN_SEED))
    train_split = chain.sample(lesson.train_sequences, length, _generator(2 * seed))
    val_split = chain.sample(lesson.val_sequences, length, _generator(2 * seed + 1))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = GPT(lesson.model).to(device)  # drawn on the CPU: the same weights on every device
    optimizer = torch.optim.AdamW(model.parameters(), lr=lesson.lr, fused=True)
    factor = warmup_cosine(lesson.steps, warmup=max(1, lesson.steps // 10))
    schedule = Schedule(optimizer, factor, steps=lesson.steps)
    step = TrainStep(model, optimizer, precision_for(arm, device.type), next_token_loss, schedule=schedule)
    stream = Stream(loader(train_split, batch_size=lesson.batch_size, device=device, seed=seed), device)
    for _ in range(lesson.steps):
        step(next(stream))
    state = step.read()
    found = evaluate(step, loader(val_split, batch_size=128, device=device))
    return Learned(found.accuracy, found.loss, chain.chance, chain.ceiling, state.applied, state.skipped, state.scale)


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


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
