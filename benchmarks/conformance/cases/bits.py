"""Not a hazard of the catalogue: do a hundred steps have the bits of the recipe by hand?"""

from benchmarks.conformance.case import Case, Result, Subject, described, verdict
from benchmarks.conformance.job import INF, Batch, Job, windows
from benchmarks.conformance.stepwise import PlainLoop, broken
from benchmarks.conformance.subjects.torch_by_hand import SUBJECT as BY_HAND

STEPS = 100


def judge(subject: Subject) -> Result:
    """Compare parameters and scale after 100 windows: three precisions, accumulation 1 and 4, clipped and not."""
    differ = []
    for job, name in _jobs():
        try:
            same = _same(subject, job)
        except RuntimeError as error:
            differ.append(f"{name} ({described(error)})"[:80])
        else:
            differ.extend([] if same else [name])
    return verdict(not differ, f"{12 - len(differ)} of 12 bit-identical" + (f"; not: {'; '.join(differ)}" if differ else ""))


def _jobs() -> list[tuple[Job, str]]:
    return [
        (
            Job(
                windows=windows(STEPS, size, bad={3: INF, 17: INF} if precision == "fp16" else None),
                precision=precision,
                clip=clip,
                observed=False,
            ),
            f"{precision} x{size} {'clipped' if clip else 'unclipped'}",
        )
        for precision in ("fp32", "bf16", "fp16")
        for size in (1, 4)
        for clip in (0.3, None)
    ]


def _same(subject: Subject, job: Job) -> bool:
    ours, peer = subject.train(job).last, BY_HAND.train(job).last
    return ours.same_parameters(peer) and ours.scale == peer.scale


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
