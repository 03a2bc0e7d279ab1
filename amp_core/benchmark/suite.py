"""The whole benchmark: its parts one after the other, and what they found as one set of samples."""

import platform
from collections.abc import Callable, Mapping

import torch

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


def environment() -> dict[str, str]:
    """Return what a reader needs to know of the machine besides the device."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(),
        "threads": str(torch.get_num_threads()),
        "cuda": torch.version.cuda or "none",
        "cudnn": str(torch.backends.cudnn.version() or "none"),  # type: ignore[no-untyped-call]  # as torch has it
    }
