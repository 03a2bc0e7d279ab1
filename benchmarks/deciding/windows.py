"""Windows of two equal arms that were timed for long, each judged as a measurement of its own."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from gates.measuring import answers
from gates.measuring.interval import looks_until
from gates.measuring.samples import Samples
from gates.measuring.session import is_copy_due
from gates.measuring.taken import MeasurementRun, Taken
from gates.model import Model, Outcome
from gates.task.task import Measure

MOST = 256
BASELINE, CANDIDATE = "base", "cand"


class Trace(Model):
    """Two equal arms, `base` and `cand`, timed in turn for long."""

    samples: Samples
    taken: Taken

    @property
    def most(self) -> int:
        """Return how many pairs of it are a measurement."""
        return MOST * self.taken.split


@dataclass(frozen=True)
class Window:
    """Pairs of a trace that follow one another, the candidate slowed down by a factor."""

    trace: Trace
    first: int
    factor: float = 1.0
    swapped: bool = False

    @property
    def looks(self) -> tuple[int, ...]:
        """Return after how many pairs a measurement would look; the last one is its end."""
        return looks_until(self.trace.most)

    def source(self, pairs: int) -> MeasurementRun:
        """Return the first pairs as a measurement would hand them over."""
        end = self.first + pairs
        metric, taken = self.trace.samples.metrics["step_time_s"], self.trace.taken
        names = (CANDIDATE, BASELINE) if self.swapped else (BASELINE, CANDIDATE)
        a, b = (metric.arms[name][self.first : end] for name in names)
        arms = {BASELINE: a, CANDIDATE: tuple(value * self.factor for value in b)}
        before, until = (2 * sum(is_copy_due(n, 2, taken.split) for n in range(1, at + 1)) for at in (self.first, end))
        copies = slice(before, until)  # once in either order
        cut = {
            name: {arm: values[self.first : end] for arm, values in getattr(taken, name).items()}
            for name in ("stretch", "switches", "whole")
        }
        changed = metric.model_copy(update={"arms": arms})
        cut_short = taken.model_copy(update={
            **cut, "pairs": pairs, "most": self.trace.most, "restarts": taken.restarts[self.first : end],
            "planned_starts": 0,  # later starts of a long trace last longer than those of a measurement
            "copies": taken.copies[copies], "cpu_copies": taken.cpu_copies[copies],
        })  # fmt: skip
        seen = self.trace.samples.model_copy(update={"metrics": {"step_time_s": changed}})
        return MeasurementRun(id="trace", device="any", samples=seen, taken=cut_short)


def question(limit: float) -> Measure:
    """Return the criterion that the candidate takes at most so many times as long as the baseline."""
    return Measure.model_validate(
        {"from": "trace", "of": "step_time_s", "ratio": [CANDIDATE, BASELINE], "at_most": limit}
    )


def windows(trace: Trace, count: int, factor: float, *, seed: int = 7) -> Iterator[Window]:
    """Yield windows that begin where processes were started afresh, in either order of the arms."""
    source = random.Random(seed)  # noqa: S311  # no secret
    restarts = trace.taken.restarts
    starts = [i for i in range(len(restarts) - trace.most + 1) if i == 0 or restarts[i] != restarts[i - 1]]
    for _ in range(count if starts else 0):
        yield Window(trace, source.choice(starts), factor, source.random() < 0.5)


def adaptive(window: Window, limit: float) -> tuple[Outcome, int]:
    """Decide as a measurement does, looking while the pairs come in; return the outcome and the pairs."""
    asked = question(limit)
    for pairs in window.looks:
        outcome = answers.outcome(asked, window.source(pairs))
        if outcome is not Outcome.UNKNOWN:
            return outcome, pairs
    return Outcome.UNKNOWN, window.looks[-1]
