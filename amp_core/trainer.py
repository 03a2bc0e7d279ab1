"""Training from a configuration to a result, and evaluation."""

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader

from amp_core.data import MarkovChain, cycle, draw_chain, loader, pins_memory, to_device
from amp_core.device import inspect, pick
from amp_core.model import GPT, GPTConfig, next_token_loss
from amp_core.precision import Precision, Resolved, resolve
from amp_core.scaler import ScaleState
from amp_core.schedule import Schedule, warmup_cosine
from amp_core.step import Batch, TrainStep
from amp_core.tracking import MemorySink, Sink, StepRecord, Tracker

CHAIN_SEED = 1234  # the task itself is the same for every run; `TrainConfig.seed` draws init, data and order


@dataclass(frozen=True)
class TrainConfig:
    """What to train and how. `steps` counts optimizer steps, each over `accumulate` batches of `batch_size` sequences.

    `use_amp=False` turns AMP off, `True` turns it on where there is an accelerator, None leaves it to `precision`.

    Raises:
        ValueError: a number is out of range.
    """

    use_amp: bool | None = None
    precision: str | None = None
    device: str | None = None
    steps: int = 100
    batch_size: int = 16
    lr: float = 1e-2
    seed: int = 0
    max_grad_norm: float | None = 1.0
    accumulate: int = 1
    log_every: int = 10
    workers: int = 0
    model: GPTConfig = field(default_factory=GPTConfig.smoke)
    train_sequences: int = 1024
    val_sequences: int = 512
    sharpness: float = 3.0

    def __post_init__(self) -> None:
        for number in (each.name for each in fields(self) if each.type is int):
            value, least = getattr(self, number), 0 if number in ("seed", "workers") else 1
            if value < least:
                raise ValueError(f"{number} must be at least {least}, found {value!r}")
        if not 0.0 < self.lr < math.inf:
            raise ValueError(f"lr must be a positive number, found {self.lr!r}")


@dataclass(frozen=True)
class Evaluation:
    """How good a model is: mean loss in nat, and accuracy, over `tokens` predictions."""

    loss: float
    accuracy: float
    tokens: int


@dataclass(frozen=True)
class TrainResult:
    """What a training run came to. `train_loss` is the last step's, in nat; `history` has every step."""

    precision: str
    reason: str
    warnings: tuple[str, ...]
    device: str
    train_loss: float
    val_loss: float
    val_accuracy: float
    chance_accuracy: float
    best_accuracy: float
    applied_steps: int
    skipped_steps: int
    loss_scale: float
    history: tuple[StepRecord, ...]


def train(config: TrainConfig, sinks: Sequence[Sink] = ()) -> TrainResult:
    """Train as configured, and evaluate; the same configuration on the same device gives the same result.

    A fallback is announced once by a warning, and named in the result.

    Raises:
        ValueError: the configuration asks for what does not exist, or leaves a loader without a batch.
        ScaleCollapsed: training stopped making progress.
    """
    device = pick(config.device)
    resolved = resolve(config.precision, config.use_amp, inspect(device))
    for message in resolved.warnings:
        warnings.warn(message, stacklevel=2)
    chain = draw_chain(config.model.vocab_size, sharpness=config.sharpness, generator=_generator(CHAIN_SEED))
    model = build_model(config, device)
    batches, val_loader = build_loaders(config, chain, device)
    train_step = build_step(config, model, resolved.precision)
    memory = MemorySink()
    with Tracker(config.log_every, (memory, *sinks)) as tracker:
        state = run_steps(train_step, cycle(batches), tracker, config.steps, device)
    evaluation = evaluate(model, val_loader, device, resolved.precision)
    return _result(resolved, device, chain, evaluation, state, memory)


