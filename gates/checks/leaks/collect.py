"""Memory over epochs: a callable of the project run over and over in a process of its own, and what is held after each.

What may go on growing is run again for longer, in a fresh process; what does is run once more to see where.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import TypeVar

from pydantic import ValidationError

from gates.child.probing import Entry, Probe, Probed
from gates.evidence._probes import Probes, readable
from gates.model import Location, Model
from gates.task.probes import Leak

M = TypeVar("M", bound=Model)
METHOD = "Theil-Sen slope with Sen's interval of 95 %"
ALPHA = 0.05
DROPPED = 0.3
LEAST = 10  # values of which a slope is taken
ENOUGH = 15  # values that show by themselves that a growth has ended
SLOWED = 0.5  # of the slope before: what grows ever more slowly may end
ENDS = 3  # values at each end that the whole change is taken from


class Drift(StrEnum):
    """What a series does in the end."""

    FLAT = "flat"
    GROWS = "grows"
    OPEN = "open"


@dataclass(frozen=True)
class Slope:
    """By how much a value changes from one to the next, and the interval of that."""

    value: float
    low: float
    high: float
    n: int


def theil_sen(values: Sequence[float]) -> Slope:
    """Return the slope of two or more values that were taken at equal distances, with Sen's interval (Sen 1968)."""
    n = len(values)
    slopes = sorted((values[j] - values[i]) / (j - i) for i, j in combinations(range(n), 2))
    deviation = math.sqrt(n * (n - 1) * (2 * n + 5) / 18)  # of Kendall's statistic without a trend
    apart = int(statistics.NormalDist().inv_cdf(1 - ALPHA / 2) * deviation) + 2
    k = (len(slopes) - apart) // 2  # so many slopes may be left out at each end
    low, high = (slopes[k], slopes[-1 - k]) if k >= 0 else (-math.inf, math.inf)
    return Slope(statistics.median(slopes), low, high, n)


def kept(values: Sequence[float]) -> Sequence[float]:
    """Return the values without the first 30 %, in which caches fill and allocators find their size."""
    return values[math.ceil(DROPPED * len(values)) :]


