"""How good a language model is: loss and accuracy over a validation split."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from amp_core.data import to_device
from amp_core.step import Batch, TrainStep


@dataclass(frozen=True)
class Evaluation:
    """How good a model is: mean loss in nat, and accuracy, over `tokens` predictions."""

    loss: float
    accuracy: float
    tokens: int


def evaluate(step: TrainStep, batches: Iterable[Batch]) -> Evaluation:
    """Return the loss and accuracy of a step's language model, in `evaluating(step)`; the metrics are float32.

    The host reads once, at the end.

    Raises:
        ValueError: there is no batch.
    """
    sums: list[Tensor] = []
    tokens = 0
    with evaluating(step):
        for batch in batches:
            (sequences,) = to_device(batch, step.device)
            logits = step.model(sequences[:, :-1])
            scores, targets = logits.float().flatten(0, 1), sequences[:, 1:].flatten()
            loss_sum = functional.cross_entropy(scores, targets, reduction="sum")
            sums.append(torch.stack([loss_sum, (scores.argmax(1) == targets).sum().float()]))
            tokens += targets.numel()
    if not tokens:
        raise ValueError("nothing to evaluate: the loader has no batch")
    loss, correct = torch.stack(sums).sum(0).tolist()
    return Evaluation(loss / tokens, correct / tokens, tokens)


@contextmanager
def evaluating(step: TrainStep) -> Iterator[None]:
    """Evaluate in a block: in eval mode, the step's precision, without gradients, on averages if there are any.

    Afterwards every module is in its mode again, train or eval.
    """
    modes = [(module, module.training) for module in step.model.modules()]
    with step.with_averages(), torch.no_grad():
        step.model.eval()
        try:
            with step.precision.products(), step.precision.autocast():
                yield
        finally:
            for module, training in modes:
                module.training = training
