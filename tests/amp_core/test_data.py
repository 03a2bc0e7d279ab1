"""Tests of how data reach the device: orders, loaders, and streams that resume."""

import gc
import itertools
import multiprocessing
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from unittest.mock import MagicMock, call

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset, TensorDataset

from amp_core.data import EpochOrder, Stream, loader, to_device, windows
from amp_core.data import stream as stream_module
from amp_core.data import transfer as transfer_module
from amp_core.randomness import random_state, restore_random_state, seed_all
from amp_core.step import Batch

CPU = torch.device("cpu")


def numbers(count: int) -> TensorDataset:
    return TensorDataset(torch.arange(count))


def values(batches: Iterable[Batch]) -> list[list[int]]:
    return [batch[0].tolist() for batch in batches]


def take(stream: Stream, count: int) -> list[list[int]]:
    return values(itertools.islice(stream, count))


class Counted(Dataset[Batch]):
    """Numbers that note which of them were loaded."""

    def __init__(self, count: int, pause_s: float = 0.0) -> None:
        self.count = count
        self.pause_s = pause_s
        self.loaded: list[int] = []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Batch:
        self.loaded.append(index)
        time.sleep(self.pause_s)
        return (torch.tensor(index),)


class Drawing(Counted):
    """Numbers to which random ones are added, as where pictures are augmented."""

    def __getitem__(self, index: int) -> Batch:
        return (torch.tensor([index, random.random(), torch.rand(()).item()]),)


class Seeds(Dataset[Batch]):
    """Samples that tell the seed of the process that loads them."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Batch:
        return (torch.tensor(torch.initial_seed()),)


class Lines(IterableDataset[Batch]):
    """Numbers one after the other, without a length."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[Batch]:
        return ((torch.tensor(number),) for number in range(self.count))


def test_every_combination_of_options_makes_a_loader_that_loads() -> None:
    product = itertools.product(
        ("cpu", "cuda", "xpu", "mps"), (0, 2), (True, False), (1, 4), (None, 3), (None, True, False), (1, 4), (1, 2)
    )
    for kind, workers, persistent, prefetch, seed, drop_last, batch_size, world in product:
        options: dict[str, Any] = {"workers": workers, "prefetch_factor": prefetch, "persistent_workers": persistent}
        options |= {"batch_size": batch_size, "seed": seed, "drop_last": drop_last, "rank": world - 1, "world": world}
        made = loader(numbers(10), device=torch.device(kind), **options)
        assert (made.num_workers, made.pin_memory) == (workers, kind in ("cuda", "xpu"))
        assert made.persistent_workers == (persistent and workers > 0)
        assert made.prefetch_factor == (prefetch if workers else None)
        if workers == 0 and not made.pin_memory:
            assert len(values(made)) == len(made) > 0


@pytest.mark.parametrize(("persistent", "prefetch"), [(True, 1), (False, 4)])
def test_worker_processes_yield_the_order_of_the_main_process(persistent: bool, prefetch: int) -> None:
    def epochs(workers: int) -> list[list[int]]:
        options: dict[str, Any] = {"persistent_workers": persistent, "prefetch_factor": prefetch}
        return take(Stream(loader(numbers(11), batch_size=3, device=CPU, workers=workers, seed=5, **options), CPU), 7)

    assert epochs(2) == epochs(0)