def drift(values: Sequence[float], tolerance: float) -> Drift:
    """Say whether a series goes on growing by more than the tolerance from one value to the next.

    It grows where both the slope of what is kept and that of its second half lie above the tolerance with their whole
    intervals, and the growth does not slow down: a cache that fills ends, a leak does not. It is flat where slope and
    whole change of the second half lie below; unless that is long, also of all that is kept.
    """
    used = kept(values)
    first, last = used[: len(used) // 2], used[len(used) // 2 :]
    if len(last) < LEAST // 2 or len(used) < LEAST:
        return Drift.OPEN
    whole, before, end = theil_sen(used), theil_sen(first), theil_sen(last)
    slows = end.high < SLOWED * before.value
    if whole.low > tolerance and end.low > tolerance and not slows:
        return Drift.GROWS
    long = len(last) >= ENOUGH
    flat = end.high <= tolerance and _change(last) <= tolerance
    return Drift.FLAT if flat and (long or (whole.high <= tolerance and _change(used) <= tolerance)) else Drift.OPEN


def _change(values: Sequence[float]) -> float:
    """Return the mean change from one value to the next, so that a few large steps do not hide among equal values."""
    return (statistics.median(values[-ENDS:]) - statistics.median(values[:ENDS])) / (len(values) - ENDS)


LEAST_BYTES = 16 * 1024  # a history of numbers is below
NODES = 0.5
OF_FOOTPRINT = 1e-4


class Rung(Model):
    """What one rung of the ladder showed after each epoch."""

    name: str
    values: tuple[float, ...]

    @property
    def exact(self) -> bool:
        """Return whether growth here is what is held, and nothing else."""
        return self.name != "private"

    @property
    def unit(self) -> str:
        """Return what is counted."""
        return "nodes" if self.name == "graph" else "bytes"


class Filling(Model):
    """A cache or queue that has a bound and had not reached it."""

    name: str
    size: int
    most: int


class Watched(Model):
    """One process in which epochs were run; `problem` is why not all of them were, and `place` where."""

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
        """Return what each rung does in the end; bytes that grow while a cache fills may be its own."""
        found = {rung.name: drift(rung.values, self.tolerance(rung, asked)) for rung in self.rungs}
        open_ = {rung.name for rung in self.rungs if self.filling and rung.unit == "bytes"}
        return {name: Drift.OPEN if does is Drift.GROWS and name in open_ else does for name, does in found.items()}


class Holder(Model):
    """A container that grew with every epoch: by how many entries, and the line after which it was larger.

    `size` is about how many bytes an epoch adds to it, `graphs` whether its newest entries hold graphs.
    """

    kind: str
    rate: float
    size: float
    graphs: bool
    location: Location | None = None


class LeakRun(Model):
    """One callable: run as often as asked, then for longer where it may leak, then to see where."""

    first: Watched
    longer: Watched | None = None
    allocated: tuple[Location, ...] = ()
    holders: tuple[Holder, ...] = ()

    @property
    def last(self) -> Watched:
        """Return the run that counts."""
        return self.longer or self.first


LONGER = 3
MOST_EPOCHS = 1000
SHARE = 0.8  # of the time limit, after which a longer run stops by itself
LOCATED = 6  # epochs that are looked at for where


class Leaks(Probes[Leak, LeakRun]):
    """All callables of a task whose memory must not go on growing."""

    key = "leaks"
    method = "each callable over and over, in processes of their own, memory read after each epoch"

    @classmethod
    def look(cls, probe: Probe, name: str, part: Leak, limit_s: float) -> LeakRun:
        """Run a callable as often as is asked, and again where it does not stay as it is."""

        def asked(suffix: str, epochs: int, warm: int = 0) -> Probed:
            about = {"call": part.call, "args": part.args, "seconds": SHARE * limit_s, "least": part.epochs}
            told = {**about, "epochs": epochs, "warm": warm}
            return probe.ask("leaks", f"{name}{suffix}", told, limit_s, threads=None)

        first = _watched(asked("", part.epochs), part.epochs)
        seen = LeakRun(first=first)
        if not first.complete or set(first.drifts(part.tolerance_bytes).values()) <= {Drift.FLAT}:
            return seen
        epochs = min(LONGER * part.epochs, MOST_EPOCHS)
        longer = _watched(asked("-longer", epochs), epochs)
        seen = LeakRun(first=first, longer=longer)
        if Drift.GROWS not in longer.drifts(part.tolerance_bytes).values():
            return seen
        # what begins later is found after as many epochs as the longer run had
        for suffix, warm in (("-where", math.ceil(DROPPED * part.epochs)), ("-where-later", longer.epochs // 2)):
            found = _located(asked(suffix, warm + LOCATED, warm))
            if any(found.values()):
                return seen.model_copy(update=found)
        return seen


def _watched(probed: Probed, asked: int) -> Watched:
    series, told = probed.of("epoch"), next(iter(probed.of("form")), {})
    base = Watched(problem=probed.trouble, place=probed.place, asked=asked)
    facts: dict[str, object] = {name: told[name] for name in ("form", "filling", "troubles") if name in told}
    return readable(base, lambda: {**facts, "epochs": len(series), "rungs": _rungs(series)})


def _located(probed: Probed) -> dict[str, object]:
    try:
        return {
            "allocated": tuple(_known(Location, each) for each in probed.of("allocated")),
            "holders": tuple(_known(Holder, each) for each in probed.of("holder")),
        }
    except ValidationError:  # what is known of where does not change that it leaks
        return {}


def _rungs(series: list[Entry]) -> list[dict[str, object]]:
    """Return each rung that was read after most epochs; one that came later, such as a device, from there on."""
    names = dict.fromkeys(name for entry in series for name in entry if name != "word")
    columns = {name: [entry.get(name) for entry in series] for name in names}
    return [
        {"name": name, "values": [value for value in values if value is not None]}
        for name, values in columns.items()
        if values and values[-1] is not None
    ]


def _known(kind: type[M], entry: Entry) -> M:
    """Return what an entry tells of a kind."""
    return kind.model_validate({name: entry[name] for name in kind.model_fields if name in entry})
