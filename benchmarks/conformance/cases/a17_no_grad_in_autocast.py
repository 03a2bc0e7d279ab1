"""A17: a forward pass without gradients leaves casts in autocast's cache that have no graph."""

import torch
from torch import Tensor, nn

from amp_core.step import Batch
from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.job import Job, squared_error, windows
from benchmarks.conformance.stepwise import PlainLoop, broken


def judge(subject: Subject) -> Result:
    """Run the model once under no_grad before the loss, in the same autocast context."""

    def twice(model: nn.Module, batch: Batch) -> Tensor:
        with torch.no_grad():
            model(batch[0])
        return squared_error(model, batch)

    trace = subject.train(Job(windows=windows(1), precision="bf16", loss_fn=twice))
    still = sum(torch.equal(a, b) for a, b in zip(trace.start.params, trace.last.params, strict=True))
    return verdict(not still, f"{still} of {len(trace.start.params)} parameters got no gradient")


class LosesWeights(PlainLoop):
    """Gives the weights no gradient."""

    def clip(self) -> None:
        """Drop the gradients of matrices, as casts without a graph would."""
        for param in self.model.parameters():
            if param.dim() == 2:
                param.grad = None


CASE = Case(
    hazard="A17",
    question="Does every parameter get a gradient after a no_grad pass in the same autocast context?",
    conforming="all parameters move (torch before 2.13 lost the weights)",
    references=("PyT #65766", "PyT #105211", "PyT #112583", "PyT #158232", "PyT #165068"),
    judge=judge,
    broken=broken(LosesWeights),
)
