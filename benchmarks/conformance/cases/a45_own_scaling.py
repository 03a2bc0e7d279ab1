"""A45: an optimizer that looks at the scaler by itself, as some fused ones do, is stepped without one."""

from collections.abc import Iterable, Sequence

import torch
from torch import nn

from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.job import Job, windows
from benchmarks.conformance.stepwise import PlainLoop, broken

NAN = float("nan")


class OwnScaling(torch.optim.Optimizer):
    """SGD that asks the scaler it is given whether the gradients are finite, and what to divide them by."""

    _step_supports_amp_scaling = True

    def __init__(self, params: Iterable[nn.Parameter]) -> None:
        super().__init__(params, {"lr": 0.05})

    @torch.no_grad()
    def step(self, closure: object = None, grad_scaler: torch.amp.GradScaler | None = None) -> None:  # noqa: ARG002
        """Step, unless the scaler knows of an overflow."""
        found = grad_scaler._check_inf_per_device(self) if grad_scaler else {}  # noqa: SLF001  # as such optimizers do
        if any(value.item() for value in found.values()):
            return
        for param in self.param_groups[0]["params"]:
            param.sub_(param.grad, alpha=self.param_groups[0]["lr"])


def alone(model: nn.Module) -> Sequence[torch.optim.Optimizer]:
    """Return one such optimizer over all parameters."""
    return (OwnScaling(model.parameters()),)


def judge(subject: Subject) -> Result:
    """Train with a NaN in the second of three windows."""
    trace = subject.train(Job(windows=windows(3, bad={1: NAN}), optimizers=alone))
    stayed = trace.steps[0].same_parameters(trace.steps[1])
    moved = not trace.last.same_parameters(trace.steps[1])
    finite = trace.last.finite()
    observed = f"parameters kept: {stayed}; the next step taken: {moved}; finite at the end: {finite}"
    return verdict(stayed and moved and finite, observed)


class TrustsTheFlag(PlainLoop):
    """Leaves the guard to an optimizer that says it has one."""

    def apply(self) -> None:
        """Step without a scaler."""
        for optimizer in self.optimizers:
            optimizer.step()


CASE = Case(
    hazard="A45",
    question="Is a NaN kept from an optimizer that wants the scaler itself?",
    conforming="the step is left out, bit by bit, and the next one is taken",
    references=("measured",),
    judge=judge,
    broken=broken(TrustsTheFlag),
)
