"""How samples were taken in turn, as far as their interval depends on it."""

import math
from dataclasses import dataclass

from gates.measuring.deciding.spending import alpha_of, looks_until, rank_at

LEAST_RESTARTS, FEW_RESTARTS, MANY_RESTARTS = 3, 5, 8
POCOCK = 0.76


@dataclass(frozen=True)
class Design:
    """Pairs that were looked at while they came in; `most` in the last attempt, after `before` of earlier ones.

    `restarts` tells for each pair which start of the processes it came from, `split` into how many shorter ones each
    pair was split.
    """

    most: int
    restarts: tuple[int, ...] = ()
    before: int = 0
    attempt: int = 1
    split: int = 1

    def alpha(self, alpha: float) -> float:
        """Return what the last attempt may spend of an error."""
        return alpha_of(self.attempt, alpha)

    def rank(self, n: int, alpha: float) -> int:
        """Return k: the interval from the k-th least to the k-th greatest of `n` values, or 0."""
        return rank_at(n, self.most, self.alpha(alpha), self.before, self.split)

    def blocks(self, values: list[float]) -> list[list[float]]:
        """Return the values of each start of the processes, without a last one of which there is less than half.

        Where there are many starts, short ones that follow one another are put together: the median of four values is
        moved by two that were disturbed, that of eight by four.
        """
        blocks: dict[int, list[float]] = {}
        for restart, value in zip(self.restarts, values, strict=True):
            blocks.setdefault(restart, []).append(value)
        found = list(blocks.values())
        if len(found) > 1 and 2 * len(found[-1]) < len(found[0]):
            found.pop()
        return _joined(found) if len(found) >= LEAST_RESTARTS else []

    def look_level(self, alpha: float) -> float:
        """Return the level of an interval over restarts, the same at each look, so that all together keep the error.

        Pocock's (1977) for one to five looks lie a little above, as these looks share their samples.
        """
        return 1 - self.alpha(alpha) * math.pow(len(looks_until(self.most, self.split)), -POCOCK)


def _joined(blocks: list[list[float]]) -> list[list[float]]:
    """Return as many starts together as make the longest one; none are where there are few."""
    longest = max(map(len, blocks))
    joined: list[list[float]] = [[]]
    for block in blocks:
        joined = [*joined, block] if len(joined[-1]) >= longest else [*joined[:-1], joined[-1] + block]
    if len(joined) > 1 and 2 * len(joined[-1]) < longest:
        joined.pop()
    return joined if len(blocks) >= MANY_RESTARTS and len(joined) >= FEW_RESTARTS else blocks
