"""A31: work timed by the host's clock while the device is still at it, or with a wait inside the loop."""

from collections.abc import Callable

import torch

from amp_core.benchmark.timing import latencies
from benchmarks.conformance.case import BROKEN, Case, Offers, Result, Subject, verdict

COUNT = 3
GOOD = ["record", *["work", "record"] * COUNT, "synchronize"]


class Noted:
    """An event that writes down what is asked of it, as there is no GPU to ask."""

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def record(self) -> None:
        """Note."""
        self.log.append("record")

    def synchronize(self) -> None:
        """Note."""
        self.log.append("synchronize")

    def elapsed_time(self, end: object) -> float:
        """Return a millisecond."""
        return 1.0 if end is not self else 0.0


def by_ours(log: list[str]) -> None:
    """Time three pieces of work as amp_core's benchmark does on a GPU."""
    latencies(lambda: log.append("work"), COUNT, torch.device("cuda"), lambda: Noted(log))


def carelessly(log: list[str]) -> None:
    """Wait in the loop."""
    for _ in range(COUNT):
        Noted(log).record()
        log.append("work")
        Noted(log).synchronize()


OFFERS: Offers[Callable[[list[str]], None]] = Offers(
    {"amp_core": by_ours, "broken": carelessly}, missing="has no benchmark of its own"
)


def judge(subject: Subject) -> Result:
    """Look at the order of events, work and waiting."""
    log: list[str] = []
    OFFERS.of(subject)(log)
    return verdict(
        log == GOOD, f"{log.count('record')} events, {log.count('synchronize')} wait, order: {' '.join(log)}"
    )


CASE = Case(
    hazard="A31",
    question="Is a GPU timed by its own events, with a single wait after the last?",
    conforming="an event around each piece of work, and one wait at the end",
    references=("PyT #23910", "PyT #75393", "nerfstudio #183", "MEDS #132", "mlx-benchmark #21"),
    judge=judge,
    broken=BROKEN,
    unseen="a GPU's clock: the order of its calls is judged with stand-ins for events",
)
