"""A24: a shorter last window divided by the length of a full one."""

import torch

from amp_core.step import Batch
from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.job import Job, plain_sgd, windows
from benchmarks.conformance.stepwise import PlainLoop, broken


def judge(subject: Subject) -> Result:
    """Take windows of four and of two micro-batches; the latter must move as one batch of both would."""
    full, *_ = windows(1, 4)
    short = windows(3, 2)[2]
    parts = subject.train(Job(windows=(full, short), precision="fp32", optimizers=plain_sgd))
    whole = subject.train(Job(windows=(joined(full), joined(short)), precision="fp32", optimizers=plain_sgd))
    moved = [trace.steps[1].moved_from(trace.steps[0]) for trace in (parts, whole)]
    ratio = moved[0] / moved[1]
    return verdict(abs(ratio - 1.0) < 1e-3, f"a window of 2 after one of 4 moves {ratio:.3f} of what one batch would")


def joined(window: tuple[Batch, ...]) -> tuple[Batch]:
    """Return a window of one batch that holds the rows of all."""
    inputs, targets = (torch.cat([batch[index] for batch in window]) for index in (0, 1))
    return ((inputs, targets, torch.tensor(1.0)),)


class DividesByFull(PlainLoop):
    """Divides each loss by the length of a full window."""

    def share(self, _batch: Batch, _window: tuple[Batch, ...]) -> float:
        """Return one over the first window's length."""
        return 1.0 / len(self.job.windows[0])


CASE = Case(
    hazard="A24",
    question="Is a partial last window averaged over its own micro-batches?",
    conforming="it moves the parameters as one batch of its rows does",
    references=("transformers #34191", "transformers #35203", "PL #19987"),
    judge=judge,
    broken=broken(DividesByFull),
)
