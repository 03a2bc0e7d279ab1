"""What compares an arm at the base revision with the same arm here: regressions, and measures that name both."""

from collections.abc import Iterator
from dataclasses import dataclass

from gates.task.measurement import Measurement, Regression
from gates.task.task import Measure, Task
from gates.task.types import Command

BASELINE, CANDIDATE = "baseline", "candidate"
SIDES = {"base": BASELINE, "now": CANDIDATE}


@dataclass(frozen=True)
class Comparison:
    """An arm of a measurement on both sides, and what its samples are to answer."""

    from_: str
    of: str
    arm: str | None
    on: str
    build: Command | None
    measures: tuple[Measure, ...]


def comparisons_of(task: Task) -> tuple[Comparison, ...]:
    """Return all that a task compares with the base."""
    return (*map(of_regression, task.regressions), *_of_measures(task))


def of_regression(one: Regression) -> Comparison:
    """Return a regression as the comparison that it asks for."""
    return Comparison(one.from_, one.of, one.arm, one.on, one.build, limits_of(one))


def of_measure(one: Measure) -> Comparison:
    """Return a measure of the arms `base` and `now` as the comparison that it asks for."""
    return Comparison(one.from_, one.of, one.arm, one.on, None, (by_sides(one),))


def _of_measures(task: Task) -> Iterator[Comparison]:
    yield from (of_measure(m) for criterion in task.criteria for m in criterion.measures if m.against_base)


def by_sides(measure: Measure) -> Measure:
    """Return a measure with its arms named as the samples of a comparison name them."""
    return measure.model_copy(update={measure.kind: tuple(SIDES[arm] for arm in measure.arms)})


def limits_of(regression: Regression) -> tuple[Measure, Measure]:
    """Return the measure that blocks and the one that warns; of a rate, the baseline is over the candidate."""
    rate = regression.of.endswith("_per_s")
    arms = (BASELINE, CANDIDATE) if rate else (CANDIDATE, BASELINE)
    block, warn = (
        Measure.model_validate(
            {"from": regression.from_, "ratio": arms, "of": regression.of, "at_most": 1 + share, "on": regression.on,
             "line": regression.line}
        )
        for share in (regression.block_at, regression.warns_at)
    )  # fmt: skip
    return block, warn


def arm_of(one: Comparison, measurement: Measurement) -> str:
    """Return the arm that is compared: the one named, or the only one."""
    return one.arm or next(iter(measurement.arms), "")


def device_of(one: Comparison, measurement: Measurement) -> str:
    """Return the device that the arm is told; one that is told none runs on any."""
    if not measurement.by_device:
        return "any"
    return "cpu" if one.on == "any" else one.on
