"""A11: a checkpoint whose scaler was disabled, loaded into a run that needs one."""

import tempfile
from pathlib import Path

from benchmarks.conformance.case import Case, Result, Subject, described, verdict
from benchmarks.conformance.job import Job, windows
from benchmarks.conformance.stepwise import PlainLoop, broken


def judge(subject: Subject) -> Result:
    """Save in bf16, go on in fp16."""
    with tempfile.TemporaryDirectory() as name:
        subject.train(Job(windows=windows(2), precision="bf16", save_to=Path(name)))
        try:
            trace = subject.train(Job(windows=windows(3), resume_from=Path(name)))
        except Exception as error:  # noqa: BLE001  whatever is raised here is the failure that the case asks about
            return verdict(False, described(error))
    moved = trace.last.moved_from(trace.start)
    return verdict(trace.last.finite() and moved > 0, f"resumed at scale {trace.start.scale:g}, moved by {moved:.3g}")


CASE = Case(
    hazard="A11",
    question="Can a bf16 run's checkpoint be resumed in fp16?",
    conforming="training goes on, at the initial scale",
    references=("fairseq2 #1346", "PaddleNLP #6853"),
    judge=judge,
    broken=broken(PlainLoop),
)
