"""A small GPT: the model that the trainer and the benchmark train."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from amp_core.loss import chunked_cross_entropy
from amp_core.norm import LeanLayerNorm

LOSS_CHUNK = 1024  # rows of logits at a time in a lean model: 0.5 GB of them for 50304 tokens, and large products still


@dataclass(frozen=True)
class GPTConfig:
    """The shape of a GPT. `context` is the number of tokens it sees; `width` is a multiple of `heads`.

    `lean` saves memory under autocast: residual stream and norms in 16 bit, the loss head in chunks. `tied` makes the
    head share the token embedding's weight, as GPT-2 does.
    """

    vocab_size: int
    context: int
    layers: int
    heads: int
    width: int
    lean: bool = False
    tied: bool = False

    def __post_init__(self) -> None:
        for name in ("vocab_size", "context", "layers", "heads", "width"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, found {getattr(self, name)!r}")
        if self.width % self.heads:
            raise ValueError(f"width must be a multiple of heads, found width {self.width} and {self.heads} heads")

    @classmethod
    def smoke(cls) -> Self:
        """Return a shape that trains in seconds on any CPU, in every precision."""
        return cls(vocab_size=16, context=16, layers=1, heads=2, width=32)

    def __str__(self) -> str:
        return (
            f"GPT width={self.width} layers={self.layers} heads={self.heads}"
            f" context={self.context} vocab={self.vocab_size}{' lean' * self.lean}{' tied' * self.tied}"
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
        self.attention_norm = _norm(config)
        self.attention = Attention(config)
        self.perceptron_norm = _norm(config)
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
        self.norm = _norm(config)
        self.head = nn.Linear(config.width, config.vocab_size, bias=False)
        if config.tied:
            self.head.weight = self.tokens.weight
        self.apply(_initialise)

    def forward(self, tokens: Tensor, targets: Tensor | None = None) -> Tensor:
        """Return logits (batch, time, vocab_size) in the compute dtype, for int64 tokens (batch, time).

        With `targets`, int64 (batch, time), return their mean cross-entropy in nat, float32, computed in chunks.
        """
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        hidden = self.tokens(tokens) + self.positions(positions)
        if self.config.lean and torch.is_autocast_enabled(hidden.device.type):
            hidden = hidden.to(torch.get_autocast_dtype(hidden.device.type))  # all sums of the stream keep this dtype
        hidden = self.norm(self.blocks(hidden))
        if targets is not None:
            return chunked_cross_entropy(hidden, self.head.weight, targets, chunk=LOSS_CHUNK)
        logits: Tensor = self.head(hidden)
        return logits


def next_token_loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Return the mean cross-entropy in nat, float32, of a batch of int64 tokens (batch, context + 1).

    A lean GPT, also inside a wrapper such as DistributedDataParallel, computes it in chunks, without all its logits.
    """
    tokens = batch[0]
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    config = getattr(getattr(model, "module", model), "config", None)
    if isinstance(config, GPTConfig) and config.lean:
        loss: Tensor = model(inputs, targets)  # through the wrapper, whose hooks must run
        return loss
    return functional.cross_entropy(model(inputs).float().flatten(0, 1), targets.flatten())


def _norm(config: GPTConfig) -> nn.LayerNorm:
    return LeanLayerNorm(config.width) if config.lean else nn.LayerNorm(config.width)


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
