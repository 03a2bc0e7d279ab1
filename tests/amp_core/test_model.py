"""Tests of the small GPT."""

import math
from typing import Any

import pytest
import torch

from amp_core.model import GPT, GPTConfig, next_token_loss

CONFIG = GPTConfig(vocab_size=11, context=8, layers=2, heads=2, width=12)


def a_gpt() -> GPT:
    torch.manual_seed(0)
    return GPT(CONFIG)


def test_logits_have_a_row_for_every_position() -> None:
    assert a_gpt()(torch.zeros(3, 5, dtype=torch.int64)).shape == (3, 5, 11)


def test_no_position_sees_the_future() -> None:
    model, tokens = a_gpt(), torch.arange(8).unsqueeze(0)
    changed = tokens.clone()
    changed[0, 5] = 10
    before, after = model(tokens), model(changed)
    assert torch.equal(before[0, :5], after[0, :5])
    assert not torch.equal(before[0, 5:], after[0, 5:])


def test_an_untrained_model_has_the_loss_of_a_guess_in_float32() -> None:
    tokens = torch.randint(11, (64, 9), generator=torch.Generator().manual_seed(1))
    with torch.amp.autocast("cpu", dtype=torch.bfloat16):
        loss = next_token_loss(a_gpt(), (tokens,))
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(math.log(11), rel=0.02)


def test_the_loss_scores_the_token_after_each_position() -> None:
    class Successor(torch.nn.Module):
        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.one_hot((tokens + 1) % 11, 11) * 50.0

    counting = torch.arange(9).unsqueeze(0)
    assert next_token_loss(Successor(), (counting,)).item() < 1e-6
    assert next_token_loss(Successor(), (counting.flip(1),)).item() > 40.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"heads": 5}, "width must be a multiple of heads, found width 12 and 5 heads"),
        ({"layers": 0}, "layers must be at least 1, found 0"),
    ],
)
def test_shapes_that_cannot_be_are_refused(change: dict[str, Any], message: str) -> None:
    shape = {"vocab_size": 11, "context": 8, "layers": 2, "heads": 2, "width": 12} | change
    with pytest.raises(ValueError, match=message):
        GPTConfig(**shape)
