"""What was seen of a callable that was run over and over: the rungs after each epoch, and where what is kept is."""

from gates.child.process import ProcessRun
from gates.measuring.drift import Drift, drift
from gates.model import Location, Model

LEAST_BYTES = 16 * 1024  # a history of numbers is below
NODES = 0.5
OF_FOOTPRINT = 1e-4
VAGUE = ("heap", "private")


class Rung(Model):
    """What one rung of the ladder showed after each epoch."""

    name: str
    values: tuple[float, ...]

    @property
    def exact(self) -> bool:
        """Return whether growth here is what is held, and nothing else."""
        return self.name not in VAGUE

    @property
    def unit(self) -> str:
        """Return what is counted."""
        return "nodes" if self.name == "graph" else "bytes"


class Filling(Model):
    """A cache or queue that has a bound and had not reached it; `rate` is about what it grew by, in bytes an epoch."""

    name: str
    size: int
    most: int
    rate: float


class Watched(Model):
    """One process in which epochs were run; `problem` is why not all of them were, and `place` where."""

    process: ProcessRun | None = None
    problem: str = ""
    place: Location | None = None
    form: str = ""
    asked: int
    epochs: int = 0
    rungs: tuple[Rung, ...] = ()
    filling: tuple[Filling, ...] = ()
    troubles: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Return whether it came to its end."""
        return not self.problem

    @property
    def footprint(self) -> float:
        """Return what the process held by itself after its first epoch."""
        return next((rung.values[0] for rung in self.rungs if rung.name == "private" and rung.values), 0.0)

    def tolerance(self, rung: Rung, asked: int | None) -> float:
        """Return by how much a rung may grow in an epoch: as asked, or a share of what the process holds."""
        if rung.unit == "nodes":
            return NODES
        least = max(LEAST_BYTES, OF_FOOTPRINT * self.footprint)
        return float(asked or least) if rung.exact else max(asked or 0, least)

    def drifts(self, asked: int | None) -> dict[str, Drift]:
        """Return what each rung does in the end; growth that filling caches may explain is open."""
        filled = sum(each.rate for each in self.filling)
        found = {}
        for rung in self.rungs:
            tolerance = self.tolerance(rung, asked)
            does = drift(rung.values, tolerance)
            explained = rung.unit == "bytes" and does is Drift.GROWS and drift(rung.values, tolerance + 2 * filled)
            found[rung.name] = Drift.OPEN if explained and explained is not Drift.GROWS else does
        return found


class Allocated(Model):
    """A line of the project, and what it allocated that was kept over some epochs."""

    rung: str
    location: Location
    size: int


class Holder(Model):
    """A container that grew with every epoch: its owner, its rate, and the line after which it was larger.

    `entry` is about how many bytes an entry holds, `tensors` and `graphs` how many of them the newest ones lead to.
    """

    owner: str
    kind: str
    rate: float
    entry: float
    tensors: int
    graphs: int
    location: Location | None = None


class LeakRun(Model):
    """One callable: run as often as asked, then for longer where it may leak, then to see where."""

    index: int
    name: str
    first: Watched
    longer: Watched | None = None
    allocated: tuple[Allocated, ...] = ()
    holders: tuple[Holder, ...] = ()

    @property
    def last(self) -> Watched:
        """Return the run that counts."""
        return self.longer or self.first
