"""A18: autocast's weight cache turned off, so that a weight is cast again at each use."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from amp_core.step import Batch
from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.job import Job, seeded, windows
from benchmarks.conformance.stepwise import PlainLoop, broken

USES = 4
SIDE = 6


class Casts(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch declares no types for it
    """Counts casts of (6, 6) float32 tensors to bfloat16."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
        """Count, and go on."""
        options = kwargs or {}
        if func is torch.ops.aten._to_copy.default and options.get("dtype") is torch.bfloat16:  # noqa: SLF001
            self.count += tuple(args[0].shape) == (SIDE, SIDE) and args[0].dtype is torch.float32
        return func(*args, **options)


def a_square() -> nn.Module:
    """Return one weight, float32 (6, 6)."""
    return seeded(lambda: nn.Linear(SIDE, SIDE, bias=False))


def repeated(model: nn.Module, batch: Batch) -> Tensor:
    """Apply the same layer four times."""
    hidden = batch[0]
    for _ in range(USES):
        hidden = model(hidden).tanh()
    return hidden.float().square().mean()


def judge(subject: Subject) -> Result:
    """Count the casts of a weight that one forward pass uses four times."""
    with Casts() as casts:  # type: ignore[no-untyped-call]  # the same
        subject.train(Job(windows=windows(1), precision="bf16", model=a_square, loss_fn=repeated))
    return verdict(casts.count == 1, f"{casts.count} casts of a weight that is used {USES} times")


class WithoutCache(PlainLoop):
    """Autocasts without the cache."""

    def backward(self, batch: Batch, share: float) -> None:
        """Turn the cache off around the forward pass."""
        with torch.amp.autocast("cpu", dtype=self.job.dtype, enabled=self.job.precision != "fp32", cache_enabled=False):
            loss = self.job.loss_fn(self.model, batch)
        (loss * share).backward()  # type: ignore[no-untyped-call]  # the same


CASE = Case(
    hazard="A18",
    question="Is a weight cast once a forward pass, however often it is used?",
    conforming="one cast",
    references=("PL #19950",),
    judge=judge,
    broken=broken(WithoutCache),
)
