"""A06: a scalar read back to the host at every step, for which a GPU must wait."""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.job import Job, windows
from benchmarks.conformance.stepwise import PlainLoop, broken

FEW, MANY = 3, 13


class HostReads(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch declares no types for it
    """Counts how often a scalar is read back."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
        """Count, and go on."""
        self.count += func is torch.ops.aten._local_scalar_dense.default  # noqa: SLF001  where every read comes by
        return func(*args, **(kwargs or {}))


def judge(subject: Subject) -> Result:
    """Count the reads of a long job and a short one; what they differ by belongs to the steps."""
    try:
        reads, how = _by_precision(subject, clip=1.0), "clipped"
    except (RuntimeError, NotImplementedError):  # fused and clipped is refused: case A16
        reads, how = _by_precision(subject, clip=None), "unclipped, as clipping is refused"
    counts = ", ".join(f"{name} {count:g}" for name, count in reads.items())
    return verdict(not any(reads.values()), f"{counts} ({how})")


def _by_precision(subject: Subject, clip: float | None) -> dict[str, float]:
    reads = {}
    for precision in ("fp32", "bf16", "fp16"):
        more, fewer = (_reads(subject, count, precision, clip) for count in (MANY, FEW))
        reads[precision] = (more - fewer) / (MANY - FEW)
    return reads


def _reads(subject: Subject, count: int, precision: str, clip: float | None) -> int:
    with HostReads() as mode:  # type: ignore[no-untyped-call]  # the same
        subject.train(Job(windows=windows(count), precision=precision, clip=clip, observed=False))
    return int(mode.count)


class ReadsScale(PlainLoop):
    """Looks at the scale after each step."""


CASE = Case(
    hazard="A06",
    question="How often does a step with a fused optimizer read a scalar back to the host?",
    conforming="0 reads a step in fp32, bf16 and fp16",
    references=("Acc #1714", "PyT #61042", "PyT #60691"),
    judge=judge,
    broken=broken(ReadsScale),
    unseen="how long a GPU waits for a read; torch.cuda.set_sync_debug_mode shows it there",
)