def test_a_shuffling_loader_drops_the_last_short_batch_and_a_plain_one_keeps_it() -> None:
    assert [len(batch) for batch in values(loader(numbers(10), batch_size=4, device=CPU, seed=0))] == [4, 4]
    kept = loader(numbers(10), batch_size=4, device=CPU, seed=0, drop_last=False)
    assert sorted(itertools.chain(*values(kept))) == list(range(10))
    assert values(loader(numbers(10), batch_size=4, device=CPU)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_the_seed_and_the_epoch_alone_decide_the_order() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        made = EpochOrder(50, seed=seed, rank=0, world=1, even=True)
        made.set_epoch(epoch)
        return list(made)

    torch.manual_seed(1)
    orders = {(seed, epoch): tuple(order(seed, epoch)) for seed in range(3) for epoch in range(3)}
    torch.manual_seed(2)
    assert all(order(*key) == list(found) for key, found in orders.items())
    assert len(set(orders.values())) == 9  # epoch 1 of seed 0 is not epoch 0 of seed 1 either
    assert all(sorted(found) == list(range(50)) for found in orders.values())


@given(st.integers(0, 40), st.integers(1, 5), st.sampled_from([None, 0, 9]), st.booleans())
def test_ranks_share_the_samples_without_overlap(samples: int, world: int, seed: int | None, even: bool) -> None:
    shares = [list(EpochOrder(samples, seed=seed, rank=rank, world=world, even=even)) for rank in range(world)]
    seen = list(itertools.chain(*shares))
    assert len(set(seen)) == len(seen) == (samples // world * world if even else samples)
    assert [len(EpochOrder(samples, seed=seed, rank=rank, world=world, even=even)) for rank in range(world)] == [
        len(share) for share in shares
    ]
    assert not even or len({len(share) for share in shares}) == 1


def test_loading_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    take(Stream(loader(numbers(4), batch_size=2, device=CPU, seed=0), CPU), 5)
    take(Stream(DataLoader(numbers(4), batch_size=2, shuffle=True), CPU), 5)
    assert torch.equal(torch.rand(2), expected)


def test_worker_seeds_are_a_function_of_the_seed_and_the_epoch() -> None:
    def seeds(seed: int) -> list[list[int]]:
        made = loader(Seeds(), batch_size=2, device=CPU, workers=1, seed=seed, persistent_workers=False)
        return take(Stream(made, CPU), 2)

    first, again, other = seeds(0), seeds(0), seeds(1)
    assert first == again
    assert first[0] != first[1] != other[1]
    assert first[0] != other[0] != first[1]


@given(
    samples=st.integers(4, 20),
    batch_size=st.integers(1, 4),
    seed=st.sampled_from([None, 0, 7]),
    drop_last=st.sampled_from([None, True, False]),
    position=st.integers(0, 45),
)
def test_a_stream_resumes_at_any_batch(
    samples: int, batch_size: int, seed: int | None, drop_last: bool | None, position: int
) -> None:
    def begin() -> Stream:
        return Stream(loader(numbers(samples), batch_size=batch_size, device=CPU, seed=seed, drop_last=drop_last), CPU)

    whole, resumed = begin(), begin()
    take(whole, position)
    resumed.load_state_dict(whole.state_dict())
    assert take(resumed, 12) == take(whole, 12)
    assert resumed.state_dict() == whole.state_dict()


def own(workers: int) -> Iterable[Batch]:
    return loader(numbers(11), batch_size=3, device=CPU, workers=workers, seed=4)


def generated(workers: int) -> Iterable[Batch]:
    generator = torch.Generator().manual_seed(random.getrandbits(30))  # as in a new process, in another state
    return DataLoader(numbers(11), batch_size=3, shuffle=True, num_workers=workers, generator=generator)


def distributed(workers: int) -> Iterable[Batch]:
    data = numbers(23)
    sampler: DistributedSampler[Batch] = DistributedSampler(data, num_replicas=2, rank=1)
    return DataLoader(data, batch_size=3, sampler=sampler, num_workers=workers)


def unsized(workers: int) -> Iterable[Batch]:
    return DataLoader(Lines(11), batch_size=3, num_workers=min(workers, 1))


def drawing(workers: int) -> Iterable[Batch]:
    return DataLoader(Drawing(11), batch_size=3, shuffle=True, num_workers=workers)


@pytest.mark.parametrize("make", [own, generated, distributed, unsized, drawing])
@pytest.mark.parametrize(("workers", "positions"), [(0, range(10)), (2, (4,))])
def test_every_kind_of_loader_resumes_at_the_same_batch(make: Any, workers: int, positions: Sequence[int]) -> None:
    reference = Stream(make(workers), CPU)
    states, batches = [], []
    for _ in range(max(positions) + 4):
        states.append((reference.state_dict(), random_state()))
        batches.append(next(reference)[0].tolist())
    for position in positions:
        resumed = Stream(make(workers), CPU)
        seed_all(position)
        resumed.load_state_dict(states[position][0])
        restore_random_state(states[position][1])
        assert take(resumed, 3) == batches[position : position + 3]


def test_torchs_distributed_sampler_shuffles_anew_every_epoch() -> None:
    stream = Stream(distributed(0), CPU)
    first, second = take(stream, 4), take(stream, 4)
    assert first != second
    assert stream.epoch == 1


def test_a_list_of_batches_streams_for_ever_and_resumes() -> None:
    stream = Stream([(torch.tensor([number]),) for number in range(3)], CPU)
    assert take(stream, 7) == [[0], [1], [2], [0], [1], [2], [0]]
    assert stream.state_dict() == {"epoch": 2, "batch": 1, "batches": 3, "stream_seed": 0}
    stream.load_state_dict({"epoch": 0, "batch": 2})
    assert take(stream, 2) == [[2], [0]]


def test_resuming_does_not_load_what_was_seen() -> None:
    data = Counted(12)
    stream = Stream(loader(data, batch_size=3, device=CPU, seed=1), CPU)
    expected = take(stream, 4)[2:]
    data.loaded.clear()
    stream.load_state_dict({"epoch": 0, "batch": 2})
    assert take(stream, 2) == expected
    assert data.loaded == list(itertools.chain(*expected))


def test_an_epoch_begun_in_its_middle_is_whole_the_next_time() -> None:
    made = loader(numbers(6), batch_size=2, device=CPU)
    assert isinstance(made.sampler, EpochOrder)
    made.sampler.set_epoch(0, 4)
    assert values(made) == [[4, 5]]
    assert values(made) == [[0, 1], [2, 3], [4, 5]]


def test_the_position_counts_what_the_consumer_has_got_not_what_workers_fetched() -> None:
    stream = Stream(loader(numbers(12), batch_size=2, device=CPU, workers=2, seed=0, prefetch_factor=4), CPU)
    for taken, position in ((0, (0, 0)), (1, (0, 1)), (6, (1, 1))):
        take(stream, taken)
        assert (stream.epoch, stream.batch) == position


def test_a_stream_that_is_dropped_lets_its_workers_go_at_once() -> None:
    gc.disable()
    try:
        stream = Stream(loader(numbers(12), batch_size=2, device=CPU, workers=1, persistent_workers=False), CPU)
        next(stream)
        (worker,) = multiprocessing.active_children()
        del stream
        assert not worker.is_alive()
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "the state is of a stream with seed=0, here it is 1: resume with the same data and loader"),
        ({"batch_size": 3}, "the state is of a stream with batches=6, here it is 4"),
        ({"dataset": numbers(13)}, "the state is of a stream with samples=12, here it is 13"),
    ],
)
def test_a_state_of_another_order_is_refused(change: dict[str, Any], message: str) -> None:
    options: dict[str, Any] = {"dataset": numbers(12), "batch_size": 2, "device": CPU, "seed": 0}
    state = Stream(loader(**options), CPU).state_dict()
    with pytest.raises(ValueError, match=message):
        Stream(loader(**(options | change)), CPU).load_state_dict(state)


