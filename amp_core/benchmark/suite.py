"""The whole benchmark: its parts one after the other, and what they found as one set of samples."""

from collections.abc import Callable, Mapping, Sequence

from amp_core.benchmark.inference import measure_inference
from amp_core.benchmark.markdown import environment
from amp_core.benchmark.memory import measure_memory
from amp_core.benchmark.quality import measure_quality
from amp_core.benchmark.scaling import measure_scaling
from amp_core.benchmark.setup import Measured, Setup
from amp_core.benchmark.steps import measure_steps
from amp_core.benchmark.timing import threads
from amp_core.samples import Metric, Samples

PARTS: Mapping[str, Callable[[Setup], Measured]] = {
    "steps": measure_steps,
    "memory": measure_memory,
    "quality": measure_quality,
    "inference": measure_inference,
    "scaling": measure_scaling,
}


def run(setup: Setup, parts: Sequence[str] = tuple(PARTS)) -> Samples:
    """Measure the named parts.

    Raises:
        BenchmarkFailed: an arm did other work than the others, or diverged.
        NothingLearned: the trained models are no better than chance.
    """
    metrics: dict[str, Metric] = {}
    settings = setup.settings()
    with threads(setup.plan.threads):
        for name in parts:
            found = PARTS[name](setup)
            metrics |= found.metrics
            settings |= found.settings
        return Samples(setup.facts, environment(), settings, setup.describe_timing(), metrics)
