"""Not a hazard of the catalogue: do a hundred steps have the bits of the recipe by hand?"""

import functools

from amp_core.step import Batch
from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.job import INF, Job, Seen, windows
from benchmarks.conformance.stepwise import PlainLoop, broken
from benchmarks.conformance.subjects.torch_by_hand import SUBJECT as BY_HAND

STEPS = 100
SAME = "the same"


def judge(subject: Subject) -> Result:
    """Compare parameters and scale after 100 windows: three precisions, accumulation 1 and 4, clipped and not."""
    found: dict[str, list[str]] = {SAME: [], "other bits": [], "refused": []}
    for job, name, peer in _jobs():
        try:
            ours = subject.train(job).last
            same = ours.same_parameters(peer) and ours.scale == peer.scale
            found[SAME if same else "other bits"].append(name)
        except (RuntimeError, NotImplementedError):  # a fused optimizer that is clipped: case A16
            found["refused"].append(name)
    bad = "".join(f"; {what}: {', '.join(names)}" for what, names in found.items() if names and what != SAME)
    return verdict(not bad, f"{len(found[SAME])} of {sum(map(len, found.values()))} bit-identical{bad}")


@functools.cache
def _jobs() -> list[tuple[Job, str, Seen]]:
    """Return each job, its name, and what the recipe by hand comes to."""
    return [
        (
            job := Job(
                windows=windows(STEPS, size, bad={3: INF, 17: INF} if precision == "fp16" else None),
                precision=precision,
                clip=clip,
                observed=False,
            ),
            f"{precision} x{size} {'clipped' if clip else 'unclipped'}",
            BY_HAND.train(job).last,
        )
        for precision in ("fp32", "bf16", "fp16")
        for size in (1, 4)
        for clip in (0.3, None)
    ]


class OneBitOff(PlainLoop):
    """Weighs the first micro-batch a hair more."""

    def share(self, batch: Batch, window: tuple[Batch, ...]) -> float:
        """Add the least that float32 can see."""
        return super().share(batch, window) * (1.0 + 2.0**-20 * (batch is window[0]))


CASE = Case(
    hazard="bits",
    question="Are the parameters after 100 steps those of the recipe by hand, bit by bit?",
    conforming="identical in fp32, bf16 and fp16, with accumulation 1 and 4, clipped and not",
    references=("measured",),
    judge=judge,
    broken=broken(OneBitOff),
)
