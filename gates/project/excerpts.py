"""Lines of the project around the places at which something failed."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from gates.model import Finding, Location, Outcome
from gates.report import Excerpt

AROUND = 2
MOST = 20
MOST_BYTES = 1024 * 1024


def excerpts(findings: Iterable[Finding], root: Path) -> tuple[Excerpt, ...]:
    """Return five lines of code around each place at which something failed, each place once."""
    places = dict.fromkeys(
        f.location for f in findings if f.outcome is Outcome.FAILED and f.location and f.location.path.endswith(".py")
    )
    return tuple(found for place in list(places)[:MOST] for found in _around(place, root))


def _around(place: Location, root: Path) -> Iterator[Excerpt]:
    path = root / place.path
    if place.line is None or not path.is_file() or path.stat().st_size > MOST_BYTES:
        return
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    first = max(1, place.line - AROUND)
    shown = lines[first - 1 : place.line + AROUND]
    if shown:
        numbered = (
            f"{'>' if number == place.line else ' '} {number:4} {line}" for number, line in enumerate(shown, first)
        )
        yield Excerpt(location=place, first_line=first, text="\n".join(numbered))
