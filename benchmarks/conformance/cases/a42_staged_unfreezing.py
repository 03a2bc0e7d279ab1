"""A42: parameters that join the optimizer later bring the gradients of all the steps before with them."""

from collections.abc import Sequence

import torch
from torch import nn

from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.job import Job, Trace, a_model, windows
from benchmarks.conformance.stepwise import PlainLoop, broken


def judge(subject: Subject) -> Result:
    """Give the optimizer the first layer after two steps; that it required gradients all along must not matter."""
    gap = staged(subject, frozen=False).last.moved_from(staged(subject, frozen=True).last)
    return verdict(
        gap == 0.0, f"a layer that joins later ends {gap:.3g} from where one ends that was frozen until then"
    )


def staged(subject: Subject, *, frozen: bool) -> Trace:
    """Train the last layer, and from the third step on the first one, too."""
    model, steps, optimizers = a_model(), [], list[torch.optim.Optimizer]()
    first = list(model.parameters())[:2]
    for param in first:
        param.requires_grad_(not frozen)

    def of_the_last_layer(module: nn.Module) -> Sequence[torch.optim.Optimizer]:
        optimizers[:] = [torch.optim.AdamW(list(module.parameters())[2:], lr=0.05, fused=True)]
        return optimizers

    def unfreeze() -> None:
        steps.append(1)
        if len(steps) == 2:
            for param in first:
                param.requires_grad_(True)
            optimizers[0].param_groups[0]["params"] += first

    return subject.train(Job(windows=windows(4), model=lambda: model, optimizers=of_the_last_layer, between=unfreeze))


CASE = Case(
    hazard="A42",
    question="Do parameters that join the optimizer later begin without gradients?",
    conforming="they train as if they had been frozen until then, bit by bit",
    references=("measured",),
    judge=judge,
    broken=broken(PlainLoop),
)
