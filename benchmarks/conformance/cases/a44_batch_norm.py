"""A44: a forward pass that overflows leaves NaN in the statistics of BatchNorm, though its step is skipped."""

from torch import nn

from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.job import Job, seeded, windows
from benchmarks.conformance.stepwise import PlainLoop, broken

LARGE = 1e6  # beyond float16


def judge(subject: Subject) -> Result:
    """Train with inputs that overflow in the second of four windows, and look at the statistics at the end."""
    model = seeded(lambda: nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)))
    good = windows(4)
    inputs, *rest = good[1][0]
    subject.train(Job(windows=(good[0], ((inputs * LARGE, *rest),), *good[2:]), model=lambda: model))
    bad = [name for name, buffer in model.named_buffers() if not buffer.isfinite().all()]
    return verdict(not bad, f"not finite after a skipped step: {', '.join(bad) or 'nothing'}")


CASE = Case(
    hazard="A44",
    question="Do the statistics of BatchNorm survive an overflow in the forward pass?",
    conforming="every buffer is finite after the skipped step, and training goes on",
    references=("measured",),
    judge=judge,
    broken=broken(PlainLoop),
)
