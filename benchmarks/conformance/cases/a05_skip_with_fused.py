"""A05: a skip inside a fused optimizer's kernel goes unseen by those who watch calls of `optimizer.step`."""

from benchmarks.conformance.case import Case, NotApplicableError, Result, Subject, verdict
from benchmarks.conformance.job import INF, Job, Seen, windows
from benchmarks.conformance.stepwise import PlainLoop, broken


def judge(subject: Subject) -> Result:
    """Ask after each of three windows whether its step was skipped; the second one was."""
    trace = subject.train(Job(windows=windows(3, bad={1: INF})))
    said = [seen.skipped for seen in trace.steps]
    if None in said:
        raise NotApplicableError("has no word on whether a step was skipped")
    stayed = trace.steps[0].same_parameters(trace.steps[1])
    return verdict(stayed and said == [False, True, False], f"skipped as reported: {said}; parameters kept: {stayed}")


class WatchesCalls(PlainLoop):
    """Takes a step for applied if `optimizer.step` was called."""

    def see(self) -> Seen:
        """Report no skip, as a fused optimizer's step is always called."""
        self.skipped = False
        return super().see()


CASE = Case(
    hazard="A05",
    question="Is a skipped step of a fused optimizer reported as skipped?",
    conforming="of three windows the second, which overflows, is reported, and only that one",
    references=("Acc #4242", "Acc #4243", "PyT #67590", "PyT #152279"),
    judge=judge,
    broken=broken(WatchesCalls),
)
