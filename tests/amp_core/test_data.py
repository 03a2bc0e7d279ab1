"""Tests of the synthetic tokens and of how they are loaded."""

import itertools

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from amp_core.data import MarkovChain, cycle, draw_chain, loader, loader_options, to_device

CPU = torch.device("cpu")


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def a_chain() -> MarkovChain:
    return draw_chain(12, sharpness=3.0, generator=seeded(7))


def numbers(count: int) -> TensorDataset:
    return TensorDataset(torch.arange(count))


def test_the_same_seed_draws_the_same_chain_and_tokens() -> None:
    (one,), (other,) = (a_chain().sample(50, 9, seeded(1)).tensors for _ in range(2))
    assert torch.equal(one, other)
    assert (one.shape, one.dtype) == ((50, 9), torch.int64)


def test_another_seed_draws_other_tokens_of_the_same_chain() -> None:
    chain = a_chain()
    (one,), (other,) = chain.sample(4000, 9, seeded(1)).tensors, chain.sample(4000, 9, seeded(2)).tensors
    assert not torch.equal(one, other)
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


@pytest.mark.parametrize(
    ("vocab_size", "sharpness", "message"),
    [(1, 3.0, "vocab_size must be at least 2"), (4, -1.0, "sharpness must be"), (4, float("nan"), "sharpness must be")],
)
def test_impossible_chains_are_refused(vocab_size: int, sharpness: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw_chain(vocab_size, sharpness=sharpness, generator=seeded(0))


@pytest.mark.parametrize(
    ("device_type", "workers", "persistent", "prefetch"),
    list(itertools.product(["cpu", "cuda", "mps"], [0, 2], [True, False], [1, 4])),
)
def test_every_combination_of_options_is_legal(device_type: str, workers: int, persistent: bool, prefetch: int) -> None:
    options = loader_options(
        device_type=device_type, workers=workers, persistent_workers=persistent, prefetch_factor=prefetch
    )
    assert DataLoader(numbers(4), **options).num_workers == workers
    assert options["pin_memory"] == (device_type == "cuda")
    assert ("prefetch_factor" in options) == ("persistent_workers" in options) == (workers > 0)


def test_worker_processes_yield_the_order_of_the_main_process() -> None:
    def tokens(workers: int) -> list[int]:
        batches = loader(numbers(12), batch_size=3, device=CPU, workers=workers, shuffle_with=seeded(5))
        return [int(value) for (batch,) in batches for value in batch]

    assert tokens(0) == tokens(1) != sorted(tokens(0))


def test_a_shuffling_loader_drops_the_last_short_batch_and_a_plain_one_keeps_it() -> None:
    assert [len(batch) for (batch,) in loader(numbers(10), batch_size=4, device=CPU, shuffle_with=seeded(0))] == [4, 4]
    assert [len(batch) for (batch,) in loader(numbers(10), batch_size=4, device=CPU)] == [4, 4, 2]


def test_each_epoch_has_its_own_order() -> None:
    batches = cycle(loader(numbers(6), batch_size=6, device=CPU, shuffle_with=seeded(0)))
    first, second = next(batches)[0], next(batches)[0]
    assert not torch.equal(first, second)
    assert torch.equal(first.sort().values, second.sort().values)


@pytest.mark.parametrize("generator", [None, seeded(0)], ids=["plain", "shuffled"])
def test_a_loader_without_a_batch_is_refused(generator: torch.Generator | None) -> None:
    with pytest.raises(ValueError, match="the dataset has 0 sequences, too few for a batch of 4: lower batch_size"):
        loader(numbers(0), batch_size=4, device=CPU, shuffle_with=generator)


def test_a_batch_larger_than_the_data_is_refused() -> None:
    with pytest.raises(ValueError, match="the dataset has 3 sequences"):
        loader(numbers(3), batch_size=4, device=CPU, shuffle_with=seeded(0))


def test_a_batch_moves_to_the_device_whole() -> None:
    moved = to_device((torch.ones(2), torch.zeros(3)), torch.device("meta"), non_blocking=False)
    assert [tensor.device.type for tensor in moved] == ["meta", "meta"]
    assert [tensor.shape for tensor in moved] == [(2,), (3,)]
