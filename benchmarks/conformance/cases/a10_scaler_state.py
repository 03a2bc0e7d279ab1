"""A10: a checkpoint without the scaler's state."""

import tempfile
from pathlib import Path

from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.job import INF, Job, windows
from benchmarks.conformance.stepwise import PlainLoop, broken

ALL = windows(10, bad={1: INF, 2: INF})
GROWTH = 4  # windows: the cut below falls into the middle of one


def judge(subject: Subject) -> Result:
    """Train ten windows at once, and in two halves with a checkpoint between them."""
    whole = subject.train(Job(windows=ALL, growth_interval=GROWTH, factor=lambda step: 0.9**step))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first = Job(windows=ALL[:5], growth_interval=GROWTH, factor=lambda step: 0.9**step, save_to=folder)
        cut = subject.train(first)
        second = Job(windows=ALL[5:], growth_interval=GROWTH, factor=lambda step: 0.9**step, resume_from=folder)
        resumed = subject.train(second)
    same = resumed.last.same_parameters(whole.last)
    scales = f"scale {cut.last.scale:g} when saved, {resumed.start.scale:g} when resumed"
    good = same and resumed.last.scale == whole.last.scale and resumed.start.scale == cut.last.scale
    return verdict(good, f"{scales}; parameters at the end {'the same' if same else 'differ'}")


class ForgetsScaler(PlainLoop):
    """Saves everything but the scaler."""

    def state(self) -> dict[str, object]:
        """Leave the scaler out."""
        return {**super().state(), "scaler": self.job.scaler().state_dict()}


CASE = Case(
    hazard="A10",
    question="Is the loss scale, with its growth counter, part of a checkpoint?",
    conforming="a resumed run has the bits and the scale of one that was not interrupted",
    references=(
        "transformers #34053",
        "transformers #11663",
        "composer #1376",
        "ultralytics #22189",
        "detectron2 #3686",
    ),
    judge=judge,
    broken=broken(ForgetsScaler),
)
