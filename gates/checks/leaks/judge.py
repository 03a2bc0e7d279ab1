"""The part of the performance gate on leaks: does memory go on growing from one epoch to the next?"""

from collections.abc import Iterator, Sequence

from gates.check import Said
from gates.checks.leaks.collect import METHOD, Drift, LeakRun, Leaks, Rung, Watched, kept, theil_sen
from gates.evidence._probes import Aspect, ProbeCheck, unknown
from gates.model import Location, Outcome, RuleText
from gates.report import Section
from gates.task.probes import Leak
from gates.words import shown, sparkline

PLAUSIBLE = 0.2  # of the growth: what a container holds more of is not always what leaks


RULE = RuleText(
    id="PF004",
    title="No memory leak",
    meaning="A callable runs once an epoch. It fails where device, tensor, graph or Python memory "
    "keeps growing above the tolerance, also in a longer run. Other growth is unknown.",
)
LIBRARY = (
    "Look for it with a profiler that sees the C library's calls, such as memray. For a buffer, ask for as many "
    "'epochs' as it takes to fill it in the first third."
)
MORE = "Ask for more 'epochs', or let caches fill in the first third of them."
LET_GO = (
    "Let go of it at the end of an epoch; of a tensor, keep its number (`.item()`) or at least no graph (`.detach()`). "
    "Of a buffer that will be full one day, ask for as many 'epochs' as that takes."
)
ORDER = ("device", "tensors", "graph", "python")
WORDS = {
    "tensors": "live tensors",
    "graph": "autograd graphs",
    "python": "what Python holds",
    "private": "the process's own memory",
}
FORMS = {
    "called": "it is called once an epoch",
    "returned": "what it returns is called once an epoch",
    "stepped": "what it returns makes a step each epoch",
}


def _said(leak: Leak, run: LeakRun) -> Said:
    last = run.last
    if not last.complete:
        told = f"{'it grew, and was run again for longer; then ' if run.longer else ''}{_why(last)}"
        return unknown(told, location=last.place)
    drifts = last.drifts(leak.tolerance_bytes)
    grown = [rung for rung in last.rungs if drifts[rung.name] is Drift.GROWS]
    exact = sorted((rung for rung in grown if rung.exact), key=lambda rung: ORDER.index(rung.name.split()[0]))
    if exact:
        return _leaks(leak, run, exact)
    if last.troubles or not {rung.name for rung in last.rungs} >= {"python", "private"}:
        why = "; ".join(last.troubles) or "what Python and the process hold cannot be read here"
        return unknown(f"not all was seen: {why}")
    if grown:
        why = (
            "nothing that Python or torch knows of: what only a library knows of, or a buffer that was set aside before"
        )
        return unknown(f"{_grew(grown)}, and {why} and is now filled", _grew(grown), remedy=LIBRARY)
    if unclear := [_words(rung) for rung in last.rungs if drifts[rung.name] is Drift.OPEN]:
        filled = "; ".join(f"{each.name} is filling ({each.size} of {each.most})" for each in last.filling)
        why = f"{last.epochs} epochs do not tell whether {' and '.join(unclear)} will go on growing"
        return unknown(f"{why}: {filled}" if filled else why, "not decided", remedy=MORE)
    grew = _grew(last.rungs)
    told = f"no memory keeps growing over {last.epochs} epochs: {grew}"
    return Said(Outcome.PASSED, told, grew, expected="no growth above the tolerance")


def _leaks(leak: Leak, run: LeakRun, exact: list[Rung]) -> Said:
    at, told = place_of(run, exact[0].name, theil_sen(kept(exact[0].values)).value)
    return Said(
        Outcome.FAILED,
        f"{_grew(exact)}, over {run.last.epochs} epochs; {told}",
        _grew(exact),
        location=at,
        expected=f"at most {shown(run.last.tolerance(exact[0], leak.tolerance_bytes), exact[0].unit)} an epoch",
        impact="A run that is long enough ends for want of memory.",
        remediation=LET_GO,
    )


def _why(watched: Watched) -> str:
    """Return why a run did not come to its end."""
    return f"{watched.problem} (after {watched.epochs} of {watched.asked} epochs)"


def _words(rung: Rung) -> str:
    return WORDS.get(rung.name, rung.name)


def _slope(rung: Rung) -> str:
    slope = theil_sen(kept(rung.values))
    value, low, high = (shown(each, rung.unit) for each in (slope.value, slope.low, slope.high))
    return f"{value} [{low}, {high}]"


def _grew(rungs: Sequence[Rung]) -> str:
    return "; ".join(f"{_words(rung)} by {_slope(rung)} an epoch" for rung in rungs)


def _page(seen: Sequence[tuple[Leak, LeakRun, Said]], not_run: str) -> Iterator[Section]:
    """Tell of each rung of each callable how it grew."""
    yield Section(
        title="Memory",
        text=not_run or f"{METHOD}, without the first 30 % of the epochs; exact rungs first.",
        facts=tuple((leak.name, FORMS.get(run.last.form, "did not run")) for leak, run, _ in seen),
        columns=("Outcome", "Rung", "Growth an epoch", "Tolerance", "Epochs", "Trend", "Line", "Call"),
        rows=tuple(row for each in seen for row in _rows(*each)),
    )


def _rows(leak: Leak, run: LeakRun, said: Said) -> Iterator[tuple[str, ...]]:
    last = run.last
    drifts, epochs = last.drifts(leak.tolerance_bytes), str(last.epochs)
    for rung in last.rungs:
        if len(rung.values) > 1:
            does, tolerance = drifts[rung.name], shown(last.tolerance(rung, leak.tolerance_bytes), rung.unit)
            name = rung.name if rung.exact else f"{rung.name} (not exact)"
            line = str(said.location or "-") if does is Drift.GROWS else "-"
            of = leak.name if rung is last.rungs[0] else ""
            yield does.value, name, _slope(rung), tolerance, epochs, sparkline(rung.values), line, of
    if not last.rungs:
        yield _why(last), "-", "-", "-", epochs, "-", "-", leak.name


def place_of(run: LeakRun, rung: str, growth: float) -> tuple[Location | None, str]:
    """Return the line where a rung's growth is kept, or else allocated, and both in words; `growth` is an epoch's."""
    fitting = [each for each in run.holders if each.graphs or (rung != "graph" and each.size >= PLAUSIBLE * growth)]
    holder = max(fitting, key=lambda each: each.location is not None, default=None)
    allocated = next(iter(run.allocated), None)
    words = []
    if holder:
        at = f" at {holder.location}" if holder.location else ""
        words.append(f"kept by a {holder.kind}, which gets {holder.rate:.3g} entries more each epoch{at}")
    if allocated:
        words.append(f"allocated at {allocated}")
    kept = holder.location if holder else None
    return kept or allocated, ", ".join(words) or "no line of the project was found for it"


CHECK = ProbeCheck[Leak, LeakRun](
    name="leaks",
    order=30,
    prefix="leak",
    rule=RULE,
    evidence=Leaks,
    aspects=(
        Aspect(lambda leak: f"No memory leak in {leak.name}", "no memory leak", lambda leak, run: [_said(leak, run)]),
    ),
    page=_page,
    doubt="not known whether it leaks",
    remedy="Make the callable run to its end, epoch after epoch.",
    suffix=lambda run: "-longer" if run.longer else "",
).check()
