"""A02: `unscale_` called for each micro-batch of a window."""

from amp_core.step import Batch
from benchmarks.conformance.case import Case, Result, Subject, described, verdict
from benchmarks.conformance.job import Job, plain_sgd, windows
from benchmarks.conformance.stepwise import PlainLoop, broken

CLIP = 0.05


def judge(subject: Subject) -> Result:
    """Two windows of four micro-batches, clipped: both must step, each by the clipped norm."""
    try:
        trace = subject.train(Job(windows=windows(2, 4), optimizers=plain_sgd, clip=CLIP))
    except RuntimeError as error:
        return verdict(False, described(error))
    norms = [trace.steps[0].moved_from(trace.start), trace.steps[1].moved_from(trace.steps[0])]
    good = all(abs(norm - CLIP) < 0.01 * CLIP for norm in norms)
    return verdict(good, f"update norms {norms[0]:.3g} and {norms[1]:.3g}, clipped at {CLIP}")


class UnscalesEach(PlainLoop):
    """Unscales after each backward pass."""

    def backward(self, batch: Batch, share: float) -> None:
        """Unscale within the window."""
        super().backward(batch, share)
        super().unscale()

    def unscale(self) -> None:
        """Leave it to `backward`."""


CASE = Case(
    hazard="A02",
    question="Are accumulated gradients unscaled once a window?",
    conforming="two clipped windows of four micro-batches step without an error",
    references=("Acc #641", "transformers #23905", "transformers #23935", "diffusers #8960"),
    judge=judge,
    broken=broken(UnscalesEach),
)
