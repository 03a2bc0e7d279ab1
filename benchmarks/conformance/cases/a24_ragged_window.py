"""A24: a mean of means, where micro-batches hold different numbers of rows."""

from amp_core.step import Batch
from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.cases.a24_partial_window import joined
from benchmarks.conformance.job import Job, a_batch, plain_sgd
from benchmarks.conformance.stepwise import PlainLoop, broken


def judge(subject: Subject) -> Result:
    """Take micro-batches of 1, 9, 2 and 20 rows, weighed by their rows, and one batch of all."""
    window = tuple(a_batch(seed, rows=rows) for seed, rows in enumerate((1, 9, 2, 20)))
    ragged = Job(windows=(window,), precision="fp32", optimizers=plain_sgd, weigh=lambda batch: len(batch[0]))
    whole = Job(windows=(joined(window),), precision="fp32", optimizers=plain_sgd)
    gap = subject.train(ragged).last.moved_from(subject.train(whole).last)
    return verdict(gap < 1e-5, f"difference to one batch of all rows {gap:.2g}")


class MeanOfMeans(PlainLoop):
    """Weighs micro-batches alike."""

    def share(self, _batch: Batch, window: tuple[Batch, ...]) -> float:
        """Return one over the window's length."""
        return 1.0 / len(window)


CASE = Case(
    hazard="A24",
    question="Can micro-batches be weighed by what they hold, such as target tokens?",
    conforming="a ragged window moves the parameters as one batch of all its rows does",
    references=("transformers #34191", "trl #2175", "minimind #749"),
    judge=judge,
    broken=broken(MeanOfMeans),
)
