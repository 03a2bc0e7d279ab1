"""A15: the loss scale doubles up to infinity."""

import math

import torch

from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.job import Job, windows
from benchmarks.conformance.stepwise import PlainLoop, broken

STEPS = 40


def judge(subject: Subject) -> Result:
    """Let the scale double at every step from 2**110, on a loss of zero."""
    job = Job(windows=windows(STEPS, bad=dict.fromkeys(range(STEPS), 0.0)), init_scale=2.0**110, growth_interval=1)
    trace = subject.train(job)
    highest = max(seen.scale for seen in trace.steps)
    return verdict(math.isfinite(highest), f"highest scale {highest:g}")


class GrowsForEver(PlainLoop):
    """Doubles the scale itself."""

    def update(self) -> None:
        """Set twice the scale."""
        self.scaler.update(torch.tensor(self.scaler.get_scale()) * 2.0)


CASE = Case(
    hazard="A15",
    question="Is the loss scale kept finite when it may double at every step?",
    conforming="it never reaches infinity",
    references=("PyT #98828", "PyT #98876"),
    judge=judge,
    broken=broken(GrowsForEver),
)
