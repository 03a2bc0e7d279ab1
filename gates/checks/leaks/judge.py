"""The part of the performance gate on leaks: does memory go on growing from one epoch to the next?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gates.check import Said
from gates.checks.leaks.collect import METHOD, Allocated, Drift, Holder, LeakRun, Leaks, Rung, Watched, kept, theil_sen
from gates.evidence._probes import ProbeCheck, unknown
from gates.model import Location, Outcome, RuleText
from gates.report import Section
from gates.task.probes import Leak
from gates.words import shown, sparkline

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


RULE = RuleText(
    id="PF004",
    title="No memory leak",
    meaning="A callable runs once an epoch. It fails where device, tensor, graph or Python memory "
    "keeps growing above the tolerance, also in a longer run. Other growth is unknown.",
)
DOUBT = "not known whether it leaks"
REMEDY = "Make the callable run to its end, epoch after epoch."
ORDER = ("device", "tensors", "graph", "python")
WORDS = {
    "tensors": "live tensors", "graph": "autograd graphs", "python": "what Python holds",
    "heap": "the C library's heap", "private": "the process's own memory",
}  # fmt: skip
FORMS = {
    "called": "it is called once an epoch",
    "returned": "what it returns is called once an epoch",
    "stepped": "what it returns makes a step each epoch",
}
IMPACT = "A run that is long enough ends for want of memory."


def _said(leak: Leak, run: LeakRun) -> Said:
    last = run.last
    if not last.complete:
        told = f"{'it grew, and was run again for longer; then ' if run.longer else ''}{_why(last)}"
        return _unknown(told, location=last.place)
    drifts = last.drifts(leak.tolerance_bytes)
    grown = [rung for rung in last.rungs if drifts[rung.name] is Drift.GROWS]
    exact = sorted((rung for rung in grown if rung.exact), key=lambda rung: ORDER.index(rung.name.split()[0]))
    if exact:
        return _leaks(leak, run, exact)
    unclear = [*(_words(rung) for rung in last.rungs if drifts[rung.name] is Drift.OPEN)]
    if last.troubles or not {rung.name for rung in last.rungs} >= {"python", "private"}:
        why = "; ".join(last.troubles) or "what Python and the process hold cannot be read here"
        return _unknown(f"not all was seen: {why}")
    if grown:
        return _unknown(
            f"{_grew(grown)}, and nothing that Python or torch knows of: what only a library knows of, or "
            "a buffer that was set aside before and is now filled",
            actual=_grew(grown),
            remedy="Look for it with a profiler that sees the C library's calls, such as memray. For a "
            "buffer, ask for as many 'epochs' as it takes to fill it in the first third.",
        )
    if unclear:
        filled = [f"{each.name} is filling ({each.size} of {each.most})" for each in last.filling]
        return _unknown(
            f"{last.epochs} epochs do not tell whether {' and '.join(unclear)} will go on growing"
            + (f": {'; '.join(filled)}" if filled else ""),
            actual="not decided",
            remedy="Ask for more 'epochs', or let caches fill in the first third of them.",
        )
    return Said(
        Outcome.PASSED, f"no memory keeps growing over {last.epochs} epochs: {_grew(last.rungs)}",
        _grew(last.rungs), expected="no growth above the tolerance",
    )  # fmt: skip


def _leaks(leak: Leak, run: LeakRun, exact: list[Rung]) -> Said:
    place = place_of(run, exact[0].name, theil_sen(kept(exact[0].values)).value)
    return Said(
        Outcome.FAILED, f"{_grew(exact)}, over {run.last.epochs} epochs; {said_of(place)}",
        _grew(exact), location=place.location,
        expected=f"at most {shown(run.last.tolerance(exact[0], leak.tolerance_bytes), exact[0].unit)} an epoch",
        impact=IMPACT, remediation="Let go of it at the end of an epoch; of a tensor, keep its number (`.item()`) "
        "or at least no graph (`.detach()`). Of a buffer that will be full one day, ask for as many 'epochs' as that "
        "takes.",
    )  # fmt: skip


def _unknown(why: str, *, actual: str = "not seen", location: Location | None = None, remedy: str = REMEDY) -> Said:
    return unknown(f"{DOUBT}: {why}", remedy=remedy, actual=actual, location=location)


def _why(watched: Watched) -> str:
    """Return why a run did not come to its end."""
    return f"{watched.problem} (after {watched.epochs} of {watched.asked} epochs)"


def _words(rung: Rung) -> str:
    return WORDS.get(rung.name, rung.name)


def _grew(rungs: Sequence[Rung]) -> str:
    parts = []
    for rung in rungs:
        slope = theil_sen(kept(rung.values))
        low, high = shown(slope.low, rung.unit), shown(slope.high, rung.unit)
        parts.append(f"{_words(rung)} by {shown(slope.value, rung.unit)} [{low}, {high}] an epoch")
    return "; ".join(parts)


def _section(seen: tuple[tuple[Leak, LeakRun], ...], not_run: str) -> Section:
    """Tell of each rung of each callable how it grew."""
    return Section(
        title="Memory",
        text=not_run or f"{METHOD}, without the first 30 % of the epochs; exact rungs first.",
        facts=tuple((leak.name, FORMS.get(run.last.form, "did not run")) for leak, run in seen),
        columns=("Outcome", "Rung", "Growth an epoch", "Tolerance", "Epochs", "Course", "Line", "Call"),
        rows=tuple(row for each in seen for row in _rows(*each)),
    )


def _rows(leak: Leak, run: LeakRun) -> Iterator[tuple[str, ...]]:
    last = run.last
    drifts = last.drifts(leak.tolerance_bytes)
    for rung in last.rungs:
        if len(rung.values) < 2:
            continue
        slope = theil_sen(kept(rung.values))
        grows = drifts[rung.name] is Drift.GROWS
        place = place_of(run, rung.name, slope.value) if grows else None
        yield (
            drifts[rung.name].value, rung.name if rung.exact else f"{rung.name} (vague)",
            f"{shown(slope.value, rung.unit)} [{shown(slope.low, rung.unit)}, {shown(slope.high, rung.unit)}]",
            shown(last.tolerance(rung, leak.tolerance_bytes), rung.unit), str(last.epochs), sparkline(rung.values),
            str(place.location) if place and place.location else "-", leak.name if rung is last.rungs[0] else "",
        )  # fmt: skip
    if not last.rungs:
        yield _why(last), "-", "-", "-", str(last.epochs), "-", "-", leak.name


def place_of(run: LeakRun, rung: str, growth: float) -> Place:
    """Return where a rung's growth is kept and allocated; `growth` is that of an epoch."""
    seen = "tensors" if rung.startswith("device") else rung
    known = seen if seen == "graph" else "python"  # of a tensor, too, Python holds a small part
    allocated = next((each for each in run.allocated if each.rung == known), None)
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
        at = f" at {place.holder.location}" if place.holder.location else ""
        words.append(f"kept by a {place.holder.kind}, which gets {place.holder.rate:.3g} entries more each epoch{at}")
    if place.allocated:
        words.append(f"allocated at {place.allocated.location}")
    return ", ".join(words) or "no line of the project was found for it"


CHECK = ProbeCheck(
    name="leaks",
    order=30,
    prefix="leak",
    rule=RULE,
    evidence=Leaks,
    title=lambda leak: f"No memory leak in {leak.name}",
    promise="no memory leak",
    judge=_said,
    section=_section,
    doubt=DOUBT,
    remedy=REMEDY,
    suffix=lambda run: "-longer" if run.longer else "",
).check()
