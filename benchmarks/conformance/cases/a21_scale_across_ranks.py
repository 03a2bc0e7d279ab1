"""A21: an overflow on one rank, after which scales and replicas differ."""

from benchmarks.conformance.case import Case, Result, Subject, verdict
from benchmarks.conformance.job import Seen
from benchmarks.conformance.ranks import seen_by_ranks
from benchmarks.conformance.subjects.torch_by_hand import UNWRAPPED


def judge(subject: Subject) -> Result:
    """Compare two DDP ranks, one of which overflows in the second of four windows."""
    return compare(*seen_by_ranks(subject, "overflow"))


def compare(one: list[Seen], other: list[Seen]) -> Result:
    """Compare parameters and scales of two ranks after each window; the second one must have been skipped."""
    same = all(a.same_parameters(b) and a.scale == b.scale for a, b in zip(one, other, strict=True))
    skipped = one[1].same_parameters(one[0]) and other[1].same_parameters(other[0])
    scales = " and ".join(f"{seen[1].scale:g}" for seen in (one, other))
    return verdict(
        same and skipped and one[-1].finite(),
        f"scales {scales} after the overflow, replicas {'equal' if same else 'differ'}, both skipped: {skipped}",
    )


CASE = Case(
    hazard="A21",
    question="Do DDP ranks skip together when one of them overflows?",
    conforming="both ranks keep their parameters and halve the scale, and stay equal",
    references=("PyT #136009", "PyT #90057", "Neuron_SP #2"),
    judge=judge,
    broken=UNWRAPPED,
)
