"""What was seen of something that was done several times at once."""

from gates.child.process import ProcessRun
from gates.model import Location, Model


class Differed(Model):
    """A round in which something else came of it than alone: what, in words, or the error that was raised."""

    worker: int
    number: int
    forced: bool
    expected: str = ""
    found: str = ""
    error: str = ""
    place: Location | None = None


class Stood(Model):
    """Where a thread stood still: the project's lines of its stack, the innermost first."""

    worker: int
    places: tuple[Location, ...] = ()
    functions: tuple[str, ...] = ()


class Switched(Model):
    """A line after which, and the last before which, it is enough that the others run to change what comes of it."""

    place: Location
    function: str
    until: Location


class Together(Model):
    """One thing that was done at once, in threads or in processes; rounds count where they were at it together."""

    index: int
    where: str
    process: ProcessRun | None = None
    problem: str = ""
    place: Location | None = None
    unclear: str = ""
    complete: bool = False
    alone: str = ""
    alone_s: float = 0.0
    rounds: int = 0
    met: int = 0
    forced: int = 0
    pauses: int = 0
    overlap_s: float = 0.0
    failed: int = 0
    failed_forced: int = 0
    differed: tuple[Differed, ...] = ()
    stood: tuple[Stood, ...] = ()
    slow: bool = False
    stood_forced: bool = False
    switched: tuple[Switched, ...] = ()
    free_threaded: bool | None = None

    @property
    def bound(self) -> float | None:
        """Return the rate below which rounds fail, at 95 %, where none did: the rule of three."""
        return 3 / self.met if self.met and not self.failed else None
