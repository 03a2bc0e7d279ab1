"""A sink that keeps what it gets."""

from amp_core.tracking.records import Flush, Rates, StepRecord


class MemorySink:
    """Keeps the records of the steps, and the rates of the flushes, in lists."""

    name = "the memory sink"

    def __init__(self) -> None:
        self.records: list[StepRecord] = []
        self.rates: list[Rates] = []

    def write(self, flush: Flush) -> None:
        """Append the records and the rates."""
        self.records.extend(flush.steps)
        self.rates.append(flush.rates)

    def close(self) -> None:
        """Keep what there is."""
