"""What the benchmark runs: one model, the same batches, a worker for each arm, and the canonical recipe by hand."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from amp_core.benchmark.arms import BY_HAND, LEAN, precision_of
from amp_core.model import GPT, GPTConfig, next_token_loss
from amp_core.precision import Precision
from amp_core.step import Batch, LossFn, TrainStep

MAX_GRAD_NORM = 1.0
LR = 3e-4


@dataclass(frozen=True)
class Workload:
    """A model and the shape of its batches: `batch_size` sequences of the model's context plus one."""

    model: GPTConfig
    batch_size: int

    def __str__(self) -> str:
        return f"{self.model} batch={self.batch_size}"

    @property
    def tokens(self) -> int:
        """Return the tokens that one step predicts."""
        return self.batch_size * self.model.context

    def build(self, device: torch.device) -> GPT:
        """Return a fresh model, made on the device, with the same weights on every call."""
        on_gpu = device.type == "cuda"
        with torch.random.fork_rng(devices=[torch.cuda.current_device()] if on_gpu else []), device:
            torch.manual_seed(0)
            return GPT(self.model)

    def batches(self, device: torch.device, count: int = 4) -> tuple[Batch, ...]:
        """Return random batches of int64 tokens, the same on every call."""
        generator = torch.Generator().manual_seed(0)
        shape = (self.batch_size, self.model.context + 1)
        return tuple(
            (torch.randint(self.model.vocab_size, shape, generator=generator).to(device),) for _ in range(count)
        )

    def worker(self, arm: str, device: torch.device, batches: Sequence[Batch]) -> "TrainingWorker":
        """Return a worker for an arm, with a fresh model; all arms' models start from the same weights."""
        model = replace(self, model=replace(self.model, lean=arm.endswith(LEAN) or self.model.lean)).build(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=LR, fused=True)
        precision = precision_of(arm, device.type)
        make = _by_hand_step if arm.endswith(BY_HAND) else _core_step
        return TrainingWorker(make(model, optimizer, precision), batches, precision)


class TrainingWorker:
    """An arm that trains: its batches in a fixed order, its matrix products as set; it keeps every loss."""

    def __init__(self, step: Callable[[Batch], Tensor], batches: Sequence[Batch], precision: Precision) -> None:
        self._step = step
        self._batches = batches
        self._precision = precision
        self.losses: list[Tensor] = []

    def run(self, steps: int) -> None:
        """Take that many training steps."""
        with self._precision.products():
            for _ in range(steps):
                self.losses.append(self._step(self._batches[len(self.losses) % len(self._batches)]))


def workload_for(device: torch.device) -> Workload:
    """Return a workload that fills the device and still steps in under a second."""
    if device.type == "cuda":
        return Workload(GPTConfig(vocab_size=50304, context=1024, layers=12, heads=12, width=768), batch_size=8)
    return Workload(GPTConfig(vocab_size=64, context=32, layers=1, heads=4, width=256), batch_size=4)


def _core_step(model: GPT, optimizer: torch.optim.Optimizer, precision: Precision) -> Callable[[Batch], Tensor]:
    step = TrainStep(model, optimizer, precision, next_token_loss, max_grad_norm=MAX_GRAD_NORM)
    return lambda batch: step(batch).loss


def _by_hand_step(model: GPT, optimizer: torch.optim.Optimizer, precision: Precision) -> Callable[[Batch], Tensor]:
    scaler = make_scaler(precision.device_type, precision.compute_dtype)
    return lambda batch: step_by_hand(
        model,
        optimizer,
        scaler,
        [batch],
        next_token_loss,
        device_type=precision.device_type,
        dtype=precision.compute_dtype,
        max_grad_norm=MAX_GRAD_NORM,
    )


def make_scaler(device_type: str, dtype: torch.dtype) -> torch.amp.GradScaler:
    """Return torch's scaler, enabled for float16 only, as the recipe has it."""
    return torch.amp.GradScaler(device_type, enabled=dtype is torch.float16)


def step_by_hand(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    window: Sequence[Batch],
    loss_fn: LossFn,
    *,
    device_type: str,
    dtype: torch.dtype,
    max_grad_norm: float | None,
) -> Tensor:
    """Take one optimizer step over a window of micro-batches; return the last one's detached scalar loss."""
    for batch in window:
        with torch.amp.autocast(device_type=device_type, dtype=dtype, enabled=dtype is not torch.float32):
            loss = loss_fn(model, batch)
        scaled = scaler.scale(loss if len(window) == 1 else loss * (1.0 / len(window)))
        scaled.backward()  # type: ignore[no-untyped-call]  # torch declares no types for it
    scaler.unscale_(optimizer)
    if max_grad_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()
