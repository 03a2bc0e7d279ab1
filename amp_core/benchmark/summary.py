"""What the samples come to, as text: medians by arm, and their interval beside the baseline."""

import statistics
from collections.abc import Iterator, Sequence

from amp_core.benchmark.arms import BASELINE
from amp_core.benchmark.interval import LEAST, difference, ratio
from amp_core.samples import Direction, Metric, Samples

SHOWN = {"s": (1e3, "ms"), "B": (2.0**-20, "MiB")}  # factor and name of the unit in the text


def summarise(samples: Samples) -> str:
    """Return medians by arm and, where an arm stands beside the baseline, their quotient or difference.

    A quotient above 1 is in the arm's favour: it takes less time or memory, or does more work in a second. Metrics
    whose samples are not paired are left out.
    """
    lines = [f"{samples.device.name} ({samples.device.type}), baseline {samples.settings['baseline']}"]
    paired = {name: metric for name, metric in samples.metrics.items() if metric.paired}
    for name, metric in paired.items():
        _, unit = SHOWN.get(metric.unit, (1.0, metric.unit))
        lines.append(f"{name} [{unit}]")
        lines += [f"  {row}" for row in _rows(metric)]
    return "\n".join(lines)


def _rows(metric: Metric) -> Iterator[str]:
    factor, _ = SHOWN.get(metric.unit, (1.0, metric.unit))
    for arm, values in metric.arms.items():
        yield f"{arm:<14} {factor * statistics.median(values):>12.5g}  {_beside_baseline(metric, arm)}".rstrip()


def _beside_baseline(metric: Metric, arm: str) -> str:
    values, baseline = metric.arms[arm], metric.arms.get(BASELINE)
    if arm == BASELINE or baseline is None or metric.direction is Direction.NONE:
        return ""
    if metric.unit in ("s", "B"):
        return f"{BASELINE} / {arm} {_quotient(baseline, values)}"
    if metric.unit == "1/s":
        return f"{arm} / {BASELINE} {_quotient(values, baseline)}"
    return f"{arm} - {BASELINE} {difference(values, baseline):+.2g}" if len(values) >= LEAST else ""


def _quotient(above: Sequence[float], below: Sequence[float]) -> str:
    if len(above) < LEAST:
        return f"{statistics.median(above) / statistics.median(below):.3f}"
    return f"{ratio(above, below):.3f}"
