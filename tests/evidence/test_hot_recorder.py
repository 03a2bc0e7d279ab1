"""The parts of the recorder that take a hot path apart, each by itself."""

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from types import FrameType

import pytest
import torch
from building import PATIENCE_S, ROOT

from gates.child.asking import Places
from gates.child.recorder import waiting
from gates.child.recorder.hot_path import HostReads
from gates.child.recorder.waiting import Feeding, Loading, Sampling, pointers

PLACES = Places(str(ROOT))


@pytest.fixture
def loading(monkeypatch: pytest.MonkeyPatch) -> Loading:
    monkeypatch.setattr(waiting, "perf_counter", count(1.0).__next__)  # a second for each time that it is asked
    return Loading()


def test_time_in_loaders_is_a_wait_and_counted_once(loading: Loading) -> None:
    with loading.during(), loading.during():
        assert loading.active
    assert loading.taken() == (3.0, 1.0, 2.0)
    assert loading.taken() == (1.0, 0.0, 1.0)


def test_batch_of_an_evaluation_is_none_of_the_training(loading: Loading) -> None:
    with loading.during():
        pass
    loading.called(trains=False)
    assert loading.taken() == (3.0, 0.0, 2.0)


def test_batch_that_a_teacher_sees_first_is_the_trainings(loading: Loading) -> None:
    with loading.during():
        pass
    loading.called(trains=False)
    loading.called(trains=True)
    assert loading.taken()[1] == 1.0


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
    feeding.fed(((batch()["inputs"][:1],), {}))
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
    reads = HostReads(PLACES, lambda _: False)
    with warnings.catch_warnings(record=True) as others:
        warnings.simplefilter("always")
        reads.hear_cuda()
        reads.hear_cuda()
        for _ in range(2):
            warnings.warn("called a synchronizing CUDA operation (Triggered internally)", stacklevel=1)
        warnings.warn("another one", stacklevel=1)
    ((read, count),) = reads.taken().items()
    assert (modes, read.call, count) == (["warn"], "wait", 2)
    assert read.location and read.location[0] == "tests/evidence/test_hot_recorder.py"
    assert [str(other.message) for other in others] == ["another one"]


def test_sampling_tells_the_line_of_a_wait(loading: Loading) -> None:
    sampling = Sampling(PLACES, Feeding(PLACES))
    sampling.watch(loading)
    assert sampling.is_watched()
    with loading.during():
        limit = time.monotonic() + PATIENCE_S
        while not (found := sampling.taken()[1]) and time.monotonic() < limit:
            time.sleep(0.005)
    assert {path for path, _ in found} == {"tests/evidence/test_hot_recorder.py"}
    with ThreadPoolExecutor(1) as elsewhere:
        assert not elsewhere.submit(sampling.is_watched).result()


@pytest.mark.parametrize("root", ["/home/p", "/usr/lib/python3/site-packages/p"])
def test_what_is_installed_inside_of_the_project_is_not_its_own(root: str) -> None:
    own, foreign = [f"{root}/pkg/a.py", f"{root}/site-packages-mirror/b.py"], f"{root}/.venv/lib/site-packages/c.py"
    places = Places(root)
    assert [places.shown(path) for path in own] == ["pkg/a.py", "site-packages-mirror/b.py"]
    assert [places.shown(path) for path in (foreign, "/home/other/a.py", "<string>")] == [None] * 3
