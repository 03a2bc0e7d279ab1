"""Synthetic tokens that can be learnt up to a known ceiling."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.data import TensorDataset

BALANCING_ROUNDS = 200  # of alternating row and column sums; enough for a sharpness up to about 5


@dataclass(frozen=True)
class MarkovChain:
    """A chain over tokens; `transitions` is float64 (vocabulary, vocabulary), each row the odds of the next token."""

    transitions: Tensor

    @property
    def chance(self) -> float:
        """Return the best accuracy without looking at the tokens before: that of the most frequent token."""
        return float(self._frequencies().max())

    @property
    def ceiling(self) -> float:
        """Return the best accuracy that any model can have in the long run."""
        return float((self._frequencies() * self.transitions.amax(1)).sum())

    def sample(self, sequences: int, length: int, generator: torch.Generator) -> TensorDataset:
        """Draw a dataset of int64 tokens, (sequences, length), held in one tensor."""
        tokens = torch.multinomial(self._frequencies(), sequences, replacement=True, generator=generator)
        columns = [tokens]
        for _ in range(length - 1):
            tokens = torch.multinomial(self.transitions[tokens], 1, generator=generator).squeeze(1)
            columns.append(tokens)
        return TensorDataset(torch.stack(columns, dim=1))

    def _frequencies(self) -> Tensor:
        """Return how often each token occurs in the long run, float64 (vocabulary,)."""
        far_ahead: Tensor = torch.linalg.matrix_power(self.transitions, 1024)
        return far_ahead[0]


def draw_chain(vocab_size: int, *, sharpness: float, generator: torch.Generator) -> MarkovChain:
    """Draw a chain: the sharper, the surer is the next token; at sharpness 0 nothing can be learnt.

    All tokens are about equally frequent, so that a guess is right once in `vocab_size` times.
    """
    odds = (sharpness * torch.randn(vocab_size, vocab_size, dtype=torch.float64, generator=generator)).exp()
    for _ in range(BALANCING_ROUNDS):
        odds = odds / odds.sum(0)
        odds = odds / odds.sum(1, keepdim=True)
    return MarkovChain(odds)
