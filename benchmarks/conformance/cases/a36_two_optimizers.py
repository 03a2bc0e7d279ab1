"""A36: of two optimizers one overflows and is skipped, the other steps: the halves of a GAN drift apart."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from amp_core.step import Batch
from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.job import INF, Job, squared_error, windows
from benchmarks.conformance.stepwise import PlainLoop, broken


def halves(model: nn.Module) -> Sequence[torch.optim.Optimizer]:
    """Return a fused AdamW for the first layer, and one for the last."""
    params = list(model.parameters())
    return tuple(torch.optim.AdamW(part, lr=0.05, fused=True) for part in (params[:2], params[2:]))


def one_sided(model: nn.Module, batch: Batch) -> Tensor:
    """Return a loss whose gradients are infinite in the last bias alone."""
    bias = list(model.parameters())[-1]
    return squared_error(model, batch) + (bias * INF).sum()


def judge(subject: Subject) -> Result:
    """Let the second optimizer's gradients overflow: neither half may move."""
    trace = subject.train(Job(windows=windows(1), optimizers=halves, loss_fn=one_sided))
    same = [torch.equal(now, before) for now, before in zip(trace.last.params, trace.start.params, strict=True)]
    first, second = all(same[:2]), all(same[2:])
    words = {True: "stayed", False: "moved"}
    return verdict(first and second, f"the second overflowed and {words[second]}, the first {words[first]}")


CASE = Case(
    hazard="A36",
    question="Do two optimizers skip together when one of them overflows?",
    conforming="neither half of the model moves",
    references=("measured",),
    judge=judge,
    broken=broken(PlainLoop),
)
