"""What the training steps beside this file are made of: a tiny model, its data, a scaler that shows its work."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

STEPS = 4


def net() -> nn.Sequential:
    """The same small model each time."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))


def adam(model: nn.Module, *, fused: bool = False) -> torch.optim.AdamW:
    """An optimizer with moments."""
    return torch.optim.AdamW(model.parameters(), 1e-2, fused=fused)


def gradient_scaler() -> torch.amp.GradScaler:
    """A scaler of the CPU, whose scale makes no overflow by itself."""
    return torch.amp.GradScaler("cpu", init_scale=1024.0)


def half(dtype: torch.dtype = torch.float16) -> torch.amp.autocast:
    """A context in which the CPU computes in half precision."""
    return torch.amp.autocast("cpu", dtype=dtype)


def batch() -> tuple[Tensor, Tensor]:
    """Inputs and targets."""
    return torch.randn(32, 8), torch.randn(32, 1)


def loss_of(model: nn.Module) -> Tensor:
    """The loss of a fresh batch."""
    inputs, targets = batch()
    return nn.functional.mse_loss(model(inputs), targets)


def half_loss_of(model: nn.Module, dtype: torch.dtype = torch.float16) -> Tensor:
    """The loss of a fresh batch, computed in half precision."""
    with half(dtype):
        return loss_of(model)


def scaled_steps() -> Iterator[tuple[nn.Sequential, torch.optim.AdamW, torch.amp.GradScaler]]:
    """The same model, optimizer and scaler for each step."""
    model, scaler = net(), gradient_scaler()
    optimizer = adam(model)
    for _ in range(STEPS):
        yield model, optimizer, scaler


def plain_steps() -> Iterator[tuple[nn.Sequential, torch.optim.AdamW]]:
    """The same model and optimizer for each step."""
    model = net()
    optimizer = adam(model)
    for _ in range(STEPS):
        yield model, optimizer
