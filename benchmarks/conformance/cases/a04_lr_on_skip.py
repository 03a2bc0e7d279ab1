"""A04: the learning-rate schedule moves on although the step was skipped."""

from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.job import INF, Job, plain_adamw, windows
from benchmarks.conformance.stepwise import PlainLoop, broken


def judge(subject: Subject) -> Result:
    """Compare the learning rate before and after a window that overflows; the factor falls by a tenth a step."""
    job = Job(windows=windows(3, bad={1: INF}), optimizers=plain_adamw, factor=lambda step: 0.9**step)
    trace = subject.train(job)
    before, after, last = (seen.lr for seen in trace.steps)
    good = after == before and last < before
    return verdict(good, f"lr {before:.4g} -> {after:.4g} on the skipped step, then {last:.4g}")


class AlwaysAdvances(PlainLoop):
    """Steps the scheduler each time."""

    def advance(self) -> None:
        """Pay no heed to the skip."""
        self.skipped = False
        super().advance()


CASE = Case(
    hazard="A04",
    question="Does the learning rate stay where it is when a step is skipped?",
    conforming="the rate is the same before and after an overflow, and moves with the next applied step",
    references=("PyT #44511", "PyT #55585", "PL #5558", "PL #16228", "PL #18828", "PL #21339"),
    judge=judge,
    broken=broken(AlwaysAdvances),
)
