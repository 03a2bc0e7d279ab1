"""How often T035's criteria of time are decided on this machine, and equal and slowed arms beside them.

`python -m benchmarks.step_decided --runs 10` prints a line for each measurement and ends with 1 where one is open or
wrong. Each has a ledger of its own: no attempt counts for another.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from torch import Tensor

from examples.t035.one_step import make_step
from gates.evidence.measurements import counts_cpu
from gates.measuring import answers
from gates.measuring.bench import ArmFailed, launch
from gates.measuring.samples import Samples
from gates.measuring.session import Plan, measure
from gates.measuring.taken import MeasurementRun, Taken
from gates.model import Outcome
from gates.task.loading import load
from gates.task.measurement import Arm, Measurement
from gates.task.task import Measure

ROOT = Path(__file__).parents[1]
HERE = "benchmarks.step_decided:make"


def make(slower: float) -> Callable[[], Tensor]:
    """Return T035's bf16 step, made to take so many times its CPU time."""
    step = make_step("bf16", "cpu", 1, 64)

    def slowed() -> Tensor:
        begun = time.process_time()
        loss = step()
        until = begun + slower * (time.process_time() - begun)
        while time.process_time() < until:
            pass
        return loss

    return slowed


def rows() -> dict[str, tuple[Measurement, list[Measure], Outcome]]:
    """Return what is measured, what is asked of it, and what it must come to."""
    task = load(ROOT / "tasks" / "T035-training-mixed-precision.yaml", ROOT)
    own, gain = (next(one for one in task.measurements if one.id == name) for name in ("step", "gain"))
    limit = {"from": "step", "of": "step_cpu_time_s", "ratio": ["now", "base"], "at_most": 1.05, "on": "cpu"}
    two = {name: own.model_copy(update={"arms": _arms(slower)}) for name, slower in (("equal", 1.0), ("slowed", 1.1))}
    asked = [Measure.model_validate(limit)]
    return {
        "step": (own, list(task.measures_of("step")), Outcome.PASSED),
        "gain": (gain, list(task.measures_of("gain")), Outcome.PASSED),
        "equal": (two["equal"], asked, Outcome.PASSED),
        "slowed": (two["slowed"], asked, Outcome.FAILED),
    }


def _arms(slower: float) -> dict[str, Arm]:
    return {"now": Arm(call=HERE, args=(slower,)), "base": Arm(call=HERE, args=(1.0,))}


def decided(name: str, measurement: Measurement, asked: list[Measure], expected: Outcome) -> bool:
    """Measure once and print what came of it; return whether that is what it must be."""
    begun = time.monotonic()
    start = partial(launch, python=sys.executable, paths=[ROOT], threads=measurement.threads, device="cpu")
    arms = {arm: partial(start, what) for arm, what in measurement.arms.items()}

    def seen(samples: Samples, taken: Taken) -> MeasurementRun:
        return MeasurementRun(id="step", device="cpu", samples=samples, taken=taken)

    try:
        with tempfile.TemporaryDirectory() as logs:
            plan = Plan(measurement, arms, one_processor=counts_cpu(measurement, asked))
            done = measure(plan, Path(logs), lambda *now: answers.settled(asked, seen(*now)))
    except ArmFailed as error:
        print(f"| {name} | {error} |", flush=True)
        return False
    got, taken = answers.answered(asked[0], seen(*done)), done[1]
    why, took = got.problem or "-", f"{time.monotonic() - begun:.0f}"
    facts = (name, got.outcome, got.seen, taken.pairs, taken.starts, took, why)
    print(f"| {' | '.join(map(str, facts))} |", flush=True)
    return got.outcome is expected


def main() -> int:
    """Measure as often as is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--rows", nargs="*", choices=[*rows()], default=[*rows()])
    options = parser.parse_args()
    print("| Arms | Verdict | Ratio | pairs | starts | seconds | why open |\n|---|---|---|---|---|---|---|", flush=True)
    found = [decided(name, *rows()[name]) for name in options.rows for _ in range(options.runs)]
    print(f"\n{sum(found)} of {len(found)} came to what they must.")
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
