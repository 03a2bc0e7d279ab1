"""A39: a new scaler for each epoch, which forgets what the scale had come to."""

from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.job import INF, Job, Window, windows
from benchmarks.conformance.stepwise import PlainLoop, broken


def judge(subject: Subject) -> Result:
    """Two epochs of three windows, the first of which overflows: the scale halves in each."""
    trace = subject.train(Job(windows=windows(3, bad={0: INF}), epochs=2, growth_interval=4))
    scales = [seen.scale for seen in trace.steps]
    good = scales == [32768.0, 32768.0, 32768.0, 16384.0, 16384.0, 16384.0]
    return verdict(good, "scale by window: " + ", ".join(f"{scale:g}" for scale in scales))


class NewScalerEachEpoch(PlainLoop):
    """Makes a scaler when it sees the epoch's first window again."""

    def step(self, window: Window) -> None:
        """Begin anew."""
        if window is self.job.windows[0]:
            self.scaler = self.job.scaler()
        super().step(window)


CASE = Case(
    hazard="A39",
    question="Does the loss scale live on from one epoch to the next?",
    conforming="two epochs with an overflow in each halve the scale twice",
    references=("animl #298", "animl #304"),
    judge=judge,
    broken=broken(NewScalerEachEpoch),
)
