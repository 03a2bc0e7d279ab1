"""A29: data in Python lists, whose reference counts make every worker copy them."""

import gc
from collections.abc import Callable

import torch
from torch.utils.data import Dataset

from amp_core.benchmark.chain import draw_chain
from benchmarks.conformance.case import BROKEN, Case, Offers, Result, Subject, verdict

FEW, MANY = 10, 1000


def by_ours(samples: int) -> object:
    """Draw amp_core's synthetic tokens."""
    generator = torch.Generator().manual_seed(0)
    return draw_chain(8, sharpness=2.0, generator=generator).sample(samples, 4, generator)


class Listed(Dataset[torch.Tensor]):
    """A data set that holds a tensor for each sample."""

    def __init__(self, samples: int) -> None:
        self.samples = [torch.zeros(4) for _ in range(samples)]


OFFERS: Offers[Callable[[int], object]] = Offers(
    {"amp_core": by_ours, "broken": Listed}, missing="makes no data sets of its own"
)


def judge(subject: Subject) -> Result:
    """Count the Python objects behind a small and a large data set."""
    make = OFFERS.of(subject)
    counts = [_reachable(make(samples)) for samples in (FEW, MANY)]
    return verdict(counts[0] == counts[1], f"{counts[0]} objects behind {FEW} samples, {counts[1]} behind {MANY}")


def _reachable(root: object) -> int:
    seen: dict[int, object] = {}
    waiting: list[object] = [root]
    while waiting:
        each = waiting.pop()
        if id(each) not in seen and not isinstance(each, type):
            seen[id(each)] = each
            waiting.extend(gc.get_referents(each) if not isinstance(each, torch.Tensor) else [])
    return len(seen)


CASE = Case(
    hazard="A29",
    question="Is a data set held in tensors, not in a Python object for each sample?",
    conforming="the number of objects does not grow with the number of samples",
    references=("PyT #13246", "PyT #5902", "PyT #62066", "PyT #191555"),
    judge=judge,
    broken=BROKEN,
    unseen="the growth of a worker's memory over hours; its cause is counted instead",
)
