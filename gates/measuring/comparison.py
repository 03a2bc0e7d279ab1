"""A regression as measures: the candidate over the baseline, with the limit that blocks and the one that warns."""

from gates.task.measurement import Measurement
from gates.task.regression import Regression
from gates.task.task import Measure

BASELINE, CANDIDATE = "baseline", "candidate"


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


def arm_of(regression: Regression, measurement: Measurement) -> str:
    """Return the arm that is compared: the one named, or the only one."""
    return regression.arm or next(iter(measurement.arms), "")


def device_of(regression: Regression, measurement: Measurement) -> str:
    """Return the device that the arm is told; one that is told none runs on any."""
    if not measurement.by_device:
        return "any"
    return "cpu" if regression.on == "any" else regression.on
