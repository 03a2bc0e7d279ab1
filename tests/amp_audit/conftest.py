"""Loops for the probes to look at."""

import warnings
from collections.abc import Callable

import pytest
import torch

from amp_audit import Loop
from amp_core.ema import Ema
from amp_core.model import GPT, GPTConfig, next_token_loss
from amp_core.precision import precision_for
from amp_core.schedule import Schedule, warmup_cosine
from amp_core.step import TrainStep


@pytest.fixture
def make_loop() -> Callable[..., Loop]:
    """Return what builds a loop over our own step, the same each time."""
    return a_loop


def a_loop(precision: str = "bf16", *, lean: bool = False, fused: bool = True, scheduled: bool = True) -> Loop:
    torch.manual_seed(0)
    model = GPT(GPTConfig(vocab_size=32, context=8, layers=2, heads=2, width=16, lean=lean))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=fused)
    schedule = Schedule(optimizer, warmup_cosine(20, warmup=4), steps=20, device="cpu") if scheduled else None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "AdamW is not fused")
        step = TrainStep(
            model,
            optimizer,
            precision_for(precision, "cpu"),
            next_token_loss,
            schedule=schedule,
            ema=Ema(model.parameters(), 0.9),
        )
    return Loop.of(step, *[(torch.randint(32, (3, 9)),) for _ in range(2)])
