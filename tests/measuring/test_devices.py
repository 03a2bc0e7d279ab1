"""Steps on an accelerator, which here is a stand-in: timed by events, synchronised once, never counted as the CPU."""

from pathlib import Path

import pytest
from arming import STEPS, started
from building import written

from gates.measuring.bench import ArmFailed, Bench

TORCH = """
import time
__version__ = "0.stand-in"
threads = []
def set_num_threads(count): threads.append(count)
class version: hip = None
class Tensor: pass
autograd = None
class Event:
    def __init__(self, enable_timing): assert enable_timing
    def record(self): self.at = time.perf_counter()
    def elapsed_time(self, other): return (other.at - self.at) * 1000 * SCALE
class cuda:
    synchronised = 0
    Event = Event
    is_initialized = staticmethod(lambda: True)
    memory_allocated = staticmethod(lambda: 1000)
    max_memory_allocated = staticmethod(lambda: 4096)
    reset_peak_memory_stats = staticmethod(lambda: None)
    get_device_capability = staticmethod(lambda: (9, 0))
    get_device_name = staticmethod(lambda: "a stand-in")
    is_bf16_supported = staticmethod(lambda including_emulation: True)
    @staticmethod
    def synchronize():
        cuda.synchronised += 1
        if cuda.synchronised > LASTS: raise RuntimeError("CUDA error: device is lost")
"""
STEP = """
import torch, steps
def make():
    work = steps.work(20000)
    def step():
        work()
        return torch.cuda.synchronised, torch.threads
    return step
"""


def a_gpu(folder: Path, *, scale: float = 1.0, lasts: int = 1000) -> Path:
    torch = TORCH.replace("SCALE", str(scale)).replace("LASTS", str(lasts))
    return written(folder, {"torch.py": torch, "steps.py": STEPS, "onto.py": STEP})


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "log").mkdir()
    return tmp_path / "log"


def test_device_time_and_memory_are_the_devices_own(log: Path, tmp_path: Path) -> None:
    with Bench(log) as bench:
        worker = bench.start("amp", started(a_gpu(tmp_path / "p", scale=0.5), call="onto:make"))
        hello = worker.hello()
        ran = worker.run(8)
        again = worker.run(8)
        assert worker.collect().peak_memory_bytes == 4096
    assert (hello.device.type, hello.device.name) == ("cuda", "a stand-in")
    assert set(hello.device.capabilities) == {"bf16", "fp16", "sm_90", "tf32"}
    assert hello.environment["torch"] == "0.stand-in"
    assert ran.device_s is not None and ran.step_s == ran.device_s / 8
    assert ran.device_s == pytest.approx(ran.wall_s / 2, rel=0.3)
    assert ran.digest != again.digest  # one synchronisation more, and the threads that were set


@pytest.mark.parametrize(
    ("how", "steps", "said"),
    [({"lasts": 3}, 2, "amp: RuntimeError: CUDA error: device is lost"), ({"scale": 9}, 8, "our clock says")],
)
def test_a_device_that_vanishes_or_whose_clock_is_faster_than_ours_is_a_reason(
    log: Path, tmp_path: Path, how: dict[str, int], steps: int, said: str
) -> None:
    with Bench(log) as bench:
        worker = bench.start("amp", started(a_gpu(tmp_path / "p", **how), call="onto:make"))
        worker.hello()
        with pytest.raises(ArmFailed, match=said):
            for _ in range(6):
                worker.run(steps)
