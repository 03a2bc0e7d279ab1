"""A13: a step in which no parameter of the optimizer has a gradient."""

import torch
from torch import Tensor, nn

from amp_core.step import Batch
from benchmarks.conformance.case import Case, Result, Subject, described, verdict
from benchmarks.conformance.job import Job, squared_error, windows
from benchmarks.conformance.stepwise import broken
from benchmarks.conformance.subjects.torch_by_hand import ByHand


def judge(subject: Subject) -> Result:
    """Let the second of three windows have a loss that does not depend on the model."""
    calls = []

    def sometimes(model: nn.Module, batch: Batch) -> Tensor:
        calls.append(1)
        return torch.zeros((), requires_grad=True) * 1.0 if len(calls) == 2 else squared_error(model, batch)

    try:
        trace = subject.train(Job(windows=windows(3), loss_fn=sometimes))
    except (AssertionError, RuntimeError) as error:
        return verdict(False, described(error))
    first, second, third = trace.steps
    good = second.same_parameters(first) and third.moved_from(second) > 0
    return verdict(good, f"scale {second.scale:g} after a step without gradients; training went on: {good}")


CASE = Case(
    hazard="A13",
    question="Is a step without any gradient one with nothing to do?",
    conforming="no error; the parameters stay, and the next step moves them",
    references=("PL #7975", "nerfstudio #1919", "WeatherGenerator #356"),
    judge=judge,
    broken=broken(ByHand),
)
