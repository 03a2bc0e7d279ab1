"""A22: an overflow in the shard of one rank, unseen by the others."""

from benchmarks.conformance.case import Case, Result, Subject
from benchmarks.conformance.cases.a21_scale_across_ranks import compare
from benchmarks.conformance.ranks import seen_by_ranks
from benchmarks.conformance.subjects.torch_by_hand import UNWRAPPED


def judge(subject: Subject) -> Result:
    """Compare two FSDP2 ranks, one of which overflows in the second of four windows."""
    return compare(*seen_by_ranks(subject, "sharded"))


CASE = Case(
    hazard="A22",
    question="Do FSDP2 ranks skip together when one of them overflows?",
    conforming="both ranks keep their parameters and halve the scale, and stay equal",
    references=("PyT #115710", "fairscale #754"),
    judge=judge,
    broken=UNWRAPPED,
)
