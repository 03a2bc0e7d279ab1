"""Verdicts on arms that run: equal ones, slowed ones, and ones that keep a promise."""

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.deciding.load import load
from gates.measuring import answers
from gates.measuring.bench import ArmFailed, launch
from gates.measuring.samples import Samples
from gates.measuring.session import Plan, measure
from gates.measuring.taken import MeasurementRun, Taken
from gates.model import Model, Outcome
from gates.task.measurement import Arm, Measurement
from gates.task.task import Measure

ROOT = Path(__file__).resolve().parents[2]
BUDGET_S = 15.0


class Tally(Model):
    """How many comparisons came to which verdict, what they used, and why those that are open are."""

    passed: int
    blocked: int
    open: int
    pairs: float
    seconds: float
    reasons: dict[str, int]

    @property
    def runs(self) -> int:
        """Return how many comparisons there were."""
        return self.passed + self.blocked + self.open


def promise(limit: float) -> Measure:
    """Return the criterion that the candidate is at least so many times as fast."""
    return Measure.model_validate({"from": "x", "of": "step_time_s", "ratio": ["base", "cand"], "at_least": limit})


def plan_of(factor: float, *, most: int = 256, budget_s: float = BUDGET_S) -> Plan:
    """Return the plan of comparing an arm with one that does a multiple of its work."""

    arms = {
        name: Arm(call="benchmarks.deciding.arms:make", args=(of,)) for name, of in (("base", 1.0), ("cand", factor))
    }
    ways = {name: partial(launch, arm, python=sys.executable, paths=[ROOT], threads=1) for name, arm in arms.items()}
    return Plan(Measurement(id="live", arms=arms, pairs=most, budget_s=budget_s, clock="wall"), ways)


def compare_once(factor: float, asked: Measure, folder: Path) -> tuple[Outcome, float, str]:
    """Measure and decide once; return the outcome, the whole pairs, and why it is open where it is."""

    def seen(samples: Samples, taken: Taken) -> MeasurementRun:
        return MeasurementRun(id="live", device="any", samples=samples, taken=taken)

    try:
        samples, taken = measure(plan_of(factor), folder, lambda *now: answers.settled([asked], seen(*now)))
    except ArmFailed as error:
        return Outcome.UNKNOWN, 0, str(error)
    got = answers.answered(asked, seen(samples, taken))
    why = "the machine was unfit" if got.rule == answers.FITNESS else "the interval holds the limit"
    return got.outcome, taken.pairs / taken.split, why


def run(regime: str, factor: float, asked: Measure, runs: int, say: Callable[[str], None]) -> Tally:
    """Compare again and again under a load."""
    begun, outcomes, pairs, reasons = time.monotonic(), Counter[Outcome](), 0.0, Counter[str]()
    with load(regime), tempfile.TemporaryDirectory() as folder:
        once = partial(compare_once, factor, asked, Path(folder))
        for number in range(runs):
            outcome, used, why = once()
            outcomes[outcome] += 1
            pairs += used
            reasons[why] += outcome is Outcome.UNKNOWN
            if number % 20 == 19:
                say(f"{regime} x{factor:g}: {number + 1} of {runs}, {dict(outcomes)}")
    return Tally(
        passed=outcomes[Outcome.PASSED], blocked=outcomes[Outcome.FAILED], open=outcomes[Outcome.UNKNOWN],
        pairs=pairs / runs, seconds=(time.monotonic() - begun) / runs,
        reasons={why: count for why, count in reasons.items() if count},
    )  # fmt: skip
