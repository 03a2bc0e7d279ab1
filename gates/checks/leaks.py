"""Memory over epochs: does it go on growing? What may is run again for longer, and once more to see where."""

import math
import statistics
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from gates.check import Said
from gates.child.probing import Entry, Probe, Probed
from gates.evidence._probes import ProbeCheck, Probes, Seen, only, readable, unknown
from gates.measuring.interval import LEVEL, Estimate
from gates.model import Location, Model, Outcome
from gates.task.types import OneCall
from gates.words import shown


class Leak(OneCall):
    """A callable whose memory must not go on growing from one epoch to the next.

    A function that `call` returns is called once an epoch; where it returns anything else, `call` itself is.
    `tolerance_bytes` is what an epoch may keep; without it, 16 KB or 0.01 % of the process's memory.
    """

    key: ClassVar[str] = "leaks"

    epochs: Annotated[int, Field(ge=20, le=500)] = 30
    tolerance_bytes: Annotated[int, Field(gt=0)] | None = None


DROPPED = 0.3
LEAST = 10  # values of which a slope is taken
ENOUGH = 15  # values that show by themselves that a growth has ended
SLOWED = 0.5  # of the slope before: what grows ever more slowly may end
ENDS = 3  # values at each end that the whole change is taken from


def theil_sen(values: Sequence[float]) -> Estimate:
    """Return the slope of two or more values that were taken at equal distances, with Sen's interval (Sen 1968)."""
    n = len(values)
    slopes = sorted((values[j] - values[i]) / (j - i) for j in range(n) for i in range(j))
    deviation = math.sqrt(n * (n - 1) * (2 * n + 5) / 18)  # of Kendall's statistic without a trend
    apart = int(statistics.NormalDist().inv_cdf((1 + LEVEL) / 2) * deviation) + 2
    k = (len(slopes) - apart) // 2  # so many slopes may be left out at each end
    low, high = (slopes[k], slopes[-1 - k]) if k >= 0 else (-math.inf, math.inf)
    return Estimate(statistics.median(slopes), low, high, n, LEVEL)


def kept(values: Sequence[float]) -> Sequence[float]:
    """Return the values without the first 30 %, in which caches fill and allocators find their size."""
    return values[math.ceil(DROPPED * len(values)) :]


