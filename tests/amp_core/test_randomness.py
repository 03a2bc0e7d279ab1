"""Tests of the global random generators: seeded, saved and put back together."""

import random
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch

from amp_core import checkpoint
from amp_core.randomness import random_state, restore_random_state, seed_all


def draw() -> tuple[float, float, float, float]:
    return random.random(), random.gauss(), float(np.random.standard_normal()), torch.rand(()).item()


def test_a_seed_fixes_every_generator() -> None:
    seed_all(5)
    first = draw()
    seed_all(5)
    assert draw() == first
    seed_all(2**40 + 6)  # more than NumPy takes
    assert all(one != other for one, other in zip(draw(), first, strict=True))


def test_each_kind_of_accelerator_gets_its_generators_back(monkeypatch: pytest.MonkeyPatch) -> None:
    xpu, mps = MagicMock(), MagicMock()
    xpu.get_rng_state_all.return_value, xpu.device_count.return_value = [torch.zeros(2), torch.ones(2)], 2
    mps.get_rng_state.return_value = torch.ones(3)
    monkeypatch.setattr(torch, "xpu", xpu)
    monkeypatch.setattr(torch, "mps", mps)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    state = random_state()
    restore_random_state(state)
    assert torch.equal(torch.stack(xpu.set_rng_state_all.call_args.args[0]), torch.stack(state["xpu"]))
    assert torch.equal(mps.set_rng_state.call_args.args[0], torch.ones(3))
    xpu.device_count.return_value = 1
    restore_random_state(state | {"mps": None})
    assert (xpu.set_rng_state_all.call_count, mps.set_rng_state.call_count) == (1, 1)


def test_a_saved_state_goes_on_where_it_was(tmp_path: Path) -> None:
    seed_all(1)
    draw()  # leaves half a pair of normal draws behind in each generator
    checkpoint.save(tmp_path / "state.pt", random_state())
    expected = [draw() for _ in range(3)]
    seed_all(2)
    restore_random_state(checkpoint.load(tmp_path / "state.pt"))
    assert [draw() for _ in range(3)] == expected
