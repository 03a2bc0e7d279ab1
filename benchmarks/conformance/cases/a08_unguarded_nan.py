"""A08: NaN gradients in bf16 and fp32, where no scaler stands guard."""

import math

from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.job import Job, windows
from benchmarks.conformance.stepwise import PlainLoop, broken


def judge(subject: Subject) -> Result:
    """Give a NaN loss in the second of three windows."""
    finite = {}
    for precision in ("bf16", "fp32"):
        trace = subject.train(Job(windows=windows(3, bad={1: math.nan}), precision=precision))
        finite[precision] = trace.last.finite()
    said = ", ".join(f"{name} parameters {'finite' if good else 'NaN'}" for name, good in finite.items())
    return verdict(all(finite.values()), f"after one NaN loss: {said}")


CASE = Case(
    hazard="A08",
    question="Do the parameters survive a NaN loss in bf16 and fp32?",
    conforming="all parameters are finite after a NaN batch, and training goes on",
    references=("Megatron-LLM #33", "Megatron-LLM #34"),
    judge=judge,
    broken=broken(PlainLoop),
)
