"""What the benchmark times: one model, the same batches, and a worker for each arm."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from amp_core.by_hand import make_scaler, step_by_hand
from amp_core.model import GPT, GPTConfig, next_token_loss
from amp_core.precision import precision_for
from amp_core.step import Batch, TrainStep
from amp_core.timing import TrainingWorker

BY_HAND = "_by_hand"
MAX_GRAD_NORM = 1.0
CPU_ARMS = ("fp32", "bf16", "bf16_by_hand")
CUDA_ARMS = (*CPU_ARMS, "fp16", "fp16_by_hand")


@dataclass(frozen=True)
class Workload:
    """A model and the shape of its batches: `batch_size` sequences of the model's context plus one."""

    model: GPTConfig
    batch_size: int

    def __str__(self) -> str:
        return f"{self.model} batch={self.batch_size}"

    def batches(self, device: torch.device, count: int = 4) -> tuple[Batch, ...]:
        """Return random batches of int64 tokens, the same on every call."""
        generator = torch.Generator().manual_seed(0)
        shape = (self.batch_size, self.model.context + 1)
        return tuple(
            (torch.randint(self.model.vocab_size, shape, generator=generator).to(device),) for _ in range(count)
        )

    def worker(self, arm: str, device: torch.device, batches: Sequence[Batch]) -> TrainingWorker:
        """Return a worker for an arm, with a fresh model; all arms' models start from the same weights."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model = GPT(self.model).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
        make = _by_hand_step if arm.endswith(BY_HAND) else _core_step
        return TrainingWorker(make(model, optimizer, arm.removesuffix(BY_HAND), device), batches)


def workload_for(device: torch.device) -> Workload:
    """Return a workload that fills the device and still steps in under a second."""
    if device.type == "cuda":
        return Workload(GPTConfig(vocab_size=50304, context=1024, layers=12, heads=12, width=768), batch_size=8)
    return Workload(GPTConfig(vocab_size=64, context=32, layers=1, heads=4, width=256), batch_size=4)


def arms_for(device: torch.device) -> tuple[str, ...]:
    """Return the arms that are timed on a device; float16 is emulated on most CPUs, and not timed there."""
    return CUDA_ARMS if device.type == "cuda" else CPU_ARMS


def _core_step(
    model: GPT, optimizer: torch.optim.Optimizer, name: str, device: torch.device
) -> Callable[[Batch], Tensor]:
    step = TrainStep(model, optimizer, precision_for(name, device.type), next_token_loss, MAX_GRAD_NORM)
    return lambda batch: step(batch).loss


def _by_hand_step(
    model: GPT, optimizer: torch.optim.Optimizer, name: str, device: torch.device
) -> Callable[[Batch], Tensor]:
    dtype = precision_for(name, device.type).compute_dtype
    scaler = make_scaler(device.type, dtype)
    return lambda batch: step_by_hand(
        model,
        optimizer,
        scaler,
        [batch],
        next_token_loss,
        device_type=device.type,
        dtype=dtype,
        max_grad_norm=MAX_GRAD_NORM,
    )
