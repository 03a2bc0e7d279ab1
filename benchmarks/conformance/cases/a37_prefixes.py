"""A37: names of the compiler's wrapper in a checkpoint, which then fits no plain model."""

import tempfile
from pathlib import Path

from benchmarks.conformance.case import Case, Result, Subject, described, verdict
from benchmarks.conformance.job import Job, windows
from benchmarks.conformance.stepwise import PlainLoop, broken


def judge(subject: Subject) -> Result:
    """Save from a compiled model, and go on with a plain one."""
    with tempfile.TemporaryDirectory() as name:
        saved = subject.train(Job(windows=windows(1), precision="fp32", compiled=True, save_to=Path(name)))
        try:
            resumed = subject.train(Job(windows=windows(1), precision="fp32", resume_from=Path(name)))
        except Exception as error:  # noqa: BLE001  whatever is raised here is the failure that the case asks about
            return verdict(False, f"not resumed: {described(error)}")
    same = resumed.start.same_parameters(saved.last)
    return verdict(same, f"resumed on a plain model with {'the same' if same else 'other'} parameters")


CASE = Case(
    hazard="A37",
    question="Can a compiled model's checkpoint be resumed on the plain model?",
    conforming="it loads, with the same parameters",
    references=("nanoGPT #325", "train-llm #36"),
    judge=judge,
    broken=broken(PlainLoop),
)
