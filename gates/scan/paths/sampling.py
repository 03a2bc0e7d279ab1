"""A few of many paths, for functions that have more of them than are walked: each is one that the program can take."""

from collections.abc import Iterable

from gates.scan.paths.state import State

MOST = 16  # half as many in each block as in the one around it
MOST_WORDS = 16
SPAN, SCATTER = 2**32, 2654435761  # Knuth's multiplicative hashing: 2**32 over the golden ratio


def sampled(paths: Iterable[State], depth: int) -> list[State]:
    """Return a few paths, of those that go on and of those that ended, so many `depth` blocks down."""
    paths = list(paths)
    going, ended = [p for p in paths if not p.ended], [p for p in paths if p.ended]
    most = max(1, MOST >> depth)
    return [*_unlike(going, most), *_unlike(ended, most)]


def _unlike(paths: list[State], most: int) -> list[State]:
    """Return some from all over: what follows each other came out of the same branches, what is so far apart, too."""
    if len(paths) <= most:
        return paths
    if most == 1:
        return [max(paths, key=lambda path: max((word.length for word in path.words), default=0))]
    chosen = sorted(range(len(paths)), key=lambda at: at * SCATTER % SPAN)
    return [paths[at] for at in sorted(chosen[:most])]
