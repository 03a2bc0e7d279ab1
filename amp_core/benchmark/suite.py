"""The whole benchmark: its parts one after the other, and what they found as one set of samples."""

from collections.abc import Callable, Mapping

from amp_core.benchmark.markdown import environment
from amp_core.benchmark.memory import measure_memory
from amp_core.benchmark.quality import measure_quality
from amp_core.benchmark.setup import Measured, Setup
from amp_core.benchmark.steps import measure_steps
from amp_core.benchmark.timing import threads
from amp_core.samples import Metric, Samples

PARTS: Mapping[str, Callable[[Setup], Measured]] = {
    "steps": measure_steps,
    "memory": measure_memory,
    "quality": measure_quality,
}


def run(setup: Setup, parts: Mapping[str, Callable[[Setup], Measured]] = PARTS) -> Samples:
    """Measure the parts, one after the other.

    Raises:
        BenchmarkFailed: an arm did other work than the others, or diverged.
        NothingLearned: the trained models are no better than chance.
    """
    metrics: dict[str, Metric] = {}
    settings = setup.settings()
    with threads(setup.plan.threads):
        for measure in parts.values():
            found = measure(setup)
            metrics |= found.metrics
            settings |= found.settings
        return Samples(setup.facts, environment(), settings, setup.describe_timing(), metrics)
