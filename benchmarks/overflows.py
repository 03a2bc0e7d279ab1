"""fp16 steps of which some are made to overflow, while the host may read nothing."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from amp_audit import host_reads
from amp_core.benchmark.workload import LR, Workload
from amp_core.model import next_token_loss
from amp_core.precision import precision_for
from amp_core.scaler import LossScaler
from amp_core.step import Batch, TrainStep


class HostRead(RuntimeError):
    """Something made the host wait for the device where nothing may."""


@dataclass(frozen=True)
class Overflows:
    """What became of `steps` steps, `forced` of which were made to overflow, and what watched for host reads."""

    steps: int
    forced: int
    applied: int
    skipped: int
    scale: float
    first_loss: float
    last_loss: float
    watched_by: str

    @property
    def held(self) -> bool:
        """Return whether every step was counted, each forced overflow was skipped, and the loss fell all the same."""
        counted = self.applied + self.skipped == self.steps and self.skipped >= self.forced
        return counted and self.last_loss < self.first_loss


def take_overflowing_steps(
    workload: Workload, device: torch.device, *, steps: int, every: int, growth_interval: int
) -> Overflows:
    """Take fp16 steps, the loss of every so many of which is infinite.

    Raises:
        RuntimeError: after the first step, something made the host wait for the device.
    """
    model = workload.build(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, fused=True)
    scaler = LossScaler(device, dynamic=True, growth_interval=growth_interval)
    step = TrainStep(model, optimizer, precision_for("fp16", device.type), _poisoned_loss, scaler=scaler)
    sound, poison = torch.ones((), device=device), torch.full((), math.inf, device=device)
    tokens = [batch[0] for batch in workload.batches(device)]
    losses = [step((tokens[0], sound)).loss]  # the first step loads libraries, which may wait

    def take() -> None:
        for index in range(1, steps):
            factor = poison if index % every == 0 else sound
            losses.append(step((tokens[index % len(tokens)], factor)).loss)

    watched_by = without_host_reads(take, device)
    state = step.read()
    first, last = torch.stack([losses[0], _last_sound(losses, every)]).tolist()
    return Overflows(steps, (steps - 1) // every, state.applied, state.skipped, state.scale, first, last, watched_by)


def without_host_reads(work: Callable[[], None], device: torch.device) -> str:
    """Do work in which nothing may make the host wait for the device, and return what watched over it.

    Raises:
        RuntimeError: something did; on a CPU, something that would have made it wait for an accelerator.
    """
    if device.type != "cuda":
        reads = host_reads(work)
        if reads.count:
            raise HostRead(f"expected no host read, found {reads.count}, the first is {reads.reads[0]}")
        return "amp_audit.host_reads"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*prototype feature")  # torch says so of this mode
        torch.cuda.set_sync_debug_mode("error")
    try:
        work()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return 'torch.cuda.set_sync_debug_mode("error")'


def _poisoned_loss(model: nn.Module, batch: Batch) -> Tensor:
    """Return the loss of the batch's tokens times its factor."""
    return next_token_loss(model, batch[:1]) * batch[1]


def _last_sound(losses: list[Tensor], every: int) -> Tensor:
    return losses[-1] if (len(losses) - 1) % every else losses[-2]
