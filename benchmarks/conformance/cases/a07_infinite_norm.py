"""A07: finite gradients whose norm overflows are clipped to zeros, and the step is taken with them."""

import torch
from torch import Tensor, nn

from amp_core.step import Batch
from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.job import Job, plain_adamw, windows
from benchmarks.conformance.stepwise import PlainLoop, broken

DECAYED = 1.0 - 0.05 * 0.01  # what AdamW's weight decay leaves of a parameter whose gradients are zeros


def judge(subject: Subject) -> Result:
    """Give each parameter a gradient of 3e38: the step must be skipped, or taken with gradients that are not zeros."""
    job = Job(windows=windows(1), precision="fp32", optimizers=plain_adamw, clip=1.0, loss_fn=huge)
    trace = subject.train(job)
    moved = trace.last.moved_from(trace.start)
    decay_only = all(
        torch.allclose(now, before * DECAYED, rtol=1e-6, atol=0.0)
        for now, before in zip(trace.last.params, trace.start.params, strict=True)
    )
    return verdict(
        moved == 0.0 or not decay_only, f"parameters moved by {moved:.3g}" + (", by weight decay alone" * decay_only)
    )


def huge(model: nn.Module, _: Batch) -> Tensor:
    """Return a loss whose gradient is 3e38 everywhere; the sum itself is kept finite."""
    terms = [((param - param.detach()) * 3e38).sum() for param in model.parameters()]
    return torch.stack(terms).sum()


class TakesIt(PlainLoop):
    """Clips by an infinite norm."""


CASE = Case(
    hazard="A07",
    question="Is a step not taken when the gradients are finite but their norm is infinite?",
    conforming="the parameters stay, to the bit (or move by rightly clipped gradients)",
    references=("PyT #46849", "deepmd-kit #5519"),
    judge=judge,
    broken=broken(TakesIt),
)
