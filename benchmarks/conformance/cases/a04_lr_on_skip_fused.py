"""A04 and A05 together: with a fused optimizer the schedule moves on although its step was skipped."""

from dataclasses import replace

from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.cases.a04_lr_on_skip import CASE as PLAIN
from benchmarks.conformance.job import INF, Job, windows


def judge(subject: Subject) -> Result:
    """Compare the learning rate before and after a window that overflows."""
    trace = subject.train(Job(windows=windows(3, bad={1: INF}), factor=lambda step: 0.9**step))
    before, after, last = (seen.lr for seen in trace.steps)
    stayed = trace.steps[0].same_parameters(trace.steps[1])
    good = stayed and after == before and last < before
    return verdict(good, f"lr {before:.4g} -> {after:.4g} on the skipped step, then {last:.4g}")


CASE: Case = replace(
    PLAIN,
    question="Does the learning rate stay when a fused optimizer skips its step?",
    references=("Acc #4242", "PyT #44511", "PL #16228"),
    judge=judge,
)
