"""A37: a checkpoint that can be read only by running pickled code."""

import argparse
import pickle
import tempfile
from pathlib import Path

import torch

from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.job import Job, windows
from benchmarks.conformance.stepwise import PlainLoop, broken


def judge(subject: Subject) -> Result:
    """Save a checkpoint, and read each of its files with `weights_only=True`."""
    with tempfile.TemporaryDirectory() as name:
        subject.train(Job(windows=windows(2), factor=lambda _: 0.5, save_to=Path(name)))
        files = sorted(path for path in Path(name).rglob("*") if path.is_file())
        refused = [path.name for path in files if not _readable(path)]
    return verdict(bool(files) and not refused, f"{len(files)} files, needing pickle: {', '.join(refused) or 'none'}")


def _readable(path: Path) -> bool:
    if path.suffix == ".safetensors":
        return True
    try:
        torch.load(path, weights_only=True)
    except pickle.UnpicklingError:
        return False
    return True


class SavesObjects(PlainLoop):
    """Puts its options into the checkpoint as they are."""

    def state(self) -> dict[str, object]:
        """Add an object of a class."""
        return {**super().state(), "options": argparse.Namespace(lr=0.05)}


CASE = Case(
    hazard="A37",
    question="Can a whole checkpoint be read without unpickling code?",
    conforming="each file loads with torch.load(weights_only=True), or is safetensors",
    references=("timm #2003",),
    judge=judge,
    broken=broken(SavesObjects),
)
