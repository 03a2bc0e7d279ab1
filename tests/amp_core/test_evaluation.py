"""Tests of how a language model is evaluated."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from amp_core.data import loader
from amp_core.evaluation import evaluate
from amp_core.model import next_token_loss
from amp_core.step import TrainStep

CPU = torch.device("cpu")
pytestmark = pytest.mark.criterion("T035/AC6")


class Fixed(nn.Module):
    """A model whose logits always favour one token; it notes how it was run."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.seen: list[tuple[bool, bool]] = []

    def forward(self, tokens: Tensor) -> Tensor:
        self.seen.append((self.training, torch.is_grad_enabled()))
        return torch.tensor([0.0, 5.0, 0.0], dtype=torch.float16).expand(*tokens.shape, 3)


def a_step(model: nn.Module) -> TrainStep:
    return TrainStep(model, torch.optim.SGD(model.parameters(), fused=True), "fp32", next_token_loss)


def test_evaluation_counts_right_predictions_in_eval_mode_without_gradients() -> None:
    model = Fixed().train()
    data = TensorDataset(torch.tensor([[0, 1, 1], [0, 1, 2], [0, 0, 1]]))
    result = evaluate(a_step(model), loader(data, batch_size=2, device=CPU))
    assert (result.tokens, result.accuracy) == (6, 4 / 6)
    log_sum = torch.tensor([0.0, 5.0, 0.0]).logsumexp(0).item()
    assert result.loss == pytest.approx(log_sum - 5.0 * 4 / 6, rel=1e-5)
    assert model.seen == [(False, False)] * 2
    assert model.training


def test_evaluation_without_a_batch_is_refused() -> None:
    empty: Any = []
    with pytest.raises(ValueError, match="nothing to evaluate: the loader has no batch"):
        evaluate(a_step(Fixed()), empty)
