"""A38: deprecated `torch.cuda.amp` calls on the way through a step."""

import torch

from benchmarks.conformance.case import Case, Result, Subject, hushed, verdict
from benchmarks.conformance.job import Job, Window, windows
from benchmarks.conformance.stepwise import PlainLoop, broken


def judge(subject: Subject) -> Result:
    """Train in each precision, and look for deprecation warnings about AMP."""
    told: set[str] = set()
    for precision in ("fp32", "bf16", "fp16"):
        with hushed() as warned:
            subject.train(Job(windows=windows(2, 2), precision=precision))
        told |= {str(each.message) for each in warned if issubclass(each.category, FutureWarning | DeprecationWarning)}
    about = sorted(text for text in told if "amp" in text)
    return verdict(not about, (about or ["no deprecation warning about AMP"])[0][:160])


class OldCalls(PlainLoop):
    """Makes a scaler by the old name."""

    def step(self, window: Window) -> None:
        """Call torch.cuda.amp."""
        torch.cuda.amp.GradScaler(enabled=False)
        super().step(window)


CASE = Case(
    hazard="A38",
    question="Is training free of the deprecated torch.cuda.amp?",
    conforming="no deprecation warning about AMP in fp32, bf16 and fp16",
    references=("nanoGPT", "measured"),
    judge=judge,
    broken=broken(OldCalls),
)
