"""All probes on one training step: their findings as lines of text, and as samples."""

import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self, TypeVar

import torch

from amp_audit.casting import Dtypes, Phase, dtypes
from amp_audit.ledger import Peak
from amp_audit.overflow import Loop, Overflow, inject_overflow
from amp_audit.peak import Step, predict_peak
from amp_audit.reading import HostReads, host_reads
from amp_audit.saving import saved_bytes
from amp_core.device import inspect
from amp_core.samples import Direction, Metric, Samples

TIMING = "Nothing is timed: one step was counted, after one that warmed it up. predicted_* are estimates."
Found = TypeVar("Found")


class StepFailed(RuntimeError):
    """The user's own code raised."""

    @classmethod
    def of(cls, doing: str, error: Exception) -> Self:
        """Return the failure as one line."""
        return cls(f"{doing} raised {type(error).__name__}: {str(error).partition(chr(10))[0]}")


@dataclass(frozen=True)
class Audit:
    """All that was found out about one step; where a peak cannot be predicted, it is the reason, one line."""

    target: str
    reads: HostReads
    dtypes: Dtypes
    saved: Peak
    predicted: Mapping[str, Peak | str]
    overflow: Overflow | None


def audit(make_step: Callable[[], object], target: str) -> Audit:
    """Probe the step that `make_step` returns; `target` is its name.

    Raises:
        ValueError: it returns no callable.
        StepFailed: it, or a step, raised.
    """
    step = _attempt(f"{target}()", make_step)
    if not callable(step):
        raise ValueError(f"expected {target}() to return a step that takes no arguments, found {step!r:.80}")  # noqa: TRY004  all that a user can mend is one
    doing = f"the step of {target}"
    _attempt(doing, step)
    return Audit(
        target,
        _attempt(doing, lambda: host_reads(step)),
        _attempt(doing, lambda: dtypes(step)),
        _attempt(doing, lambda: saved_bytes(step)),
        {"here": _predict(make_step, like_cuda=False), "like_cuda": _predict(make_step, like_cuda=True)},
        _attempt(doing, lambda: inject_overflow(step)) if isinstance(step, Loop) else None,
    )


def lines(found: Audit) -> Iterator[str]:
    """Yield a readable table, line by line."""
    yield f"step             {found.target}, on {found.reads.device_type}"
    yield f"host reads       {found.reads.count} a step"
    yield from (f"  {read.count:>6} x {read.call} at {read.where}" for read in found.reads.reads)
    for phase in Phase:
        counts = found.dtypes.matmuls(phase)
        if counts:
            named = ", ".join(f"{count} in {_name(dtype)}" for dtype, count in counts.items())
            yield f"matrix products  {phase}: {named}"
    yield f"saved            {_size(found.saved)}"
    yield f"predicted peak   {_said(found.predicted['here'])}, with the autocast of the CPU"
    yield f"                 {_said(found.predicted['like_cuda'])}, with the autocast of CUDA (estimates)"
    if found.overflow is not None:
        before, after = found.overflow.scale_before, found.overflow.scale_after
        scale = "" if before is None else f"; loss scale {before:g}, then {after:g}"
        yield f"overflow         {', '.join(found.overflow.problems) or 'skipped, nothing moved'}{scale}"


def samples(found: Audit) -> Samples:
    """Return the findings as a samples file's content."""
    products = {_name(dtype): (float(count),) for dtype, count in found.dtypes.matmuls().items()}
    peaks = {name: (float(peak.bytes),) for name, peak in found.predicted.items() if isinstance(peak, Peak)}
    metrics = {"host_reads_per_step": _single("reads", found.reads.count)}
    if products:
        metrics["matmuls_per_step"] = Metric("calls", Direction.NONE, paired=False, arms=products)
    if found.saved.bytes:
        metrics["saved_bytes"] = _single("B", found.saved.bytes)
    if peaks:
        metrics["predicted_peak_bytes"] = Metric("B", Direction.LOWER, paired=False, arms=peaks)
    if found.overflow is not None:
        metrics["overflow_problems"] = _single("problems", len(found.overflow.problems))
    environment = {"python": platform.python_version(), "torch": torch.__version__}
    facts = inspect(torch.device(found.reads.device_type))
    return Samples(facts, environment, {"target": found.target}, TIMING, metrics)


def _attempt(doing: str, fn: Callable[[], Found]) -> Found:
    try:
        return fn()
    except Exception as error:  # the user's code may raise anything
        raise StepFailed.of(doing, error) from error


def _predict(make_step: Callable[[], object], *, like_cuda: bool) -> Peak | str:
    def made() -> Step:
        step = make_step()
        assert callable(step)  # it was, when it was called before
        return step

    try:
        return predict_peak(made, like_cuda=like_cuda)
    except Exception as error:  # noqa: BLE001  the user's code on tensors without content may raise anything
        return str(StepFailed.of("predicting", error))


def _single(unit: str, value: float) -> Metric:
    return Metric(unit, Direction.LOWER, paired=False, arms={"step": (float(value),)})


def _said(peak: Peak | str) -> str:
    return peak if isinstance(peak, str) else _size(peak)


def _size(peak: Peak) -> str:
    parts = [f"{_name(dtype)} {_bytes(size)}" for dtype, size in peak.by_dtype if size >= 0.01 * peak.bytes]
    return f"{_bytes(peak.bytes)} ({', '.join(parts)})" if parts else _bytes(peak.bytes)


def _bytes(size: int) -> str:
    """Return a size to four digits, such as "1.415 GiB"."""
    power = max(0, size.bit_length() - 1) // 10
    return f"{size} B" if power == 0 else f"{size / 2 ** (10 * power):.4g} {'BKMGTP'[power]}iB"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
