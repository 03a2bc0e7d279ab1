"""Rules that other tools decide by, on samples of one arm taken after those of the other, as those tools take them."""

import math
import statistics
from collections.abc import Sequence

from gates.measuring.interval import quantile

BLOCK, PASS, OPEN = "BLOCK", "PASS", "INCONCLUSIVE"


def mean_interval(a: Sequence[float], b: Sequence[float], limit: float) -> str:
    """Decide by Welch's 95 % interval of the difference of mean logarithms."""
    x, y = [math.log(v) for v in a], [math.log(v) for v in b]
    parts = [statistics.variance(v) / len(v) for v in (x, y)]
    freedom = sum(parts) ** 2 / sum(part**2 / (len(v) - 1) for part, v in zip(parts, (x, y), strict=True))
    reach = quantile(0.95, max(1, int(freedom))) * math.sqrt(sum(parts))
    middle = statistics.fmean(y) - statistics.fmean(x)
    if middle - reach > math.log(limit):
        return BLOCK
    return PASS if middle + reach <= math.log(limit) else OPEN


def asv(a: Sequence[float], b: Sequence[float], limit: float) -> str:
    """Decide as `asv continuous` does: Mann and Whitney's test at 0.2 %, and the ratio of medians beyond the factor."""
    ranked = sorted([(v, 0) for v in a] + [(v, 1) for v in b])
    sum_a = sum(i + 1 for i, (_, of) in enumerate(ranked) if of == 0)
    n, m = len(a), len(b)
    u = sum_a - n * (n + 1) / 2
    z = (u - n * m / 2) / math.sqrt(n * m * (n + m + 1) / 12)
    different = 2 * (1 - statistics.NormalDist().cdf(abs(z))) < 0.002
    return BLOCK if different and statistics.median(b) / statistics.median(a) > limit else PASS


def pyperf(a: Sequence[float], b: Sequence[float], limit: float) -> str:
    """Decide as `pyperf compare_to` does: Student's pooled test at 95 %, and the ratio of means beyond the limit."""
    n, m = len(a), len(b)
    pooled = ((n - 1) * statistics.variance(a) + (m - 1) * statistics.variance(b)) / (n + m - 2)
    t = abs(statistics.fmean(a) - statistics.fmean(b)) / math.sqrt(pooled * (1 / n + 1 / m))
    significant = t > quantile(0.95, n + m - 2)
    return BLOCK if significant and statistics.fmean(b) / statistics.fmean(a) > limit else PASS


SEQUENTIAL = {"mean, 95 % interval": mean_interval, "asv": asv, "pyperf": pyperf}
