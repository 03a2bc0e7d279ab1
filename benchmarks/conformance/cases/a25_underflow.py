"""A25: float16 without a scaler, whose small gradients are flushed to zero."""

import torch
from torch import nn

from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.job import Job, plain_sgd, windows
from benchmarks.conformance.stepwise import PlainLoop, broken

SMALL = 1e-7  # float16's least positive number is 6e-8


def judge(subject: Subject) -> Result:
    """Give a loss of about 1e-7, and look for weights that did not move although SGD should move each."""
    job = Job(windows=windows(1, bad={0: SMALL}), model=zeroed, optimizers=plain_sgd)
    trace = subject.train(job)
    weight, before = trace.last.params[-2], trace.start.params[-2]
    flushed = float((weight == before).float().mean())
    return verdict(flushed == 0.0, f"{flushed:.0%} of the last layer's gradients were flushed to zero")


def zeroed() -> nn.Module:
    """Return a linear model whose parameters are zeros, so that the least step changes them."""
    model = nn.Sequential(nn.Linear(6, 2))
    with torch.no_grad():
        for param in model.parameters():
            param.zero_()
    return model


class WithoutScaler(PlainLoop):
    """Autocasts to float16 and scales nothing."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.scaler = torch.amp.GradScaler("cpu", enabled=False)


CASE = Case(
    hazard="A25",
    question="Does fp16 imply a loss scale that keeps small gradients?",
    conforming="no gradient of a loss of 1e-7 is flushed to zero",
    references=("physicsnemo #1690",),
    judge=judge,
    broken=broken(WithoutScaler),
)
