"""A40: a scaler made without a device, which is disabled where there is no CUDA."""

import torch

from benchmarks.conformance.case import Case, NotApplicableError, Result, Subject, verdict
from benchmarks.conformance.cases.a34_silent_dtype import CASE as SILENT
from benchmarks.conformance.job import INF, Job, windows
from benchmarks.conformance.stepwise import PlainLoop, broken


def judge(subject: Subject) -> Result:
    """Ask for fp16 on this CPU by name alone: an overflow must be skipped and halve the scale."""
    if not SILENT.judge(subject).observed.startswith("fp16 asked, torch.float16 ran"):
        raise NotApplicableError("has no fp16 on a CPU by name alone")
    trace = subject.train(Job(windows=windows(2, bad={1: INF}), scaler_given=False))
    first, second = trace.steps
    good = first.scale == 65536.0 and second.scale == 32768.0 and second.finite()
    return verdict(good, f"scale {first.scale:g} -> {second.scale:g} on an overflow")


class DefaultScaler(PlainLoop):
    """Makes the scaler without naming a device."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.scaler = torch.amp.GradScaler()


CASE = Case(
    hazard="A40",
    question="Is the scaler that comes with fp16 enabled on a machine without CUDA?",
    conforming="the scale is 65536, and 32768 after an overflow",
    references=("measured",),
    judge=judge,
    broken=broken(DefaultScaler),
)
