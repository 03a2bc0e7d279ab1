"""A sink that keeps what it gets."""

from collections.abc import Mapping

from amp_core.tracking.records import Flush, Rates, StepRecord


class MemorySink:
    """Keeps the records of the steps, the rates of the flushes, and what was logged besides, in lists."""

    name = "the memory sink"

    def __init__(self) -> None:
        self.records: list[StepRecord] = []
        self.rates: list[Rates] = []
        self.logged: list[tuple[int, Mapping[str, float]]] = []

    def write(self, flush: Flush) -> None:
        """Append the records and the rates."""
        self.records.extend(flush.steps)
        self.rates.append(flush.rates)

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Append the numbers, with their step."""
        self.logged.append((step, numbers))

    def close(self) -> None:
        """Keep what there is."""
