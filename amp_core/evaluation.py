"""How good a language model is: loss and accuracy over a validation split."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from amp_core.data import to_device
from amp_core.precision import Precision
from amp_core.step import Batch, TrainStep


@dataclass(frozen=True)
class Evaluation:
    """How good a model is: mean loss in nat, and accuracy, over `tokens` predictions."""

    loss: float
    accuracy: float
    tokens: int


def evaluate(model: nn.Module, batches: Iterable[Batch], device: torch.device, precision: Precision) -> Evaluation:
    """Return the loss and accuracy of a language model; it computes in `precision`, the metrics in float32.

    Every module's train or eval mode is put back afterwards. The host reads once, at the end.

    Raises:
        ValueError: there is no batch.
    """
    sums: list[Tensor] = []
    tokens = 0
    with modes_kept(model), torch.inference_mode():
        model.eval()
        for batch in batches:
            (sequences,) = to_device(batch, device)
            with precision.autocast():
                logits = model(sequences[:, :-1])
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
    """Evaluate in a block: in eval mode, the step's precision, without gradients, on averages if there are any."""
    with step.with_averages(), modes_kept(step.model), torch.no_grad():
        step.model.eval()
        with step.precision.products(), step.precision.autocast():
            yield


@contextmanager
def modes_kept(model: nn.Module) -> Iterator[None]:
    """Put every module back into its mode, train or eval, after a block that may change it."""
    before = [(module, module.training) for module in model.modules()]
    try:
        yield
    finally:
        for module, training in before:
            module.training = training
