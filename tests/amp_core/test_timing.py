"""Tests of how arms are timed against each other."""

import gc
from collections.abc import Callable

import pytest
import torch

from amp_core.timing import (
    TrainingWorker,
    Warmup,
    clock_for,
    collection_paused,
    measure,
    order,
    steps_per_segment,
    threads,
    warm_up,
)


class Recorder:
    """A worker that notes what it is asked for, on a clock that charges it `cost` a step."""

    def __init__(self, name: str, log: list[tuple[str, int]], cost: float = 1.0) -> None:
        self.name, self.log, self.cost = name, log, cost

    def run(self, steps: int) -> None:
        self.log.append((self.name, steps))


def charging(log: list[tuple[str, int]], costs: dict[str, float]) -> Callable[[Callable[[], None]], float]:
    """Return a clock that reads the cost of the work it saw done."""

    def clock(work: Callable[[], None]) -> float:
        start = len(log)
        work()
        return sum(costs[name] * steps for name, steps in log[start:])

    return clock


@pytest.mark.criterion("T035/AC5")
def test_rounds_alternate_their_order() -> None:
    assert [order(["A", "B", "C"], index) for index in range(3)] == [("A", "B", "C"), ("C", "B", "A"), ("A", "B", "C")]


@pytest.mark.criterion("T035/AC5")
def test_each_segment_discards_a_step_and_times_the_others() -> None:
    log: list[tuple[str, int]] = []
    workers = {name: Recorder(name, log) for name in "ABC"}
    samples = measure(workers, charging(log, {"A": 1.0, "B": 2.0, "C": 4.0}), rounds=2, steps=3)
    assert samples == {"A": (1.0, 1.0), "B": (2.0, 2.0), "C": (4.0, 4.0)}
    assert log == [entry for name in "ABCCBA" for entry in ((name, 1), (name, 3))]


def settling(times: list[float]) -> Warmup:
    readings = iter(times)
    return warm_up(Recorder("A", []), lambda work: (work(), next(readings))[1])  # type: ignore[func-returns-value]


def test_warming_up_ends_when_the_step_time_has_settled() -> None:
    assert settling([9.0, 5.0, 3.0] + [1.0] * 30) == Warmup(11, True, 1.0)


def test_a_step_time_that_never_settles_is_recorded_as_such() -> None:
    assert settling([1.5**index for index in range(60)]) == Warmup(50, False, 1.5**45)


def test_every_arm_takes_the_steps_that_the_fastest_needs() -> None:
    warmups = [Warmup(10, True, 0.004), Warmup(10, True, 0.1)]
    steps = steps_per_segment(warmups, 0.030)
    assert steps * 0.004 >= 0.030
    assert steps == 9


def test_garbage_is_not_collected_while_timing() -> None:
    with collection_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_threads_are_put_back() -> None:
    before = torch.get_num_threads()
    with threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_the_cpu_clock_measures_the_work() -> None:
    clock = clock_for(torch.device("cpu"))
    work = torch.randn(200, 200)

    def multiply() -> None:
        for _ in range(200):
            torch.mm(work, work)

    assert 0.0 < clock(lambda: None) < clock(multiply)


def test_a_training_worker_takes_its_batches_in_turn_and_keeps_its_losses() -> None:
    batches = [(torch.tensor(float(value)),) for value in range(3)]
    worker = TrainingWorker(lambda batch: batch[0] * 10, batches)
    worker.run(2)
    worker.run(3)
    assert [loss.item() for loss in worker.losses] == [0.0, 10.0, 20.0, 0.0, 10.0]
