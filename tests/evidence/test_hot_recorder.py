"""The parts of the recorder that take a hot path apart, each by itself."""

import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest
import torch
from building import PATIENCE_S, ROOT

from gates.child.places import Places
from gates.child.recorder import clock as clocks
from gates.child.recorder.clock import BACKWARD, DATA, EVALUATION, FORWARD, OPTIMIZER, OTHER, Clock, Late
from gates.child.recorder.hot_path import Feeding, HotReads, Sampling, pointers

PLACES = Places(str(ROOT))


class Time:
    """A clock of a second for each time that it is asked."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(clocks, "perf_counter", Time())
    return Clock()


def test_time_passes_in_the_phase_entered_last(clock: Clock) -> None:
    with clock.during(OPTIMIZER), clock.during(FORWARD):
        assert clock.phase == FORWARD
    assert clock.taken() == {OTHER: 2.0, OPTIMIZER: 2.0, FORWARD: 1.0}
    assert clock.taken() == {OTHER: 1.0}


def test_forward_lingers_until_the_backward_pass(clock: Clock) -> None:
    clock.enter(FORWARD)
    with clock.during(DATA):
        pass
    clock.settle()
    with clock.during(BACKWARD):
        pass
    assert clock.taken() == {OTHER: 3.0, FORWARD: 2.0, DATA: 1.0, BACKWARD: 1.0}


def test_phase_that_ends_takes_along_what_lingers_in_it(clock: Clock) -> None:
    step = clock.enter(OPTIMIZER)
    clock.enter(FORWARD)
    clock.leave(step)
    assert clock.phase == OTHER
    clock.stop(FORWARD)
    clock.leave(0)
    assert clock.phase == OTHER


def test_batch_of_an_evaluation_is_none_of_the_training(clock: Clock) -> None:
    with clock.during(DATA):
        pass
    with clock.during(EVALUATION):
        pass
    spent = clock.taken()
    assert (spent[DATA], spent[EVALUATION]) == (0.0, 2.0)


def test_batch_that_a_teacher_sees_first_is_the_trainings(clock: Clock) -> None:
    with clock.during(DATA):
        pass
    for _ in range(2):
        with clock.during(EVALUATION):
            pass
    clock.enter(FORWARD)
    spent = clock.taken()
    assert (spent[DATA], spent[EVALUATION]) == (1.0, 2.0)


def test_wait_for_a_processor_is_told_where_the_system_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "schedstat"
    told.write_text("5 1000000000 1\n", encoding="utf-8")
    monkeypatch.setattr(clocks, "LATE", str(told))
    late = Late()
    with late.in_data():
        told.write_text("5 3000000000 1\n", encoding="utf-8")
    told.write_text("5 4000000000 1\n", encoding="utf-8")
    assert late.taken() == (2.0, 3.0)
    assert late.taken() == (0.0, 0.0)
    monkeypatch.setattr(clocks, "LATE", str(tmp_path / "nothing"))
    assert Late().taken() == (0.0, 0.0)


def asked(look: Callable[[FrameType], bool]) -> bool:
    return look(sys._getframe(0))


def generated(look: Callable[[FrameType], bool]) -> Iterator[bool]:
    yield asked(look)


def test_generator_that_the_loop_asks_makes_batches() -> None:
    feeding = Feeding(PLACES)
    assert not next(generated(feeding.makes_batches))  # whose loop it is, is not known
    feeding.looping(sys._getframe(0))
    assert next(generated(feeding.makes_batches))
    assert not asked(feeding.makes_batches)
    assert not next(asked(feeding.makes_batches) for _ in "x")


def test_generator_that_trains_makes_none() -> None:
    feeding = Feeding(PLACES)

    def steps() -> Iterator[bool]:
        feeding.looping(sys._getframe(0))
        yield asked(feeding.makes_batches)

    assert not next(steps())


def test_function_that_returns_what_a_model_is_called_with_makes_batches() -> None:
    feeding = Feeding(PLACES)
    inside: list[bool] = []

    def batch() -> dict[str, torch.Tensor]:
        inside.append(feeding.makes_batches(sys._getframe(0)))
        return {"inputs": torch.ones(2)}

    feeding.looping(sys._getframe(0))
    feeding.learn()
    given = batch()
    feeding.fed(((given["inputs"][:1],), {}))
    feeding.learned()
    batch()
    assert inside == [False, True]
    assert sys.getprofile() is None


def test_tensors_of_a_model_are_no_batches() -> None:
    plain, trained = torch.ones(2), torch.ones(2, requires_grad=True)
    assert [thing for _, thing in pointers([{"a": plain}, (trained, "text"), torch.ones(2).to_sparse()])] == [plain]


def test_what_cuda_calls_synchronising_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    modes: list[str] = []
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)
    reads = HotReads(PLACES, lambda _: False)
    with warnings.catch_warnings(record=True) as others:
        warnings.simplefilter("always")
        reads.hear_cuda()
        reads.hear_cuda()
        for _ in range(2):
            warnings.warn("called a synchronizing CUDA operation (Triggered internally)", stacklevel=1)
        warnings.warn("another one", stacklevel=1)
    ((read, count),) = reads.taken().items()
    assert (modes, read.call, count) == (["warn"], "wait", 2)
    assert read.place is not None
    assert read.place[0] == "tests/evidence/test_hot_recorder.py"
    assert [str(other.message) for other in others] == ["another one"]


def test_sampling_tells_the_phase_and_the_line() -> None:
    sampling, watched = Sampling(PLACES, Feeding(PLACES)), Clock()
    sampling.watch(watched)
    assert sampling.is_watched()
    with watched.during(OPTIMIZER):
        limit = time.monotonic() + PATIENCE_S
        while not (found := [key for key in sampling.taken() if key[0] == OPTIMIZER]) and time.monotonic() < limit:
            time.sleep(0.005)
    assert found[0][:2] == (OPTIMIZER, OPTIMIZER)
    assert found[0][2] is not None
    assert found[0][2][0] == "tests/evidence/test_hot_recorder.py"
    elsewhere: list[bool] = []
    other = threading.Thread(target=lambda: elsewhere.append(sampling.is_watched()))
    other.start()
    other.join()
    sampling.end()
    assert elsewhere == [False]
