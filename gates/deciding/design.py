"""How samples were taken in turn, as far as their interval depends on it."""

from dataclasses import dataclass

from gates.deciding.spending import alpha_of, looks_until, rank_at

LEAST_RESTARTS = 3


@dataclass(frozen=True)
class Design:
    """Pairs that were looked at while they came in; `most` in the last attempt, after `before` of earlier ones.

    `restarts` tells for each pair which start of the processes it came from.
    """

    most: int
    restarts: tuple[int, ...] = ()
    before: int = 0
    attempt: int = 1

    def alpha(self, alpha: float) -> float:
        """Return what the last attempt may spend of an error."""
        return alpha_of(self.attempt, alpha)

    def rank(self, n: int, alpha: float) -> int:
        """Return k: the interval from the k-th least to the k-th greatest of `n` values, or 0."""
        return rank_at(n, self.most, self.alpha(alpha), self.before)

    def blocks(self, values: list[float]) -> list[list[float]]:
        """Return the values of each start of the processes, without a last one of which there is less than half."""
        blocks: dict[int, list[float]] = {}
        for restart, value in zip(self.restarts, values, strict=True):
            blocks.setdefault(restart, []).append(value)
        found = list(blocks.values())
        if len(found) > 1 and 2 * len(found[-1]) < len(found[0]):
            found.pop()
        return found if len(found) >= LEAST_RESTARTS else []

    def look_level(self, alpha: float) -> float:
        """Return the level of an interval over restarts, so that all looks together keep the error."""
        return 1 - self.alpha(alpha) / len(looks_until(self.most))