def drift(values: Sequence[float], tolerance: float) -> Outcome:
    """Say whether a series goes on growing by more than the tolerance from one value to the next.

    It fails where both the slope of what is kept and that of its second half lie above the tolerance with their whole
    intervals, and the growth does not slow down: a cache that fills ends, a leak does not. It passes where slope and
    whole change of the second half lie below; unless that is long, also of all that is kept.
    """
    used = kept(values)
    first, last = used[: len(used) // 2], used[len(used) // 2 :]
    if len(last) < LEAST // 2 or len(used) < LEAST:
        return Outcome.UNKNOWN
    whole, before, end = theil_sen(used), theil_sen(first), theil_sen(last)
    if whole.low > tolerance and end.low > tolerance and end.high >= SLOWED * before.value:
        return Outcome.FAILED
    all_flat = whole.high <= tolerance and _change(used) <= tolerance
    flat = end.high <= tolerance and _change(last) <= tolerance and (len(last) >= ENOUGH or all_flat)
    return Outcome.PASSED if flat else Outcome.UNKNOWN


def _change(values: Sequence[float]) -> float:
    """Return the mean change from one value to the next, so that a few large steps do not hide among equal values."""
    return (statistics.median(values[-ENDS:]) - statistics.median(values[:ENDS])) / (len(values) - ENDS)


LEAST_BYTES = 16 * 1024  # a history of numbers is below
NEAR = 3  # readings of which the lowest counts
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
    def held(self) -> Sequence[float]:
        """Return the values; where not exact, the lowest of a few: a heap also shrinks, a leak does not."""
        near = 1 if self.exact else NEAR
        return [min(self.values[max(0, i + 1 - near) : i + 1]) for i in range(len(self.values))]

    @property
    def unit(self) -> str:
        """Return what is counted."""
        return "nodes" if self.name == "graph" else "bytes"


class Filling(Model):
    """A cache or queue that has a bound and had not reached it."""

    name: str
    size: int
    most: int


class LeakRun(Seen):
    """One callable, run as often as asked, or for `longer` where it may leak; what stays is `allocated` there."""

    form: str = ""
    asked: int
    longer: bool = False
    epochs: int = 0
    rungs: tuple[Rung, ...] = ()
    filling: tuple[Filling, ...] = ()
    troubles: tuple[str, ...] = ()
    allocated: tuple[Location, ...] = ()

    def tolerance(self, rung: Rung, asked: int | None) -> float:
        """Return by how much a rung may grow in an epoch: as asked, or a share of what the process held first."""
        if rung.unit == "nodes":
            return NODES
        first = next((rung.values[0] for rung in self.rungs if rung.name == "private" and rung.values), 0.0)
        least = max(LEAST_BYTES, OF_FOOTPRINT * first)
        return float(asked or least) if rung.exact else max(asked or 0, least)

    def drifts(self, asked: int | None) -> dict[str, Outcome]:
        """Return what each rung does in the end; bytes that grow while a cache fills may be its own."""
        found = {rung.name: drift(rung.held, self.tolerance(rung, asked)) for rung in self.rungs}
        open_ = {rung.name for rung in self.rungs if self.filling and rung.unit == "bytes"}
        grows, unclear = Outcome.FAILED, Outcome.UNKNOWN
        return {name: unclear if does is grows and name in open_ else does for name, does in found.items()}


LONGER, MOST_EPOCHS = 3, 1000
LOCATED = 6  # epochs that are looked at for where


class Leaks(Probes[Leak, LeakRun]):
    """All callables of a task whose memory must not go on growing."""

    key = "leaks"
    method = "each callable over and over, in processes of their own, memory read after each epoch"

    @classmethod
    def look(cls, probe: Probe, name: str, part: Leak, limit_s: float) -> LeakRun:
        """Run a callable as often as is asked, and again where it does not stay as it is."""

        def asked(suffix: str, epochs: int, warm: int = 0) -> Probed:
            told = {"call": part.call, "args": part.args, "least": part.epochs, "epochs": epochs, "warm": warm}
            return probe.ask("leaks", f"{name}{suffix}", told, limit_s, env={})

        first = _watched(asked("", part.epochs), part.epochs)
        if first.problem or set(first.drifts(part.tolerance_bytes).values()) <= {Outcome.PASSED}:
            return first
        epochs = min(LONGER * part.epochs, MOST_EPOCHS)
        longer = _watched(asked("-longer", epochs), epochs).model_copy(update={"longer": True})
        if Outcome.FAILED not in longer.drifts(part.tolerance_bytes).values():
            return longer
        # what begins later is found after half as many epochs as the longer run had
        where = asked("-where", LOCATED, longer.epochs // 2)
        return readable(longer, lambda: {"allocated": where.of("allocated")})


def _watched(probed: Probed, asked: int) -> LeakRun:
    series, told = probed.of("epoch"), next(iter(probed.of("form")), {})
    base = LeakRun(problem=probed.trouble, place=probed.place, asked=asked)
    return readable(base, lambda: {**told, "epochs": len(series), "rungs": _rungs(series)})


def _rungs(series: list[Entry]) -> list[dict[str, object]]:
    """Return each rung that was read after most epochs; one that came later, such as a device, from there on."""
    names = dict.fromkeys(name for entry in series for name in entry if series[-1].get(name) is not None)
    return [{"name": n, "values": [entry[n] for entry in series if entry.get(n) is not None]} for n in names]


NAMED = 3  # of the lines that allocate most
LIBRARY = (
    "Look for it with a profiler that sees the C library's calls, such as memray. For a buffer, ask for as many "
    "'epochs' as it takes to fill it in the first third."
)
MORE = "Ask for more 'epochs', or let caches fill in the first third of them."
LET_GO = (
    "Let go of it at the end of an epoch; of a tensor, keep its number (`.item()`) or at least no graph (`.detach()`). "
    "Of a buffer that will be full one day, ask for as many 'epochs' as that takes."
)
ORDER = ("device", "tensors", "graph", "python")
WORDS = {
    "tensors": "live tensors",
    "graph": "autograd graphs",
    "python": "what Python holds",
    "private": "the process's own memory",
}
FORMS = {"called": "it is called once an epoch", "returned": "what it returns is called once an epoch"}
OTHER = "nothing that Python or torch knows of: what only a library knows of, or a buffer that was set aside before"


def _said(leak: Leak, run: LeakRun) -> Said:
    if run.problem:
        told = f"{'it grew, and was run again for longer; then ' if run.longer else ''}{_why(run)}"
        return unknown(told, location=run.place)
    drifts = run.drifts(leak.tolerance_bytes)
    grown = [rung for rung in run.rungs if drifts[rung.name] is Outcome.FAILED]
    if exact := sorted((rung for rung in grown if rung.exact), key=lambda rung: ORDER.index(rung.name.split()[0])):
        lines = " and ".join(map(str, run.allocated[:NAMED]))
        told = f"what stays is allocated at {lines}" if lines else "no line of the project was found for it"
        message, at = f"{_grew(exact)}, over {run.epochs} epochs; {told}", next(iter(run.allocated), None)
        most = f"at most {shown(run.tolerance(exact[0], leak.tolerance_bytes), exact[0].unit)} an epoch"
        impact = "A run that is long enough ends for want of memory."
        return Said(Outcome.FAILED, message, _grew(exact), at, most, impact, LET_GO)
    if run.troubles or not {rung.name for rung in run.rungs} >= {"python", "private"}:
        why = "; ".join(run.troubles) or "what Python and the process hold cannot be read here"
        return unknown(f"not all was seen: {why}")
    if grown:
        return unknown(f"{_grew(grown)}, and {OTHER} and is now filled", _grew(grown), remedy=LIBRARY)
    if unclear := [_words(rung) for rung in run.rungs if drifts[rung.name] is Outcome.UNKNOWN]:
        filled = "; ".join(f"{each.name} is filling ({each.size} of {each.most})" for each in run.filling)
        why = f"{run.epochs} epochs do not tell whether {' and '.join(unclear)} will go on growing"
        return unknown(f"{why}: {filled}" if filled else why, "not decided", remedy=MORE)
    grew = _grew(run.rungs)
    told = f"no memory keeps growing over {run.epochs} epochs: {grew}"
    return Said(Outcome.PASSED, told, grew, expected="no growth above the tolerance")


def _why(run: LeakRun) -> str:
    return f"{run.problem} (after {run.epochs} of {run.asked} epochs)"


def _words(rung: Rung) -> str:
    return WORDS.get(rung.name, rung.name)


def _slope(rung: Rung) -> str:
    return theil_sen(kept(rung.held)).said(lambda value: shown(value, rung.unit))


def _grew(rungs: Sequence[Rung]) -> str:
    return "; ".join(f"{_words(rung)} by {_slope(rung)} an epoch" for rung in rungs)


def _rows(leak: Leak, run: LeakRun, said: Said) -> Iterator[tuple[str, ...]]:
    drifts, epochs = run.drifts(leak.tolerance_bytes), str(run.epochs)
    for rung in run.rungs:
        if len(rung.values) > 1:
            does, tolerance = drifts[rung.name], shown(run.tolerance(rung, leak.tolerance_bytes), rung.unit)
            name = rung.name if rung.exact else f"{rung.name} (not exact)"
            line = str(said.location or "-") if does is Outcome.FAILED else "-"
            yield does.value, name, _slope(rung), tolerance, epochs, line, leak.name if rung is run.rungs[0] else ""
    if not run.rungs:
        yield _why(run), "-", "-", "-", epochs, "-", leak.name


CHECK = ProbeCheck[Leak, LeakRun](
    name="leaks",
    order=30,
    rule="PF004",
    evidence=Leaks,
    aspects=only(lambda leak: f"No memory leak in {leak.name}", _said),
    promise="no memory leak",
    title="Memory",
    text="Theil-Sen slope with Sen's interval of 95 %, without the first 30 % of the epochs; exact rungs first.",
    columns=("Outcome", "Rung", "Growth an epoch", "Tolerance", "Epochs", "Line", "Call"),
    rows=_rows,
    facts=lambda _leak, run: FORMS.get(run.form, "did not run"),
    doubt="not known whether it leaks",
    remedy="Make the callable run to its end, epoch after epoch.",
    suffix=lambda run: "-longer" if run.longer else "",
).check()
