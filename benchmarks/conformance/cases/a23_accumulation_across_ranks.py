"""A23: gradient exchange left out around the wrong calls while micro-batches accumulate."""

from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.cases.a24_partial_window import joined
from benchmarks.conformance.job import Job, plain_sgd
from benchmarks.conformance.ranks import RANKS, micro, seen_by_ranks
from benchmarks.conformance.stepwise import PlainLoop, broken
from benchmarks.conformance.subjects.torch_by_hand import UNWRAPPED


def judge(subject: Subject) -> Result:
    """Compare two DDP ranks with three micro-batches a window to one process with all rows in one batch."""
    both = tuple(joined(tuple(batch for rank in range(RANKS) for batch in micro(index, rank))) for index in range(2))
    whole = broken(PlainLoop).train(Job(windows=both, precision="fp32", optimizers=plain_sgd))
    one, other = seen_by_ranks(subject, "accumulation")
    apart, gap = one[-1].moved_from(other[-1]), one[-1].moved_from(whole.last)
    return verdict(apart == 0.0 and gap < 1e-5, f"replicas {apart:.2g} apart, {gap:.2g} from one batch of all rows")


CASE = Case(
    hazard="A23",
    question="Do accumulated gradients of two ranks equal one large batch?",
    conforming="replicas are equal, and as one process with all rows would have them",
    references=("build-nanogpt #30", "FunASR #3472"),
    judge=judge,
    broken=UNWRAPPED,
)
