"""One run of a measurement: the samples that it took, or why there are none, and how they were taken."""

from gates.child.process import ProcessRun
from gates.measuring.ledger import Recalled
from gates.measuring.samples import Samples
from gates.measuring.taken import Taken
from gates.model import Model


class MeasurementRun(Model):
    """One measurement on one device: its samples, or the reason why there are none.

    `elsewhere` names the bundle of one that was made on another machine.
    """

    id: str
    device: str
    process: ProcessRun | None
    samples: Samples | None
    problem: str = ""
    raw: str | None = None
    taken: Taken | None = None
    earlier: Recalled = Recalled()
    elsewhere: str = ""

    @property
    def ended(self) -> str:
        """Return how it ended, in words."""
        if self.taken:
            return f"{self.taken.ended}, after {self.taken.pairs} pairs"
        return self.process.ended if self.process else self.problem

    @property
    def duration_s(self) -> float:
        """Return how long it took."""
        if self.taken:
            return round(self.taken.measured_s + self.taken.started_s, 3)
        return self.process.duration_s if self.process else 0
