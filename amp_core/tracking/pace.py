"""A run's pace: what was counted on the host from one flush to the next, as rates."""

import math
import sys
import time
import warnings
from collections.abc import Callable, Sequence

import torch

from amp_core.data import Stream
from amp_core.throughput import Throughput
from amp_core.tracking.records import Rates, StepRecord

RSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, KiB elsewhere: getrusage(2)


class Pace:
    """Counts samples and tokens, and turns them into rates at each flush; `clock` is in seconds."""

    def __init__(
        self,
        throughput: Throughput | None = None,
        stream: Stream | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._throughput = throughput
        self._stream = stream
        self._clock = clock
        self._last_scale: float | None = None
        self.restart()

    def restart(self) -> None:
        """Begin an interval now, with nothing counted."""
        self._begun_s = self._clock()
        self._waited_s = self._wait_s()
        self._samples = 0
        self._tokens = 0

    def count(self, samples: int, tokens: int) -> None:
        """Count what a step was trained on."""
        self._samples += samples
        self._tokens += tokens

    def rates(self, steps: Sequence[StepRecord], *, skipped: int, device: torch.device) -> Rates:
        """Return the rates of the interval, whose steps these are, and begin the next; `skipped` is the run's total."""
        elapsed_s = max(self._clock() - self._begun_s, sys.float_info.min)
        samples_per_s = self._samples / elapsed_s if self._samples else None
        tokens_per_s = self._tokens / elapsed_s if self._tokens else None
        rates = Rates(
            applied=steps[-1].step + 1 - skipped,
            skipped=skipped,
            loss_scale_growth=self._growth([record.loss_scale for record in steps]),
            steps_per_s=len(steps) / elapsed_s,
            samples_per_s=samples_per_s,
            tokens_per_s=tokens_per_s,
            mfu=self._mfu(samples_per_s, tokens_per_s),
            stall_share=None if self._stream is None else (self._wait_s() - self._waited_s) / elapsed_s,
            peak_memory_bytes=_peak_memory_bytes(device),
            peak_rss_bytes=_peak_rss_bytes(),
        )
        self.restart()
        return rates

    def _wait_s(self) -> float:
        return 0.0 if self._stream is None else self._stream.wait_s

    def _growth(self, scales: list[float]) -> float | None:
        """Return the doublings of the loss scale a step, from the last flush's last step to this one's."""
        known = scales if self._last_scale is None else [self._last_scale, *scales]
        self._last_scale = scales[-1]
        if len(known) < 2 or not (0.0 < known[0] < math.inf and 0.0 < known[-1] < math.inf):
            return None
        return math.log2(known[-1] / known[0]) / (len(known) - 1)

    def _mfu(self, samples_per_s: float | None, tokens_per_s: float | None) -> float | None:
        if self._throughput is None:
            return None
        share = self._throughput.mfu(samples_per_s, tokens_per_s)
        if share is None or share <= 1.0:
            return share
        warnings.warn(
            f"an MFU of {share:.0%} is impossible, so none is reported: the FLOPs or the peak are wrong"
            f" in {self._throughput}",
            stacklevel=5,
        )
        self._throughput = None
        return None


def _peak_rss_bytes() -> int | None:
    """Return the most memory that this process ever held; None on Windows, which has no such count."""
    if sys.platform == "win32":
        return None
    import resource  # only now: Windows has none

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * RSS_UNIT


def _peak_memory_bytes(device: torch.device) -> int | None:
    """Return what the accelerator's allocator gave out at most; None where none counts. It reads no device."""
    if device.type == "cpu":
        return None
    peak: Callable[[torch.device], int] | None = getattr(torch.get_device_module(device), "max_memory_allocated", None)
    return None if peak is None else peak(device)
