"""Tests of how arms are timed against each other."""

import gc
from collections.abc import Callable

import pytest
import torch

from amp_core.benchmark.timing import (
    Elapsed,
    Warmup,
    clock_for,
    collection_paused,
    latencies,
    measure,
    order,
    steps_per_segment,
    threads,
    warm_up,
)

CPU = torch.device("cpu")


class Recorder:
    """A worker that notes what it is asked for."""

    def __init__(self, name: str, log: list[tuple[str, int]]) -> None:
        self.name, self.log = name, log

    def run(self, steps: int) -> None:
        self.log.append((self.name, steps))


def charging(log: list[tuple[str, int]], costs: dict[str, float]) -> Callable[[Callable[[], None]], Elapsed]:
    """Return a clock that reads the cost of the work it saw done, half of it as CPU time."""

    def clock(work: Callable[[], None]) -> Elapsed:
        start = len(log)
        work()
        cost = sum(costs[name] * steps for name, steps in log[start:])
        return Elapsed(cost, cost / 2)

    return clock


@pytest.mark.criterion("T035/AC5")
def test_rounds_alternate_their_order() -> None:
    assert [order(["A", "B", "C"], index) for index in range(3)] == [("A", "B", "C"), ("C", "B", "A"), ("A", "B", "C")]


@pytest.mark.criterion("T035/AC5")
def test_each_segment_discards_a_step_and_times_the_others() -> None:
    log: list[tuple[str, int]] = []
    workers = {name: Recorder(name, log) for name in "ABC"}
    samples = measure(workers, charging(log, {"A": 1.0, "B": 2.0, "C": 4.0}), rounds=2, steps=3)
    assert samples == {name: (Elapsed(cost, cost / 2),) * 2 for name, cost in (("A", 1.0), ("B", 2.0), ("C", 4.0))}
    assert log == [entry for name in "ABCCBA" for entry in ((name, 1), (name, 3))]


@pytest.mark.parametrize(
    ("times", "warmup"),
    [
        ([9.0, 5.0, 3.0] + [1.0] * 30, Warmup(11, True, 1.0)),
        ([1.5**index for index in range(60)], Warmup(50, False, 1.5**45)),
    ],
    ids=["settles", "never settles"],
)
def test_warming_up_ends_when_the_step_time_has_settled(times: list[float], warmup: Warmup) -> None:
    readings = iter(times)

    def clock(work: Callable[[], None]) -> Elapsed:
        work()
        return Elapsed(next(readings))

    assert warm_up(Recorder("A", []), clock) == warmup


def test_every_arm_takes_the_steps_that_the_fastest_needs() -> None:
    steps = steps_per_segment([Warmup(10, True, 0.004), Warmup(10, True, 0.1)], 0.030)
    assert steps * 0.004 >= 0.030
    assert steps == 9


def test_garbage_is_not_collected_while_timing_and_threads_are_put_back() -> None:
    before = torch.get_num_threads()
    with collection_paused(), threads(before + 1):
        assert not gc.isenabled()
        assert torch.get_num_threads() == before + 1
    assert gc.isenabled()
    assert torch.get_num_threads() == before


def test_the_cpu_clock_measures_the_work_on_the_wall_and_in_cpu_time() -> None:
    clock = clock_for(CPU)
    work = torch.randn(200, 200)

    def multiply() -> None:
        for _ in range(200):
            torch.mm(work, work)

    idle, busy = clock(lambda: None), clock(multiply)
    assert idle.cpu_s is not None and busy.cpu_s is not None
    assert 0.0 <= idle.cpu_s < busy.cpu_s < 2 * busy.wall_s  # on the wall anything may take long
    assert idle.wall_s > 0.0


def test_each_call_has_a_latency_of_its_own() -> None:
    work = torch.randn(300, 300)
    repeats = iter([1, 1, 300])

    def multiply() -> None:
        for _ in range(next(repeats)):
            torch.mm(work, work)

    found = latencies(multiply, 3, CPU)
    assert len(found) == 3
    assert 0.0 < found[1] < found[2]


class Moment:
    """An event on a stream whose clock goes a millisecond with every call of the work."""

    def __init__(self, log: list[str], now: list[float]) -> None:
        self.log, self.now, self.at = log, now, float("nan")

    def record(self) -> None:
        self.log.append("record")
        self.at = self.now[0]

    def synchronize(self) -> None:
        self.log.append("synchronize")

    def elapsed_time(self, end: object) -> float:
        assert isinstance(end, Moment)
        self.log.append("read")
        return end.at - self.at


@pytest.mark.criterion("T035/AC5")
def test_on_a_gpu_all_events_are_recorded_before_the_host_waits_once() -> None:
    log: list[str] = []
    now = [0.0]

    def work() -> None:
        log.append("work")
        now[0] += len(log)

    found = latencies(work, 3, torch.device("cuda"), lambda: Moment(log, now))
    assert log == ["record", *["work", "record"] * 3, "synchronize", "read", "read", "read"]
    assert found == (0.002, 0.004, 0.006)
