"""Subjects that are driven window by window, and the plain loop that the broken ones are made from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from amp_core.step import Batch
from benchmarks.conformance.job import Job, Seen, Trace, Window, copies


class Runner(Protocol):
    """A job under way."""

    def step(self, window: Window) -> None:
        """Take one optimizer step over a window."""

    def see(self) -> Seen:
        """Look at what stands now."""

    def save(self, folder: Path) -> None:
        """Write a checkpoint."""

    def load(self, folder: Path) -> None:
        """Go on from a checkpoint."""


@dataclass(frozen=True)
class Stepwise:
    """A subject whose library leaves the loop to its user."""

    name: str
    begin: Callable[[Job], Runner]

    def train(self, job: Job) -> Trace:
        """Take every window in turn."""
        runner = self.begin(job)
        if job.resume_from is not None:
            runner.load(job.resume_from)
        start = runner.see()
        steps = []
        for window in [window for _ in range(job.epochs) for window in job.windows]:
            runner.step(window)
            if job.observed:
                steps.append(runner.see())
            job.between()
        if job.save_to is not None:
            runner.save(job.save_to)
        return Trace(start, tuple(steps) or (runner.see(),))


class PlainLoop:
    """The recipe in torch alone, in pieces; a broken subject replaces one of them."""

    def __init__(self, job: Job) -> None:
        self.job = job
        model = self.wrap(job.model())
        self.optimizers: Sequence[Optimizer] = job.optimizers(model)
        self.model = job.dressed(model)
        self.scaler = job.scaler()
        factor = job.factor or (lambda _: 1.0)
        self.schedulers = [LambdaLR(optimizer, factor) for optimizer in self.optimizers]
        self.skipped = False

    def wrap(self, model: nn.Module) -> nn.Module:
        """Make the model ready for several ranks."""
        if self.job.sharded:
            from torch.distributed.fsdp import fully_shard  # here, since importing it takes half a second

            fully_shard(model)
            return model
        return nn.parallel.DistributedDataParallel(model) if self.job.ranks > 1 else model

    def step(self, window: Window) -> None:
        """Accumulate, then unscale, clip, step, update and advance."""
        for batch in window:
            self.backward(batch, self.share(batch, window))
        scale = self.scaler.get_scale()
        self.unscale()
        self.clip()
        self.apply()
        self.update()
        self.skipped = self.scaler.get_scale() < scale
        self.advance()
        self.clear()

    def share(self, batch: Batch, window: Window) -> float:
        """Return what part of the window's loss a micro-batch is."""
        weigh = self.job.weigh or (lambda _: 1)
        return weigh(batch) / sum(weigh(each) for each in window)

    def backward(self, batch: Batch, share: float) -> None:
        """Add a micro-batch's scaled gradients."""
        with torch.amp.autocast("cpu", dtype=self.job.dtype, enabled=self.job.precision != "fp32"):
            loss = self.job.loss_fn(self.model, batch)
        scaled = self.scaler.scale(loss * share)
        scaled.backward()  # type: ignore[no-untyped-call]  # torch declares no types for it

    def unscale(self) -> None:
        """Divide the gradients by the scale."""
        for optimizer in self.optimizers:
            self.scaler.unscale_(optimizer)

    def clip(self) -> None:
        """Clip the gradients' norm."""
        if self.job.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.job.clip)

    def apply(self) -> None:
        """Step each optimizer, or skip it."""
        for optimizer in self.optimizers:
            self.scaler.step(optimizer)

    def update(self) -> None:
        """Adapt the scale."""
        self.scaler.update()

    def advance(self) -> None:
        """Move the learning rates on, unless the step was skipped."""
        if not self.skipped:
            for scheduler in self.schedulers:
                scheduler.step()

    def clear(self) -> None:
        """Drop the gradients."""
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)

    def see(self) -> Seen:
        """Look at the model, the first learning rate and the scale."""
        rate = float(self.optimizers[0].param_groups[0]["lr"])
        return Seen(copies(self.model), rate, self.scaler.get_scale(), self.skipped)

    def save(self, folder: Path) -> None:
        """Write one file with every state."""
        torch.save(self.state(), folder / "checkpoint.pt")

    def load(self, folder: Path) -> None:
        """Read that file back."""
        state = torch.load(folder / "checkpoint.pt", weights_only=True)
        self.model.load_state_dict(state["model"])
        self.scaler.load_state_dict(state.get("scaler", {}))
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        for scheduler, saved in zip(self.schedulers, state["schedulers"], strict=True):
            scheduler.load_state_dict(saved)

    def state(self) -> dict[str, object]:
        """Return every state: model, optimizers, schedulers, scaler."""
        return {
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "schedulers": [scheduler.state_dict() for scheduler in self.schedulers],
            "scaler": self.scaler.state_dict(),
        }


def broken(loop: Callable[[Job], Runner]) -> Stepwise:
    """Return a subject with a bug."""
    return Stepwise("broken", loop)
