"""A03: the scaler is not updated after a skipped step, and the next `unscale_` raises."""

import torch

from benchmarks.conformance.case import Case, Result, Subject, described, verdict
from benchmarks.conformance.job import INF, Job, plain_adamw, windows
from benchmarks.conformance.stepwise import PlainLoop, broken


def judge(subject: Subject) -> Result:
    """A good window, two that overflow, a good one: the last must move the parameters."""
    try:
        trace = subject.train(Job(windows=windows(4, bad={1: INF, 2: INF}), clip=1.0, optimizers=plain_adamw))
    except (RuntimeError, AssertionError) as error:
        return verdict(False, described(error))
    stayed = trace.steps[0].same_parameters(trace.steps[2])
    moved = trace.steps[3].moved_from(trace.steps[2])
    return verdict(stayed and moved > 0, f"after two skipped steps the third moved the parameters by {moved:.3g}")


class ForgetsUpdate(PlainLoop):
    """Steps and updates only where it finds the gradients finite."""

    def update(self) -> None:
        """Leave the update out after an overflow."""
        grads = [param.grad for param in self.model.parameters() if param.grad is not None]
        if all(bool(torch.isfinite(grad).all()) for grad in grads):
            super().update()


CASE = Case(
    hazard="A03",
    question="Is the scaler updated after a skipped step too?",
    conforming="training goes on after two overflows in a row",
    references=("LVSM #19", "espnet #2362"),
    judge=judge,
    broken=broken(ForgetsUpdate),
)
