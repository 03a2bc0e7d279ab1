"""Verdicts on made-up noise of which everything is known: is the error what it is said to be, even at the limit?"""

import math
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.deciding.windows import BASELINE, CANDIDATE, MOST, Trace, Window, adaptive
from gates.measuring.machine import Machine
from gates.measuring.samples import Device, Metric, Samples
from gates.measuring.taken import Taken
from gates.model import Outcome

BLOCK_PAIRS = 4
CALM = Machine(cores=2)


@dataclass(frozen=True)
class Noise:
    """Noise of a segment, of a start of the processes, and of bursts that hit single segments."""

    segment: float
    start: float
    bursts: float = 0.0
    drift: float = 0.0


NOISES = {
    "quiet": Noise(0.005, 0.003),
    "noisy": Noise(0.03, 0.005),
    "starts differ": Noise(0.005, 0.02),
    "bursts": Noise(0.01, 0.005, bursts=0.15),
    "drift": Noise(0.01, 0.005, drift=0.3),
}


def trace_of(noise: Noise, source: random.Random) -> Trace:
    """Make a trace of two arms that are truly equal."""
    starts = [i // BLOCK_PAIRS if i < 24 else 6 + (i - 24) // (2 * BLOCK_PAIRS) for i in range(MOST)]
    arms = {arm: tuple(_times(noise, starts, source)) for arm in (BASELINE, CANDIDATE)}
    metric = Metric(unit="s", direction="lower", paired=True, arms=arms)
    samples = Samples(schema="gates.samples/1", device=Device(type="cpu", name="-"), metrics={"step_time_s": metric})
    taken = Taken(
        baseline=BASELINE, clock="wall", threads=1, most=MOST, budget_s=1, ended="all pairs", pairs=MOST,
        restarts=tuple(starts), before=CALM, after=CALM, measured_s=1,
    )  # fmt: skip
    return Trace(samples=samples, taken=taken)


def _times(noise: Noise, starts: list[int], source: random.Random) -> Iterator[float]:
    shifts = [source.gauss(0, noise.start) for _ in range(max(starts) + 1)]
    for i, start in enumerate(starts):
        burst = source.uniform(0.2, 1.0) if source.random() < noise.bursts else 0.0
        yield math.exp(source.gauss(0, noise.segment) + shifts[start] + burst + noise.drift * i / MOST)


def table(noise: Noise, factor: float, limit: float, trials: int, seed: int = 11) -> tuple[Counter[Outcome], float]:
    """Return how often it came to which outcome, and the pairs that it used on average."""
    source = random.Random(seed)  # noqa: S311  # no secret
    ended = [adaptive(Window(trace_of(noise, source), 0, factor), limit) for _ in range(trials)]
    return Counter(outcome for outcome, _ in ended), sum(pairs for _, pairs in ended) / trials
