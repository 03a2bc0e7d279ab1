"""A43: the user's own backward pass between two steps, such as for a penalty that is logged, is trained on."""

from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.job import Job, a_batch, a_model, squared_error, windows
from benchmarks.conformance.stepwise import PlainLoop, broken


def judge(subject: Subject) -> Result:
    """Train with and without a backward pass through the model after each step."""
    model = a_model()

    def stray() -> None:
        squared_error(model, a_batch(99)).backward()  # type: ignore[no-untyped-call]  # torch declares no types for it

    plain = subject.train(Job(windows=windows(4, 2), precision="fp32"))
    disturbed = subject.train(Job(windows=windows(4, 2), precision="fp32", model=lambda: model, between=stray))
    gap = disturbed.last.moved_from(plain.last)
    return verdict(gap == 0.0, f"with a backward pass of the user's between steps, the parameters end {gap:.3g} apart")


CASE = Case(
    hazard="A43",
    question="Does a step begin without the gradients of a backward pass that was none of its own?",
    conforming="the parameters are those of a run without it, bit by bit",
    references=("measured",),
    judge=judge,
    broken=broken(PlainLoop),
)
