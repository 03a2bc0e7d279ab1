"""A41: two steps in turn, as of a GAN: the backward pass of the one leaves gradients in the model of the other."""

from torch import Tensor, nn

from amp_core.step import Batch
from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.job import Job, Trace, a_model, seeded, squared_error, windows
from benchmarks.conformance.stepwise import PlainLoop, broken


def judge(subject: Subject) -> Result:
    """Train a model alone, then with the steps of a second one, whose loss goes through the first, in between."""
    alone = subject.train(Job(windows=windows(4)))
    in_turn = with_another(subject)
    gap = in_turn.last.moved_from(alone.last)
    return verdict(gap == 0.0, f"with steps of another model in between, the parameters end {gap:.3g} apart")


def with_another(subject: Subject) -> Trace:
    """Train a model, and after each of its steps another one, which learns from the first as a generator does."""
    first = a_model()
    second = seeded(lambda: nn.Linear(6, 6))

    def through_both(model: nn.Module, batch: Batch) -> Tensor:
        return squared_error(nn.Sequential(model, first), batch)

    other = Job(windows=windows(1), model=lambda: second, loss_fn=through_both, observed=False)
    return subject.train(Job(windows=windows(4), model=lambda: first, between=lambda: subject.train(other)))


CASE = Case(
    hazard="A41",
    question="Do two steps in turn, as of a GAN, keep their gradients apart?",
    conforming="a model is trained as without the other one's steps in between, bit by bit",
    references=("measured",),
    judge=judge,
    broken=broken(PlainLoop),
)
