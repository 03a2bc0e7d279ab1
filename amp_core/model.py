"""A small GPT: the model that the trainer and the benchmark train."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class GPTConfig:
    """The shape of a GPT. `context` is the number of tokens it sees; `width` is a multiple of `heads`."""

    vocab_size: int
    context: int
    layers: int
    heads: int
    width: int

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 1:
                raise ValueError(f"{name} must be at least 1, found {value!r}")
        if self.width % self.heads:
            raise ValueError(f"width must be a multiple of heads, found width {self.width} and {self.heads} heads")

    @classmethod
    def smoke(cls) -> Self:
        """Return a shape that trains in seconds on any CPU, in every precision."""
        return cls(vocab_size=16, context=16, layers=1, heads=2, width=32)

    def __str__(self) -> str:
        return (
            f"GPT width={self.width} layers={self.layers} heads={self.heads}"
            f" context={self.context} vocab={self.vocab_size}"
        )


class Attention(nn.Module):
    """Causal self-attention, float (batch, time, width) to the same shape."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.inward = nn.Linear(config.width, 3 * config.width)
        self.outward = nn.Linear(config.width, config.width)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return what each position gathers from itself and the positions before it."""
        batch, time, width = hidden.shape
        split = self.inward(hidden).view(batch, time, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        out: Tensor = self.outward(mixed.transpose(1, 2).reshape(batch, time, width))
        return out


class Block(nn.Module):
    """Attention and a two-layer perceptron, each normalised before and added to the residual stream."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.width)
        self.attention = Attention(config)
        self.perceptron_norm = nn.LayerNorm(config.width)
        self.perceptron = nn.Sequential(
            nn.Linear(config.width, 4 * config.width), nn.GELU(), nn.Linear(4 * config.width, config.width)
        )

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the residual stream after this block, float (batch, time, width)."""
        hidden = hidden + self.attention(self.attention_norm(hidden))
        out: Tensor = hidden + self.perceptron(self.perceptron_norm(hidden))
        return out


class GPT(nn.Module):
    """A decoder-only transformer, initialised from torch's global random generator."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocab_size, config.width)
        self.positions = nn.Embedding(config.context, config.width)
        self.blocks = nn.Sequential(*(Block(config) for _ in range(config.layers)))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocab_size, bias=False)
        self.apply(_initialise)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits (batch, time, vocab_size) in the compute dtype, for int64 tokens (batch, time)."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        hidden = self.tokens(tokens) + self.positions(positions)
        logits: Tensor = self.head(self.norm(self.blocks(hidden)))
        return logits


def next_token_loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Return the mean cross-entropy in nat, float32, of a batch of int64 tokens (batch, context + 1)."""
    tokens = batch[0]
    logits = model(tokens[:, :-1])
    return functional.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
