"""How far the step that runs is: what goes on puts its words here, and who shows a run asks for them."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

so_far: Callable[[], str] = str  # nothing is known of it


def counting(journal: Path, taken: int) -> Callable[[], str]:
    """Return what says how many tests have begun as the journal of their run tells, `taken` ones aside."""
    counts, read = dict.fromkeys((b"began", b"planned", b"asked"), 0), 0

    def how_far() -> str:
        nonlocal read
        with suppress(OSError), journal.open("rb") as file:
            file.seek(read)
            lines = file.read().rpartition(b"\n")[0]
            read += len(lines)
            counts.update({event: count + lines.count(b'"event": "%s"' % event) for event, count in counts.items()})
        began, planned, plans = counts.values()  # each worker plans all of them
        return f"test {began} of {planned // plans - taken}" if began else ""

    return how_far
