"""Tests of the tracker: when numbers are copied, what they hold, and the rates between flushes."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from amp_audit import host_reads
from amp_core.data import Stream
from amp_core.precision import precision_for
from amp_core.step import Batch, StepResult, TrainStep
from amp_core.throughput import Peak, Throughput
from amp_core.tracking import Flush, MemorySink, StepRecord, Tracker, pace

CPU = torch.device("cpu")


class Counting(MemorySink):
    """A memory sink that notes the size of each flush, and how often it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.flushes, self.closed = list[int](), 0

    def write(self, flush: Flush) -> None:
        super().write(flush)
        self.flushes.append(len(flush.steps))

    def close(self) -> None:
        self.closed += 1


class Broken:
    """A sink that fails in what it is told to."""

    def __init__(self, fails: str) -> None:
        self.fails, self.calls = fails, list[str]()

    def write(self, _: Flush) -> None:
        self.act("write")

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        self.act("log")

    def close(self) -> None:
        self.act("close")

    def act(self, what: str) -> None:
        self.calls.append(what)
        if what == self.fails:
            raise OSError(f"cannot {what}\nand said why at length")


class Clock:
    """A clock that stands still until it is moved."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def a_result(value: float = 0.0, *, scale: float | Tensor = 1.0, found_inf: float = 0.0) -> StepResult:
    scalar = torch.tensor(value)
    loss_scale = scale if isinstance(scale, Tensor) else torch.tensor(scale)
    return StepResult(scalar, scalar + 1, scalar + 2, loss_scale, torch.tensor(found_inf))


@pytest.mark.criterion("T035/AC4")
def test_scalars_are_flushed_together_every_few_steps_and_at_the_end() -> None:
    sink = Counting()
    with Tracker(3, [sink]) as tracker:
        flushed = [tracker.add(a_result(float(value))) for value in range(7)]
        assert flushed == [False, False, True, False, False, True, False]
        assert sink.flushes == [3, 3]
    assert sink.flushes == [3, 3, 1]
    assert sink.closed == 1
    assert sink.records == [StepRecord(step, step, step + 1, step + 2, 1.0, 0.0) for step in range(7)]


def test_what_was_added_is_flushed_when_training_raises() -> None:
    sink = Counting()
    with pytest.raises(KeyError), Tracker(100, [sink]) as tracker:
        tracker.add(a_result())
        raise KeyError
    assert (len(sink.records), sink.closed) == (1, 1)


@pytest.mark.criterion("T035/AC4")
def test_each_step_keeps_its_own_loss_scale_though_the_tensor_changes_in_place() -> None:
    sink, live = MemorySink(), torch.tensor(8.0)
    with Tracker(10, [sink]) as tracker:
        for _ in range(3):
            tracker.add(a_result(scale=live))
            live.mul_(0.5)
    assert [record.loss_scale for record in sink.records] == [8.0, 4.0, 2.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_loss_of_any_dtype_is_kept_exactly_and_without_its_graph(dtype: torch.dtype) -> None:
    sink, weight = MemorySink(), torch.tensor(1.5, dtype=dtype, requires_grad=True)
    result = a_result(3.0)
    with Tracker(2, [sink]) as tracker:
        tracker.add(StepResult(weight * 2, result.grad_norm, result.lr, result.loss_scale, result.found_inf))
        assert not tracker._pending[0][0].requires_grad
    assert sink.records == [StepRecord(0, 3.0, 4.0, 5.0, 1.0, 0.0)]


@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16"])
def test_nothing_is_read_by_the_host_between_two_flushes(name: str) -> None:
    model, batch = nn.Linear(4, 1), (torch.ones(3, 4),)

    def loss_fn(module: nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor | float]]:
        loss: Tensor = module(batch[0]).float().mean()
        return loss, {"double": 2 * loss, "rows": len(batch[0])}

    step = TrainStep(model, torch.optim.AdamW(model.parameters(), fused=True), precision_for(name, "cpu"), loss_fn)
    with Tracker(4, [MemorySink()]) as tracker:
        for _ in range(4):
            tracker.add(step(batch), samples=3)
        assert host_reads(lambda: [tracker.add(step(batch), samples=3) for _ in range(3)]).count == 0
        assert host_reads(lambda: tracker.add(step(batch), samples=3)).count > 0


@pytest.mark.parametrize(
    ("scales", "growth"),
    [
        ((1.0, 2.0, 2.0, 8.0, 8.0, 1.0), [1.0, 1.0, -1.5]),
        ((1.0,), [None]),
        ((0.0, 1.0), [None]),
        ((1.0, math.inf), [None]),
    ],
)
def test_growth_is_the_scales_doublings_a_step(scales: tuple[float, ...], growth: list[float | None]) -> None:
    sink = MemorySink()
    with Tracker(2, [sink]) as tracker:
        for scale in scales:
            tracker.add(a_result(scale=scale))
    assert [rates.loss_scale_growth for rates in sink.rates] == growth


def test_rates_are_counts_by_the_time_since_the_last_flush() -> None:
    sink, clock = MemorySink(), Clock()
    tracker = Tracker(2, [sink], throughput=Throughput(Peak(1e12, "made up"), flops_per_token=5e8), clock=clock)
    clock.now += 50.0  # before the block nothing runs
    with tracker:
        for seconds in (1.0, 3.0, 0.25, 0.25):
            clock.now += seconds
            tracker.add(a_result(), samples=8, tokens=256)
    first, second = sink.rates
    assert (first.steps_per_s, first.samples_per_s, first.tokens_per_s, first.mfu) == (0.5, 4.0, 128.0, 0.064)
    assert (second.steps_per_s, second.samples_per_s, second.tokens_per_s, second.mfu) == (4.0, 32.0, 1024.0, 0.512)


@pytest.mark.criterion("T035/AC4")
def test_what_nobody_counts_has_no_rate() -> None:
    sink = MemorySink()
    with Tracker(1, [sink]) as tracker:
        tracker.add(a_result())
    (rates,) = sink.rates
    assert (rates.samples_per_s, rates.tokens_per_s, rates.mfu, rates.stall_share) == (None, None, None, None)
    assert rates.steps_per_s > 0.0


def test_the_time_of_a_pause_is_not_in_the_rates() -> None:
    sink, clock = MemorySink(), Clock()
    with Tracker(10, [sink], clock=clock) as tracker:
        clock.now += 1.0
        tracker.add(a_result(), samples=4)
        with tracker.paused():
            assert len(sink.records) == 1
            clock.now += 60.0
        clock.now += 1.0
        tracker.add(a_result(), samples=4)
    assert [rates.samples_per_s for rates in sink.rates] == [4.0, 4.0]


def test_the_stall_share_is_the_time_waited_for_data_by_the_time_between_flushes() -> None:
    sink, clock, stream = MemorySink(), Clock(), Stream([(torch.zeros(1),)], CPU)
    stream.wait_s = 5.0  # what was waited before the block does not count
    with Tracker(4, [sink], stream=stream, clock=clock) as tracker:
        for _ in range(4):
            stream.wait_s += 0.5
            clock.now += 2.0
            tracker.add(a_result())
    assert sink.rates[0].stall_share == 0.25


def test_memory_on_a_cpu_is_the_peak_of_the_process_and_not_called_an_allocators() -> None:
    sink = MemorySink()
    with Tracker(1, [sink]) as tracker:
        tracker.add(a_result())
        ballast = torch.ones(32 * 2**20)  # 128 MiB
        tracker.add(a_result())
    before, after = sink.rates
    assert before.peak_memory_bytes is after.peak_memory_bytes is None
    assert (after.peak_rss_bytes or 0) >= (before.peak_rss_bytes or 0) > 2**26
    assert (after.peak_rss_bytes or 0) >= ballast.nbytes


def test_an_accelerators_peak_comes_from_its_allocator(monkeypatch: pytest.MonkeyPatch) -> None:
    module = SimpleNamespace(max_memory_allocated=lambda device: 12345 + device.index)
    monkeypatch.setattr(torch, "get_device_module", lambda _: module)
    assert pace._peak_memory_bytes(torch.device("cuda", 1)) == 12346
    monkeypatch.setattr(torch, "get_device_module", lambda _: torch.mps)
    assert pace._peak_memory_bytes(torch.device("mps")) is None


def test_more_than_the_whole_peak_is_called_impossible_once_and_not_reported() -> None:
    sink, clock = MemorySink(), Clock()
    throughput = Throughput(Peak(312e12, "NVIDIA A100, bf16: made up"), flops_per_token=1e12)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with Tracker(1, [sink], throughput=throughput, clock=clock) as tracker:
            for _ in range(3):
                clock.now += 1.0
                tracker.add(a_result(), tokens=320 + tracker.step)
    (message,) = [str(warning.message) for warning in caught]
    assert message.startswith("an MFU of 103% is impossible, so none is reported: the FLOPs or the peak are wrong in")
    assert "NVIDIA A100, bf16: made up" in message
    assert "\n" not in message
    assert [rates.mfu for rates in sink.rates] == [None] * 3


@pytest.mark.criterion("T035/AC4")
def test_a_resumed_tracker_counts_on() -> None:
    first, second = MemorySink(), MemorySink()
    with Tracker(10, [first]) as tracker:
        for index in range(4):
            tracker.add(a_result(found_inf=float(index == 1)))
        state = tracker.state_dict()
        assert len(first.records) == 4  # a checkpoint knows no more than the sinks
    assert state == {"step": 4, "skipped": 1}
    with Tracker(10, [second]) as resumed:
        resumed.load_state_dict(state)
        resumed.add(a_result(found_inf=1.0))
    assert [record.step for record in second.records] == [4]
    assert (second.rates[0].applied, second.rates[0].skipped) == (3, 2)


def test_a_sink_that_breaks_is_reported_once_and_the_others_get_every_step() -> None:
    before, broken, after = Counting(), Broken("write"), Counting()
    with pytest.warns(UserWarning) as caught, Tracker(2, [before, broken, after]) as tracker:
        for _ in range(6):
            tracker.add(a_result())
    expected = "Broken could not log (OSError: cannot write): training goes on without it"
    assert [str(warning.message) for warning in caught] == [expected]
    assert broken.calls == ["write"]
    assert before.flushes == after.flushes == [2, 2, 2]
    assert before.closed == after.closed == 1


def test_numbers_that_a_sink_cannot_log_reach_the_others() -> None:
    sink = MemorySink()
    tracker = Tracker(9, [Broken("log"), sink])
    tracker.add(a_result())
    with pytest.warns(UserWarning, match=r"^Broken could not log \(OSError: cannot log\)"):
        tracker.log(temperature=0.5)
    assert (sink.records[0].step, sink.logged, tracker.sinks) == (0, [(0, {"temperature": 0.5})], [sink])


def test_a_sink_that_cannot_be_closed_is_reported_and_the_others_are_closed() -> None:
    broken, after = Broken("close"), Counting()
    with (
        pytest.warns(UserWarning, match=r"Broken could not finish \(OSError: cannot close\): training goes on"),
        Tracker(2, [broken, after]) as tracker,
    ):
        tracker.add(a_result())
    assert (broken.calls, after.closed) == (["write", "close"], 1)


def test_ctrl_c_in_a_sink_still_stops_training() -> None:
    class Interrupted(MemorySink):
        def write(self, flush: Flush) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Tracker(1, [Interrupted()]).add(a_result())


def test_metrics_may_differ_from_step_to_step_but_not_take_a_name_of_the_tracker() -> None:
    sink = MemorySink()
    with Tracker(9, [sink]) as tracker:
        for names in ((), ("b", "a"), ("c",)):
            tracker.add(replace(a_result(), metrics={name: torch.tensor(float(ord(name))) for name in names}))
        with pytest.raises(ValueError, match="a metric needs another name than 'lr', "):
            tracker.add(replace(a_result(), metrics={"lr": torch.tensor(1.0)}))
    assert [record.metrics for record in sink.records] == [{}, {"b": 98.0, "a": 97.0}, {"c": 99.0}]


@pytest.mark.criterion("T035/AC4")
def test_an_interval_below_one_step_is_refused() -> None:
    with pytest.raises(ValueError, match="every must be at least 1 step, found 0"):
        Tracker(0, [])
