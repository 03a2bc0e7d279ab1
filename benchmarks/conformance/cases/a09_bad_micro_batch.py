"""A09: one bad micro-batch in a window."""

from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.job import INF, Job, windows
from benchmarks.conformance.stepwise import PlainLoop, broken


def judge(subject: Subject) -> Result:
    """Spoil one of the four micro-batches of the first of two windows."""
    trace = subject.train(Job(windows=windows(2, 4, bad={0: INF}), growth_interval=1000))
    first, second = trace.steps
    kept = first.same_parameters(trace.start)
    scales = [trace.start.scale, first.scale, second.scale]
    good = kept and scales == [65536.0, 32768.0, 32768.0] and second.finite() and second.moved_from(first) > 0
    return verdict(good, f"window skipped: {kept}; scale {' -> '.join(f'{scale:g}' for scale in scales)}")


class KeepsGradients(PlainLoop):
    """Drops the gradients only after an applied step."""

    def clear(self) -> None:
        """Leave the bad gradients for the next window."""
        if not self.skipped:
            super().clear()


CASE = Case(
    hazard="A09",
    question="Does one bad micro-batch cost its window, once, and nothing more?",
    conforming="the window is skipped, the scale halved once, and the next window steps",
    references=("measured",),
    judge=judge,
    broken=broken(KeepsGradients),
)