def test_a_position_past_the_end_of_the_data_is_refused() -> None:
    stream = Stream(DataLoader(Lines(4), batch_size=2), CPU)
    stream.load_state_dict({"epoch": 0, "batch": 3})
    with pytest.raises(ValueError, match="the state is at batch 3, the loader has only 2: resume with the same data"):
        next(stream)


@pytest.mark.parametrize("empty", [[], DataLoader(Lines(0)), iter([])], ids=["list", "unsized", "used up"])
def test_a_loader_without_a_batch_is_refused_instead_of_spinning(empty: Iterable[Batch]) -> None:
    with pytest.raises(ValueError, match="the loader has no batch: pass data that fill one"):
        next(Stream(empty, CPU))


def test_batches_that_can_be_had_only_once_are_refused_in_the_second_epoch() -> None:
    stream = Stream(iter([(torch.zeros(1),)]), CPU)
    next(stream)
    with pytest.raises(ValueError, match="a loader that can be iterated again every epoch"):
        next(stream)


def test_only_the_time_in_the_loader_counts_as_waiting() -> None:
    begun = time.perf_counter()
    stream = Stream(loader(Counted(6, pause_s=0.004), batch_size=2, device=CPU), CPU)
    for _ in range(4):
        next(stream)
        time.sleep(0.02)
    elapsed = time.perf_counter() - begun
    assert 8 * 0.004 <= stream.wait_s <= elapsed - 4 * 0.02


class Beside:
    """Stands in for a side stream: notes what is copied and handed over, in order."""

    def __init__(self, device: torch.device) -> None:
        self.events: list[tuple[str, list[int]]] = []

    def to_device(self, batch: Batch, device: torch.device) -> Batch:
        self.events.append(("copy", batch[0].tolist()))
        return tuple(batch)

    def hand_over(self, batch: Batch) -> None:
        self.events.append(("hand over", batch[0].tolist()))


def test_on_an_accelerator_the_next_batch_is_copied_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "pins_memory", lambda _: True)
    monkeypatch.setattr(stream_module, "SideStream", Beside)
    batches = [(torch.tensor([number]),) for number in range(2)]
    stream = Stream(batches, CPU)
    assert take(stream, 2) == [[0], [1]]
    beside: Any = stream._copies
    assert beside.events == [("copy", [0]), ("hand over", [0]), ("copy", [1]), ("hand over", [1]), ("copy", [0])]
    assert (stream.epoch, stream.batch) == (0, 2)
    stream.load_state_dict({"epoch": 0, "batch": 1})  # what was copied ahead is not next any more
    again = Stream(batches, CPU)
    again.load_state_dict(stream.state_dict())
    assert take(again, 3) == take(stream, 3) == [[1], [0], [1]]


