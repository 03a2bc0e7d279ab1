"""A01: gradients clipped while they still carry the loss scale."""

from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.job import Job, plain_sgd, windows
from benchmarks.conformance.stepwise import PlainLoop, broken

CLIP = 0.05


def judge(subject: Subject) -> Result:
    """With SGD at learning rate 1, the update's norm is the clipped gradient's."""
    trace = subject.train(Job(windows=windows(1), optimizers=plain_sgd, clip=CLIP))
    moved = trace.last.moved_from(trace.start)
    return verdict(abs(moved - CLIP) < 0.01 * CLIP, f"update norm {moved:.3g}, clipped at {CLIP}")


class ClipsScaled(PlainLoop):
    """Clips, then unscales."""

    def unscale(self) -> None:
        """Clip first."""
        self.clip()
        super().unscale()


CASE = Case(
    hazard="A01",
    question="Does clipping see the true gradients, not the scaled ones?",
    conforming="an update clipped at 0.05 has norm 0.05 in fp16",
    references=("PL #9330", "PL #9599", "PL #9694", "PyT #40907"),
    judge=judge,
    broken=broken(ClipsScaled),
)
