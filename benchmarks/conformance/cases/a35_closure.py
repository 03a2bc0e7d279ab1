"""A35: an optimizer that needs a closure, which loss scaling cannot serve."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from amp_core.step import Batch
from benchmarks.conformance.case import Case, Result, Subject, described, verdict
from benchmarks.conformance.job import Job, squared_error, windows
from benchmarks.conformance.stepwise import PlainLoop, broken


def lbfgs(model: nn.Module) -> Sequence[torch.optim.Optimizer]:
    """Return LBFGS over all parameters."""
    return (torch.optim.LBFGS(model.parameters()),)


def judge(subject: Subject) -> Result:
    """Give it LBFGS in fp16, and count the forward passes until it objects."""
    passes = []

    def counted(model: nn.Module, batch: Batch) -> Tensor:
        passes.append(1)
        return squared_error(model, batch)

    try:
        subject.train(Job(windows=windows(2), optimizers=lbfgs, loss_fn=counted))
    except Exception as error:  # noqa: BLE001  the message is what the case asks about
        named = "LBFGS" in str(error)
        return verdict(not passes and named, f"after {len(passes)} forward passes: {described(error)}")
    return verdict(False, f"took {len(passes)} steps")


CASE = Case(
    hazard="A35",
    question="Is LBFGS with a loss scale refused before training, by name?",
    conforming="an error before the first forward pass that names the optimizer",
    references=("torch's GradScaler",),
    judge=judge,
    broken=broken(PlainLoop),
)
