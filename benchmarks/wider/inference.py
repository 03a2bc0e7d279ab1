"""The latency of one forward pass, by batch size: evaluation mode, inference mode, the arm's autocast."""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from amp_core.benchmark.arms import precision_of
from amp_core.benchmark.setup import BenchmarkFailed, Measured, Setup
from amp_core.benchmark.timing import collection_paused, latencies, order
from amp_core.benchmark.workload import Workload
from amp_core.model import GPT
from amp_core.precision import Precision
from amp_core.samples import Direction, Metric

BATCH_SIZES = (1, 8, 32)
WARMUP_FORWARDS = 3
PERCENTILES = (50, 90, 99)


class InferenceWorker:
    """A model that infers in one precision; it keeps its last output."""

    def __init__(self, model: GPT, tokens: Tensor, precision: Precision) -> None:
        self._model = model.eval()
        self._tokens = tokens
        self.precision = precision
        self.output: Tensor | None = None

    def forward(self) -> None:
        """Run one forward pass."""
        with self.precision.autocast():
            self.output = self._model(self._tokens)

    def latencies(self, count: int) -> tuple[float, ...]:
        """Return the seconds of each of `count` forward passes, after one that is discarded."""
        with torch.inference_mode(), self.precision.products():
            self.forward()
            return latencies(self.forward, count, self._tokens.device)


def measure_inference(setup: Setup) -> Measured:
    """Return every latency, and each round's median: those of a round belong together, single ones do not."""
    metrics: dict[str, Metric] = {}
    for size in BATCH_SIZES:
        rounds = _rounds(dataclasses.replace(setup.workload, batch_size=size), setup)
        every = {arm: tuple(time for times in found for time in times) for arm, found in rounds.items()}
        medians = {arm: tuple(percentile(times, 50) for times in found) for arm, found in rounds.items()}
        metrics[f"inference_latency_s_batch_{size}"] = Metric("s", Direction.LOWER, paired=False, arms=every)
        metrics[f"inference_p50_s_batch_{size}"] = Metric("s", Direction.LOWER, paired=True, arms=medians)
    return Measured(metrics, {"inference": _describe(setup)})


def percentile(values: Sequence[float], percent: float) -> float:
    """Return a percentile by the nearest rank: a value that occurred, with `percent` of all at or below it."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def summarise_latencies(metrics: Mapping[str, Metric]) -> str:
    """Return the percentiles of single latencies by arm, as text."""
    lines = []
    for name, metric in metrics.items():
        if not metric.paired:
            lines.append(f"{name} [ms]")
            for arm, values in metric.arms.items():
                found = "  ".join(f"p{percent} {1e3 * percentile(values, percent):.4g}" for percent in PERCENTILES)
                lines.append(f"  {arm:<14} {found}  (n={len(values)})")
    return "\n".join(lines)


def _describe(setup: Setup) -> str:
    clock = "CUDA events, one synchronize" if setup.device.type == "cuda" else "the monotonic clock"
    forwards = f"{setup.plan.inference_rounds} rounds of {setup.plan.inference_forwards} forward passes"
    return f"{forwards} an arm and batch size, {clock} a round, after one discarded pass; arms in turn"


def _rounds(workload: Workload, setup: Setup) -> dict[str, list[tuple[float, ...]]]:
    """Return the latencies of each round, by arm, the arms interleaved.

    Raises:
        BenchmarkFailed: an arm computed in another dtype than its precision says, or not finite numbers.
    """
    ((tokens,),) = workload.batches(setup.device, count=1)
    model = workload.build(setup.device)
    workers = {
        name: InferenceWorker(model, tokens[:, :-1], precision_of(name, setup.device.type)) for name in setup.precisions
    }
    for worker in workers.values():
        worker.latencies(WARMUP_FORWARDS)
        _refuse_other_work(worker)
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in workers}
    with collection_paused():
        for index in range(setup.plan.inference_rounds):
            for name in order(list(workers), index):
                found[name].append(workers[name].latencies(setup.plan.inference_forwards))
    return found


def _refuse_other_work(worker: InferenceWorker) -> None:
    output, precision = worker.output, worker.precision
    assert output is not None
    if output.dtype is not precision.compute_dtype:
        raise BenchmarkFailed(f"{precision.name} inference gave {output.dtype}, expected {precision.compute_dtype}")
    if not output.isfinite().all():
        raise BenchmarkFailed(f"{precision.name} inference gave numbers that are not finite: its times say nothing")
    worker.output = None  # up to gigabytes, which the other arms need
