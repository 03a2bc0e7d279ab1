"""Which line of the project a leak is laid to: the one that keeps it, or else the one that allocates it."""

from dataclasses import dataclass

from gates.evidence.leaking import Allocated, Holder, LeakRun
from gates.model import Location

PLAUSIBLE = 0.2  # of the growth: what a container holds more of is not always what leaks


@dataclass(frozen=True)
class Place:
    """What is known of where: a container that keeps it, a line that allocates it, both, or neither."""

    holder: Holder | None
    allocated: Allocated | None

    @property
    def location(self) -> Location | None:
        """Return the line to look at first."""
        kept = self.holder.location if self.holder else None
        return kept or (self.allocated.location if self.allocated else None)


def place_of(run: LeakRun, rung: str, growth: float) -> Place:
    """Return where a rung's growth is kept and allocated; `growth` is that of an epoch."""
    seen = "tensors" if rung.startswith("device") else rung
    allocated = next((each for each in run.allocated if each.rung == seen), None)
    fitting = [each for each in run.holders if _fits(each, seen, growth)]
    return Place(max(fitting, key=lambda each: each.location is not None, default=None), allocated)


def _fits(holder: Holder, rung: str, growth: float) -> bool:
    if rung == "graph":
        return holder.graphs > 0
    if rung == "tensors" and not holder.tensors:
        return False
    return holder.entry * holder.rate >= PLAUSIBLE * growth or (rung == "tensors" and holder.graphs > 0)


def said_of(place: Place) -> str:
    """Return in words what is known of where."""
    words = []
    if place.holder:
        owner = f"`{place.holder.owner}`" if place.holder.owner else f"a {place.holder.kind}"
        at = f" at {place.holder.location}" if place.holder.location else ""
        words.append(f"kept by {owner}, which gets {place.holder.rate:.3g} entries more each epoch{at}")
    if place.allocated:
        words.append(f"allocated at {place.allocated.location}")
    return ", ".join(words) or "no line of the project was found for it"
