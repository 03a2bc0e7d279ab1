"""The part of the performance gate on concurrency: does it come to the same at once as it does alone?"""

from gates.check import Said
from gates.checks.concurrency.collect import Concurrency, Differed, Together
from gates.evidence._probes import ProbeCheck, unknown
from gates.model import Location, Outcome, RuleText
from gates.report import Section
from gates.task.probes import Concurrent

RULE = RuleText(
    id="PF006",
    title="The same result concurrently as alone",
    meaning="A callable runs alone, then in several threads. Another result, an error or "
    "a deadlock fails. Only rounds that overlapped count.",
)
DOUBT = "not known whether it comes to the same"
REMEDY = "Make it run to its end, alone and concurrently, to the same result each time."
IMPACT = "What runs beside others loses updates, or computes with the state of another; now and then only."
REMEDIATION = "Give each its own state, or hold one lock from the read to the write."


def _said(one: Concurrent, seen: Together) -> Said:
    """Say what was seen: what was provoked fails, whatever else could not be seen."""
    if seen.stood and not seen.slow:
        return _stands(one, seen)
    differed = [each for each in seen.differed if each.error or not seen.unclear]
    if differed:
        return _differs(one, seen, differed)
    if seen.problem or seen.unclear:
        return _unknown(seen.problem or seen.unclear, location=seen.place)
    if seen.stood:
        return _unknown(f"concurrently it did not come to its end; it was at {_where(seen)}", location=_first(seen))
    if not seen.complete:
        return _unknown("it was not done to its end")
    asked = f"fewer than {one.failure_rate:.3g} of the rounds fail"
    if seen.bound is None:
        return _unknown(f"the {one.count} never met in {seen.rounds} rounds")
    if seen.bound > one.failure_rate * (1 + 1e-9):
        return _unknown(
            f"no failure in {seen.met} rounds shows only that fewer than {seen.bound:.2g} fail, asked is "
            f"{one.failure_rate:.3g}",
            actual=f"fewer than {seen.bound:.2g}",
            remedy="Give it a larger 'budget_s', or less to do.",
        )
    return Said(Outcome.PASSED, _passed(one, seen), f"fewer than {seen.bound:.2g} fail", expected=asked)


def _passed(one: Concurrent, seen: Together) -> str:
    forced = f", none in {seen.forced} more with {seen.pauses} forced switches" if seen.pauses else ""
    met = f"the same as alone in {seen.met} rounds in which all {one.count} met{forced}"
    return f"{met}: fewer than {seen.bound:.2g} of the rounds fail, at 95 %"


def _differs(one: Concurrent, seen: Together, differed: list[Differed]) -> Said:
    """Say what else came of it, and how often."""
    natural = [each for each in differed if not each.forced]
    first = (natural or differed)[0]
    how = f"in {seen.failed} of {seen.rounds} rounds"
    if not natural:
        how = f"in {seen.failed_forced} of {seen.forced} rounds with forced switches"
    return Said(
        Outcome.FAILED,
        f"{_found(first, one)}, {how}",
        first.error or first.found,
        location=first.place,
        expected=first.expected or "what comes of it alone",
        impact=IMPACT,
        remediation=REMEDIATION,
    )


def _found(first: Differed, one: Concurrent) -> str:
    if first.error:
        return f"it raises {first.error}, which it does not alone"
    return f"{first.found} after {one.count * one.times} uses" if one.shared else first.found


def _stands(one: Concurrent, seen: Together) -> Said:
    return Said(
        Outcome.FAILED, f"{len(seen.stood)} of {one.count} threads stand still: {_where(seen)}"
        + (", with forced switches" if seen.stood_forced else ""), "a deadlock", location=_first(seen),
        expected="an end", impact="It never comes to its end.",
        remediation="Take locks in one order everywhere, and wait for nothing while one is held.",
    )  # fmt: skip


def _where(seen: Together) -> str:
    return "; ".join(
        f"thread {each.worker + 1} at {each.places[0]} ({each.functions[0]})"
        if each.places
        else f"thread {each.worker + 1} outside the project"
        for each in seen.stood
    )


def _first(seen: Together) -> Location | None:
    return next((each.places[0] for each in seen.stood if each.places), None)


def _unknown(why: str, *, actual: str = "not seen", location: Location | None = None, remedy: str = REMEDY) -> Said:
    return unknown(f"{DOUBT}: {why}", remedy=remedy, actual=actual, location=location)


def _section(seen: tuple[tuple[Concurrent, Together], ...], not_run: str) -> Section:
    """Tell of each what was done at once, and what came of it."""
    return Section(
        title="Concurrency",
        text=not_run
        or "Rounds count where all were at it at the same time; without a failure in k of them fewer than 3/k fail, "
        "at 95 %.",
        facts=(("Free-threading", _free(tuple(each for _, each in seen))),) if seen else (),
        columns=("Outcome", "Failed", "Met", "Forced switches", "Failed", "Bound", "Threads", "Concurrent"),
        rows=tuple(_row(*each) for each in seen),
    )


def _row(one: Concurrent, seen: Together) -> tuple[str, ...]:
    bound = f"< {seen.bound:.2g}" if seen.bound is not None and seen.complete else "-"
    return (
        _said(one, seen).outcome.value, str(seen.failed), f"{seen.met} of {seen.rounds}",
        f"{seen.pauses} in {seen.forced} rounds", str(seen.failed_forced), bound, str(one.count), one.name,
    )  # fmt: skip


def _free(seen: tuple[Together, ...]) -> str:
    told = {each.free_threaded for each in seen if each.free_threaded is not None}
    if not told:
        return "not known"
    return "yes: threads run in parallel" if True in told else "not available: this interpreter has one lock for all"


CHECK = ProbeCheck(
    name="concurrency",
    order=40,
    prefix="concurrency",
    rule=RULE,
    evidence=Concurrency,
    title=lambda one: f"The same result concurrently: {one.name}",
    promise="the same result concurrently",
    judge=_said,
    section=_section,
    doubt=DOUBT,
    remedy=REMEDY,
).check()