def build_model(config: TrainConfig, device: torch.device) -> GPT:
    """Return the model, its weights drawn from the seed on the CPU, so that they are the same on every device."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return GPT(config.model).to(device)


def build_loaders(
    config: TrainConfig, chain: MarkovChain, device: torch.device
) -> tuple[DataLoader[Batch], DataLoader[Batch]]:
    """Return the loaders of the training and the validation split: different draws from one chain."""
    length = config.model.context + 1
    train_split = chain.sample(config.train_sequences, length, _generator(2 * config.seed))
    val_split = chain.sample(config.val_sequences, length, _generator(2 * config.seed + 1))
    order = _generator(config.seed)
    return (
        loader(train_split, batch_size=config.batch_size, device=device, workers=config.workers, shuffle_with=order),
        loader(val_split, batch_size=128, device=device),
    )


def build_step(config: TrainConfig, model: GPT, precision: Precision) -> TrainStep:
    """Return the training step: fused AdamW, a tenth of the steps to warm up, then a cosine."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, fused=True)
    factor = warmup_cosine(config.steps, warmup=max(1, config.steps // 10))
    schedule = Schedule(optimizer, factor, steps=config.steps, device=model.head.weight.device)
    return TrainStep(model, optimizer, precision, next_token_loss, config.max_grad_norm, config.accumulate, schedule)


def run_steps(
    train_step: TrainStep, batches: Iterator[Batch], tracker: Tracker, steps: int, device: torch.device
) -> ScaleState:
    """Take `steps` optimizer steps, and return the scaler's final state.

    Raises:
        ScaleCollapsed: seen at the first flush after it happened.
    """
    train_step.model.train()
    pinned = pins_memory(device.type)
    for _ in range(steps):
        lr = train_step.lr.clone()  # the step moves it on
        results = [
            train_step(to_device(next(batches), device, non_blocking=pinned)) for _ in range(train_step.accumulate)
        ]
        last = results[-1]
        flushed = tracker.add(
            loss=torch.stack([result.loss for result in results]).mean(),
            grad_norm=last.grad_norm,
            lr=lr,
            loss_scale=last.loss_scale,
            found_inf=last.found_inf,
        )
        if flushed:
            train_step.scaler.read()
    return train_step.scaler.read()


def evaluate(model: nn.Module, batches: DataLoader[Batch], device: torch.device, precision: Precision) -> Evaluation:
    """Return the loss and accuracy of a language model; it computes in `precision`, the metrics in float32.

    The model's train or eval mode is put back afterwards. The host reads once, at the end.

    Raises:
        ValueError: there is no batch.
    """
    was_training = model.training
    model.eval()
    sums: list[Tensor] = []
    tokens = 0
    try:
        with torch.inference_mode():
            for batch in batches:
                (sequences,) = to_device(batch, device, non_blocking=pins_memory(device.type))
                with precision.autocast():
                    logits = model(sequences[:, :-1])
                sums.append(_summed(logits.float().flatten(0, 1), sequences[:, 1:].flatten()))
                tokens += sequences[:, 1:].numel()
    finally:
        model.train(was_training)
    if not tokens:
        raise ValueError("nothing to evaluate: the loader has no batch")
    loss, correct = torch.stack(sums).sum(0).tolist()
    return Evaluation(loss / tokens, correct / tokens, tokens)


def _summed(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the summed loss and the number of right predictions, float32 (2,), for float32 logits (n, vocab)."""
    loss = functional.cross_entropy(logits, targets, reduction="sum")
    return torch.stack([loss, (logits.argmax(1) == targets).sum().float()])


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _result(
    resolved: Resolved,
    device: torch.device,
    chain: MarkovChain,
    evaluation: Evaluation,
    state: ScaleState,
    memory: MemorySink,
) -> TrainResult:
    return TrainResult(
        precision=resolved.precision.name,
        reason=resolved.reason,
        warnings=resolved.warnings,
        device=str(device),
        train_loss=memory.records[-1].loss,
        val_loss=evaluation.loss,
        val_accuracy=evaluation.accuracy,
        chance_accuracy=chain.chance,
        best_accuracy=chain.ceiling,
        applied_steps=state.applied,
        skipped_steps=state.skipped,
        loss_scale=state.scale,
        history=tuple(memory.records),
    )
