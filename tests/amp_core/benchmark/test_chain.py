"""Tests of the synthetic tokens: repeatable, and as learnable as they claim."""

import pytest
import torch

from amp_core.benchmark.chain import MarkovChain, draw_chain


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def a_chain() -> MarkovChain:
    return draw_chain(12, sharpness=3.0, generator=seeded(7))


def test_the_same_seed_draws_the_same_tokens_and_another_seed_others_of_the_same_chain() -> None:
    (one,), (again,), (other,) = (a_chain().sample(4000, 9, seeded(seed)).tensors for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert (one.shape, one.dtype) == ((4000, 9), torch.int64)
    pairs = [torch.bincount((data[:, :-1] * 12 + data[:, 1:]).flatten(), minlength=144) for data in (one, other)]
    first, second = (counts / counts.sum() for counts in pairs)
    assert (first - second).abs().max() < 0.005


def test_the_ceiling_and_the_chance_are_those_of_the_tokens() -> None:
    chain = a_chain()
    (tokens,) = chain.sample(4000, 17, seeded(3)).tensors
    guess = chain.transitions.argmax(1)[tokens[:, :-1]]
    assert (guess == tokens[:, 1:]).double().mean().item() == pytest.approx(chain.ceiling, abs=0.01)
    most_frequent = torch.bincount(tokens.flatten()).max().item() / tokens.numel()
    assert most_frequent == pytest.approx(chain.chance, abs=0.01)
    assert chain.chance == pytest.approx(1 / 12, rel=0.05)
    assert 0.4 < chain.ceiling < 0.9
