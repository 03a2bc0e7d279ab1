"""Whether a machine was fit to measure: what overrules an interval, however narrow that is."""

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from gates.measuring.interval import NEEDED, Estimate, rank
from gates.measuring.taken import Taken

CROWDED = 0.30
SOME_WAITING = 0.10
STRETCHED = 1.2
PREEMPTED = 2  # times in a pair
THROTTLED = 0.05
SLOW_CLOCK = 0.75
TIMES = ("step_time_s", "run_time_s", "items_per_s")
CPU_TIME = {"step_time_s": "step_cpu_time_s", "run_time_s": "run_cpu_time_s"}
TIMED = frozenset({*TIMES, *CPU_TIME.values()})  # what has a value for each pair


@dataclass(frozen=True)
class Noise:
    """What a second copy of the baseline differed from it: the ratio of their times, which should be 1."""

    value: float
    low: float
    high: float
    n: int

    @property
    def floor(self) -> float:
        """Return the part by which two equal things seem to differ here."""
        return max(abs(self.high - 1), abs(self.low - 1))

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}], n = {self.n}"


def noise(taken: Taken, metric: str = TIMES[0]) -> Noise | None:
    """Return how far the baseline and its copy were apart by a clock; `None` where they were not compared."""
    ratios = sorted(copy / own for own, copy in (taken.cpu_copies if metric in CPU_TIME.values() else taken.copies))
    if not ratios:
        return None
    n = len(ratios)
    k = rank(n)[0] if n >= NEEDED else 1  # of fewer, all that was seen
    return Noise(statistics.median(ratios), ratios[k - 1], ratios[-k], n)


def disturbed(taken: Taken) -> tuple[str, ...]:
    """Return why no number of this measurement can be believed, whatever it is."""
    return tuple(_machine_changed(taken))


def contended(taken: Taken) -> tuple[str, ...]:
    """Return why the wall clock cannot be believed: the work waited for a processor, or its clock was held down."""
    return tuple(_waited(taken))


def misled(taken: Taken, metric: str, kind: str, seen: Estimate, limit: float) -> tuple[str, ...]:
    """Return why an interval of times may be narrow and wrong, by what is left between the number and its limit."""
    margin = margin_of(kind, seen.value, limit)
    return tuple(_biased(taken, metric, margin)) if margin is not None else ()


def margin_of(kind: str, value: float, limit: float) -> float | None:
    """Return how far a number is from its limit, as a logarithm; `None` where it has none."""
    pair = (1 - value, 1 - limit) if kind == "reduction" else (value, limit)
    if kind == "difference" or min(pair) <= 0:
        return None
    return abs(math.log(pair[0] / pair[1]))


def _machine_changed(taken: Taken) -> Iterator[str]:
    before, after = taken.before, taken.after
    if before.cores != after.cores:
        yield f"the processor cores that may be used changed from {before.cores} to {after.cores}"
    if before.quota != after.quota:
        yield f"the processor quota changed from {before.quota!r} to {after.quota!r}"
    if before.plugged is not None and before.plugged != after.plugged:
        yield "the machine was plugged in or unplugged"
    if taken.threads > before.cores:
        yield f"{taken.threads} threads on {before.cores} cores"


def _waited(taken: Taken) -> Iterator[str]:
    if taken.threads > 1 and (taken.waiting or 0.0) > CROWDED:
        yield f"something waited for a processor {taken.waiting:.0%} of the time (at most {CROWDED:.0%} with threads)"
    throttled = (taken.after.throttled_s or 0.0) - (taken.before.throttled_s or 0.0)
    if throttled > THROTTLED * max(taken.measured_s, 1e-9):
        yield f"the processor quota held the work up for {throttled:.2g} of {taken.measured_s:.2g} s"
    if taken.threads == 1:
        for arm, values in taken.stretch.items():
            stretch = statistics.median(values)
            crowded = (taken.waiting or 0.0) > SOME_WAITING
            switches = [sum(each) for each in taken.whole_pairs(taken.switches.get(arm, ()))]
            pushed = taken.waiting is None and (not switches or statistics.median(switches) >= PREEMPTED)
            if stretch > STRETCHED and (crowded or pushed):
                share = f" {taken.waiting:.0%} of the time" if taken.waiting is not None else ""
                took = f"{arm} took {stretch:.3g} times its CPU time (at most {STRETCHED:g})"
                yield f"{took} while something waited for a processor{share}"
    if taken.gpu is not None:
        if taken.gpu.throttled:
            yield f"the GPU was throttled ({taken.gpu.throttled})"
        if taken.gpu.clock_share is not None and taken.gpu.clock_share < SLOW_CLOCK:
            yield f"the GPU ran at {taken.gpu.clock_share:.0%} of its clock (at least {SLOW_CLOCK:.0%})"
        if taken.gpu.others:
            yield f"{taken.gpu.others} other processes used the GPU"


def _biased(taken: Taken, metric: str, margin: float) -> Iterator[str]:
    seen = noise(taken, metric)
    if seen and not seen.low <= 1 <= seen.high and abs(math.log(seen.value)) > margin / 2:
        yield f"two copies of {taken.baseline} differed as much as half of what is to be shown: {seen}"
    halves = {arm: statistics.median(values) for arm, values in taken.halves.items() if values}
    if halves and metric in TIMES:
        apart = (max(halves.values()) - min(halves.values())) / 2
        if apart > margin / 2 and _is_clear(taken):
            yield f"the arms disturb each other: their first steps after a switch differ by {math.expm1(apart):.1%}"


def _is_clear(taken: Taken) -> bool:
    """Return whether the halves of the segments of some arm differ by more than chance."""
    for values in taken.halves.values():
        n = len(values)
        k = rank(n)[0] if n >= NEEDED else 0
        ordered = sorted(values)
        if k and (ordered[k - 1] > 0 or ordered[-k] < 0):
            return True
    return False
