"""A few training steps on the CPU, to be watched from outside while they run."""

from amp_core.tracking import StepRecord, WandbSink
from amp_core.trainer import TrainConfig, train


def rehearse(precision: str = "fp16", steps: int = 6, accumulate: int = 2) -> tuple[StepRecord, ...]:
    """Train the smoke model for a few steps, logged to Weights & Biases offline; return what is known of each step.

    Raises:
        ValueError: as `TrainConfig` and `resolve` do, for what does not exist.
    """
    config = TrainConfig(precision=precision, device="cpu", steps=steps, accumulate=accumulate, log_every=1)
    return tuple(train(config, [WandbSink("amp_core rehearsal")]).history)