def test_a_batch_is_not_lost_when_the_one_ahead_of_it_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(number: int) -> Batch:
        if number == 2:
            raise OSError
        return (torch.tensor([number]),)

    monkeypatch.setattr(stream_module, "pins_memory", lambda _: True)
    monkeypatch.setattr(stream_module, "SideStream", Beside)
    stream = Stream(map(fetch, itertools.count()), CPU)
    assert take(stream, 1) == [[0]]
    with pytest.raises(OSError):
        next(stream)
    assert stream.batch == 1
    assert take(stream, 2) == [[1], [3]]


def test_a_side_stream_copies_beside_the_current_one(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda, module = torch.device("cuda"), MagicMock()
    monkeypatch.setattr(torch, "get_device_module", lambda _: module)
    for tensor, pinned in ((module.pinned, True), (module.pageable, False)):
        tensor.device, tensor.to.return_value, tensor.is_pinned.return_value = CPU, tensor, pinned
    side = transfer_module.SideStream(cuda)
    side.hand_over(side.to_device((module.pinned, module.pageable), cuda))
    beside, current = module.Stream.return_value, module.current_stream.return_value
    assert [each for each in module.mock_calls if "is_pinned" not in each[0]] == [
        call.Stream(cuda),
        call.stream(beside),
        call.stream().__enter__(),
        call.pinned.to(cuda, non_blocking=True),
        call.pageable.to(cuda, non_blocking=False),
        call.stream().__exit__(None, None, None),
        call.current_stream(beside.device),
        call.current_stream().wait_stream(beside),
        call.pinned.record_stream(current),
        call.pageable.record_stream(current),
    ]


def test_a_batch_moves_to_the_device_whole() -> None:
    kinds = [((2,), torch.float16), ((3,), torch.int64)]
    moved = to_device(tuple(torch.zeros(size, dtype=dtype) for size, dtype in kinds), torch.device("meta"))
    assert [(tensor.shape, tensor.dtype, tensor.device.type) for tensor in moved] == [(*kind, "meta") for kind in kinds]


def test_windows_take_size_batches_and_the_last_has_what_is_left() -> None:
    batches = [(torch.tensor([number]),) for number in range(5)]
    assert [values(window) for window in windows(batches, 2)] == [[[0], [1]], [[2], [3]], [[4]]]
    assert list(windows([], 2)) == []
    with pytest.raises(ValueError, match="size must be at least 1 batch a window, found 0"):
        windows([], 0)


def test_windows_over_a_stream_take_no_batch_too_many() -> None:
    stream = Stream(loader(numbers(6), batch_size=2, device=CPU), CPU)
    taken = windows(stream, 2)
    assert values(next(taken)) == [[0, 1], [2, 3]]
    assert stream.batch == 2
    assert values(next(taken)) == [[4, 5], [0, 1]]


def test_a_batch_of_one_is_a_batch() -> None:
    assert values(loader(numbers(1), batch_size=1, device=CPU, seed=0)) == [[0]]
    assert values(loader(numbers(1), batch_size=8, device=CPU)) == [[0]]


UNLOADABLE = [
    ({"batch_size": 0}, "batch_size must be at least 1, found 0"),
    ({"batch_size": 2.5}, "batch_size must be at least 1, found 2.5"),
    ({"workers": -1}, "workers must be at least 0, found -1"),
    ({"prefetch_factor": 0}, "prefetch_factor must be at least 1, found 0"),
    ({"world": 0}, "world must be at least 1, found 0"),
    ({"rank": 2, "world": 2}, "rank must be at least 0 and below world=2, found 2"),
    ({"dataset": numbers(1), "seed": 0}, "the dataset has 1 samples, too few for a batch of 2: lower batch_size"),
    ({"dataset": numbers(0)}, "the dataset has 0 samples, too few for a batch of 2: lower batch_size"),
    (
        {"dataset": numbers(3), "seed": 0, "rank": 1, "world": 2},
        "the dataset has 3 samples, 1 of them on rank 1 of 2, too few for a batch of 2: lower batch_size",
    ),
    ({"dataset": Lines(3)}, "Lines has no length: pass one that has, or give Stream a DataLoader of your own"),
]


@pytest.mark.parametrize(("options", "message"), UNLOADABLE)
def test_what_cannot_be_loaded_is_refused_in_one_line(options: dict[str, Any], message: str) -> None:
    given_options: dict[str, Any] = {"dataset": numbers(4), "batch_size": 2, "device": CPU} | options
    with pytest.raises(ValueError) as caught:
        loader(**given_options)
    assert str(caught.value) == message
