"""Training a small GPT from a configuration to a result."""

import hashlib
import math
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from amp_core.benchmark.chain import MarkovChain, draw_chain
from amp_core.data import Stream, loader
from amp_core.device import inspect, pick
from amp_core.ema import Ema
from amp_core.evaluation import Evaluation, evaluate
from amp_core.loop import Checkpoints, FitResult, Plan, fit, ignore
from amp_core.model import GPT, GPTConfig, next_token_loss
from amp_core.precision import Precision, Resolved, resolve
from amp_core.schedule import Schedule, warmup_cosine
from amp_core.step import Batch, StepResult, TrainStep
from amp_core.throughput import Throughput, count_training_flops, peak_for
from amp_core.tracking import MemorySink, Sink, StepRecord, Tracker

CHAIN_SEED = 1234  # the task itself is the same for every run; `TrainConfig.seed` draws init, data and order
_DRAWING = threading.Lock()


@dataclass(frozen=True)
class TrainConfig:
    """What to train and how. `steps` counts optimizer steps, each over `accumulate` batches of `batch_size` sequences.

    `use_amp=False` turns AMP off, `True` turns it on where there is an accelerator, None leaves it to `precision`.
    After `patience` validations, one every `validate_every` steps, without a lower loss, training stops. With
    `ema_decay`, it is the parameters' moving averages that are validated.

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
    ema_decay: float | None = None
    validate_every: int | None = None
    patience: int | None = None

    def __post_init__(self) -> None:
        for number in (each.name for each in fields(self) if each.type is int):
            value, least = getattr(self, number), 0 if number in ("seed", "workers") else 1
            if value < least:
                raise ValueError(f"{number} must be at least {least}, found {value!r}")
        if not 0.0 < self.lr < math.inf:
            raise ValueError(f"lr must be a positive number, found {self.lr!r}")
        if self.seed >= 2**62:
            raise ValueError(f"seed must be below 2**62, found {self.seed!r}")
        if self.ema_decay is not None and not 0.0 <= self.ema_decay < 1.0:
            raise ValueError(f"ema_decay must be at least 0 and below 1, found {self.ema_decay!r}")
        self.plan()

    def plan(self) -> Plan:
        """Return the loop's part of it.

        Raises:
            ValueError: a number is out of range.
        """
        return Plan(self.steps, self.accumulate, self.validate_every, self.patience, tokens=_predictions)


@dataclass(frozen=True)
class TrainResult:
    """What a training run came to.

    `observed_dtypes` are those that the model's matrix products gave. `history` has every step of this process, and
    `train_loss` is its last one's, in nat: None if a resumed run had no step left. `digest` is the SHA-256 of the
    parameters: equal digests mean equal bits.
    """

    precision: str
    reason: str
    warnings: tuple[str, ...]
    device: str
    observed_dtypes: tuple[str, ...]
    train_loss: float | None
    val_loss: float
    val_accuracy: float
    chance_accuracy: float
    best_accuracy: float
    applied_steps: int
    skipped_steps: int
    stopped_early: bool
    loss_scale: float
    digest: str
    validations: tuple[tuple[int, float], ...]
    history: tuple[StepRecord, ...]


def train(
    config: TrainConfig,
    sinks: Sequence[Sink] = (),
    *,
    checkpoints: Path | None = None,
    save_every: int = 50,
    resume: bool = False,
    on_step: Callable[[int, StepResult], object] = ignore,
) -> TrainResult:
    """Train as configured, and evaluate; the same configuration on the same device gives the same result.

    A fallback is announced once by a warning, and named in the result. With a folder for `checkpoints`, one is
    written every `save_every` steps; `resume` goes on from the newest, to the same bits as without a break.
    `on_step` is the loop's hook.

    Raises:
        ValueError: the configuration asks for what does not exist, or leaves a loader without a batch.
        CheckpointError: a checkpoint is damaged, of another run, or in the way.
        ScaleCollapsed: training stopped making progress.
    """
    device = pick(config.device)
    facts = inspect(device)
    resolved = resolve(config.precision, config.use_amp, facts)
    for message in resolved.warnings:
        warnings.warn(message, stacklevel=2)
    chain = draw_chain(config.model.vocab_size, sharpness=config.sharpness, generator=_generator(CHAIN_SEED))
    model = build_model(config, device)
    batches, val_loader = build_loaders(config, chain, device)
    step = build_step(config, model, resolved.precision)
    folder = None if checkpoints is None else Checkpoints(checkpoints, every=save_every, run=_identity(config))
    memory, stream = MemorySink(), Stream(batches, device)
    throughput = _throughput(facts.name, resolved.precision, model)
    tracking = Tracker(config.log_every, (memory, *sinks), throughput=throughput, stream=stream)
    with tracking as tracker:
        fitted = fit(
            step,
            stream,
            tracker,
            config.plan(),
            validate=None if config.validate_every is None else lambda: evaluate(step, val_loader).loss,
            checkpoints=folder,
            resume=resume,
            on_step=on_step,
        )
        evaluation = evaluate(step, val_loader)
    return _result(resolved, step, chain, evaluation, fitted, memory)


def build_model(config: TrainConfig, device: torch.device) -> GPT:
    """Return the model, its weights drawn from the seed on the CPU, so that they are the same on every device."""
    with _DRAWING, torch.random.fork_rng(devices=[]):  # modules draw from the generator that all threads share
        torch.manual_seed(config.seed)
        return GPT(config.model).to(device)


def build_loaders(
    config: TrainConfig, chain: MarkovChain, device: torch.device
) -> tuple[DataLoader[Batch], DataLoader[Batch]]:
    """Return the loaders of the training and the validation split: different draws from one chain."""
    length = config.model.context + 1
    train_split = chain.sample(config.train_sequences, length, _generator(2 * config.seed))
    val_split = chain.sample(config.val_sequences, length, _generator(2 * config.seed + 1))
    return (
        loader(train_split, batch_size=config.batch_size, device=device, workers=config.workers, seed=config.seed),
        loader(val_split, batch_size=128, device=device),
    )


def build_step(config: TrainConfig, model: GPT, precision: Precision) -> TrainStep:
    """Return the training step: fused AdamW, a tenth of the steps to warm up, then a cosine to a tenth of the rate."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, fused=True)
    factor = warmup_cosine(config.steps, warmup=max(1, config.steps // 10))
    schedule = Schedule(optimizer, factor, steps=config.steps, device=model.head.weight.device)
    ema = None if config.ema_decay is None else Ema(model.parameters(), config.ema_decay)
    return TrainStep(
        model, optimizer, precision, next_token_loss, max_grad_norm=config.max_grad_norm, schedule=schedule, ema=ema
    )


def digest(model: nn.Module) -> str:
    """Return the SHA-256 of a model's parameters and buffers, names and bits, as 64 hexadecimal digits."""
    seen = hashlib.sha256()
    for name, value in model.state_dict().items():
        seen.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        seen.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return seen.hexdigest()


def _throughput(device_name: str, precision: Precision, model: GPT) -> Throughput | None:
    """Return what gives the tracker an MFU; None where the device's peak is not known."""
    peak = peak_for(device_name, precision.name)
    if peak is None:
        return None
    sequence = torch.zeros(1, model.config.context + 1, dtype=torch.int64)
    flops = count_training_flops(model, next_token_loss, (sequence,))
    return Throughput(peak, flops_per_token=flops / model.config.context)


def _predictions(batch: Batch) -> int:
    """Return how many tokens a batch of sequences (batch, context + 1) trains on."""
    return batch[0][:, 1:].numel()


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _identity(config: TrainConfig) -> Mapping[str, Any]:
    """Return what two runs must share for one to go on from the other; precision and device may change."""
    free = ("use_amp", "precision", "device", "workers", "log_every")
    return {name: value for name, value in asdict(config).items() if name not in free}


def _result(
    resolved: Resolved,
    step: TrainStep,
    chain: MarkovChain,
    evaluation: Evaluation,
    fitted: FitResult,
    memory: MemorySink,
) -> TrainResult:
    return TrainResult(
        precision=resolved.precision.name,
        reason=resolved.reason,
        warnings=resolved.warnings,
        device=str(step.device),
        observed_dtypes=tuple(sorted(str(dtype).removeprefix("torch.") for dtype in step.observed_dtypes)),
        train_loss=memory.records[-1].loss if memory.records else None,
        val_loss=evaluation.loss,
        val_accuracy=evaluation.accuracy,
        chance_accuracy=chain.chance,
        best_accuracy=chain.ceiling,
        applied_steps=fitted.state.applied,
        skipped_steps=fitted.state.skipped,
        stopped_early=fitted.stopped_early,
        loss_scale=fitted.state.scale,
        digest=digest(step.model),
        validations=fitted.validations,
        history=tuple(memory.records),
    )
