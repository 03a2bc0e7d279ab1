"""What all ways have in common, and no line of theirs: data, model, loss and numbers."""

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from amp_core.model import GPT, GPTConfig, next_token_loss

STEPS, WARMUP, ACCUMULATE, BATCH, LR, CLIP, DECAY, EVERY, LENGTH = 60, 6, 2, 16, 3e-3, 1.0, 0.9, 20, 33
TEXT = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
LETTERS = sorted(set(TEXT))
ROWS = torch.tensor([LETTERS.index(letter) for letter in TEXT[: len(TEXT) // LENGTH * LENGTH]]).view(-1, LENGTH)
TRAIN, VAL = TensorDataset(ROWS[:-64]), TensorDataset(ROWS[-64:])


def a_model() -> nn.Module:
    """Return a small GPT over the text's letters."""
    return GPT(GPTConfig(len(LETTERS), LENGTH - 1, layers=1, heads=2, width=32))


def loss_fn(model: nn.Module, batch: tuple[Tensor, ...] | list[Tensor]) -> Tensor:
    """Return the mean cross-entropy of the next letter."""
    return next_token_loss(model, tuple(batch))
