"""Tests of the global random generators: seeded, saved and put back together."""

import random
from pathlib import Path

import numpy as np
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


def test_a_saved_state_goes_on_where_it_was(tmp_path: Path) -> None:
    seed_all(1)
    draw()  # leaves half a pair of normal draws behind in each generator
    checkpoint.save(tmp_path / "state.pt", random_state())
    expected = [draw() for _ in range(3)]
    seed_all(2)
    restore_random_state(checkpoint.load(tmp_path / "state.pt"))
    assert [draw() for _ in range(3)] == expected
