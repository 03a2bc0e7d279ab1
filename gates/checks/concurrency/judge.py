"""The part of the performance gate on concurrency: does it come to the same at once as it does alone?"""

from collections.abc import Iterator, Sequence

from gates.check import Said
from gates.checks.concurrency.collect import Concurrency, Differed, Stood, Together
from gates.evidence._probes import Aspect, ProbeCheck, unknown
from gates.model import Location, Outcome, RuleText
from gates.report import Section
from gates.task.probes import Concurrent

RULE = RuleText(
    id="PF006",
    title="The same result concurrently as alone",
    meaning="A callable runs alone, then in several threads. Another result, an error or "
    "a deadlock fails. Only rounds that overlapped count.",
)
IMPACT = "What runs beside others loses updates, or computes with the state of another; now and then only."
REMEDIATION = "Give each its own state, or hold one lock from the read to the write."


def _said(one: Concurrent, seen: Together) -> Said:
    """Say what was seen: what was provoked fails, whatever else could not be seen."""
    first = next((each.location for each in seen.stood if each.location), None)
    if seen.stood and not seen.slow:
        return _stands(one, seen, first)
    differed = [each for each in seen.differed if each.error or not seen.unclear]
    if differed:
        return _differs(one, seen, differed)
    if seen.problem or seen.unclear:
        return unknown(seen.problem or seen.unclear, location=seen.place)
    if seen.stood:
        return unknown(f"concurrently it did not come to its end; it was at {_where(seen)}", location=first)
    if seen.bound is None:
        return unknown(f"the {one.count} never met in {seen.rounds} rounds")
    fewer = f"fewer than {seen.bound:.2g}"
    if seen.bound > one.failure_rate * (1 + 1e-9):
        why = f"no failure in {seen.met} rounds shows only that {fewer} fail, asked is {one.failure_rate:.3g}"
        return unknown(why, fewer, remedy="Give it a larger 'budget_s', or less to do.")
    forced = f", none in {seen.forced} more with {seen.pauses} forced switches" if seen.pauses else ""
    met = f"the same as alone in {seen.met} rounds in which all {one.count} met{forced}"
    asked = f"fewer than {one.failure_rate:.3g} of the rounds fail"
    return Said(Outcome.PASSED, f"{met}: {fewer} of the rounds fail, at 95 %", f"{fewer} fail", expected=asked)


def _differs(one: Concurrent, seen: Together, differed: list[Differed]) -> Said:
    """Say what else came of it, and how often."""
    natural = [each for each in differed if not each.forced]
    first = (natural or differed)[0]
    how = f"in {seen.failed} of {seen.rounds} rounds"
    if not natural:
        how = f"in {seen.failed_forced} of {seen.forced} rounds with forced switches"
    found = f"{first.found} after {one.count * one.times} uses" if one.shared else first.found
    return Said(
        Outcome.FAILED,
        f"{f'it raises {first.error}, which it does not alone' if first.error else found}, {how}",
        first.error or first.found,
        location=first.place,
        expected=first.expected or "what comes of it alone",
        impact=IMPACT,
        remediation=REMEDIATION,
    )


def _stands(one: Concurrent, seen: Together, first: Location | None) -> Said:
    forced = ", with forced switches" if seen.stood_forced else ""
    return Said(
        Outcome.FAILED,
        f"{len(seen.stood)} of {one.count} threads stand still: {_where(seen)}{forced}",
        "a deadlock",
        location=first,
        expected="an end",
        impact="It never comes to its end.",
        remediation="Take locks in one order everywhere, and wait for nothing while one is held.",
    )


def _where(seen: Together) -> str:
    return "; ".join(f"thread {each.worker + 1} {_place(each)}" for each in seen.stood)


def _place(each: Stood) -> str:
    return f"at {each.location} ({each.function})" if each.location else "outside the project"


def _page(seen: Sequence[tuple[Concurrent, Together, Said]], not_run: str) -> Iterator[Section]:
    """Tell of each what was done at once, and what came of it."""
    free = {each.free_threaded for _, each, _ in seen if each.free_threaded is not None}
    yield Section(
        title="Concurrency",
        text=not_run or ROUNDS,
        facts=(("Free-threading", FREE[True in free] if free else "not known"),) if seen else (),
        columns=(
            "Outcome",
            "Failed",
            "Overlapped",
            "Forced switches",
            "Failed then",
            "Failure rate",
            "Threads",
            "Concurrent",
        ),
        rows=tuple(_row(*each) for each in seen),
    )


ROUNDS = (
    "A round counts where all workers overlapped. Where none of k rounds failed, fewer than 3/k of them fail (95 %)."
)
FREE = {
    True: "yes: threads run in parallel",
    False: "not available: this interpreter has one lock for all",
}


def _row(one: Concurrent, seen: Together, said: Said) -> tuple[str, ...]:
    bound = f"< {seen.bound:.2g}" if seen.bound is not None else "-"
    met, switches = f"{seen.met} of {seen.rounds}", f"{seen.pauses} in {seen.forced} rounds"
    count = str(one.count)
    return said.outcome.value, str(seen.failed), met, switches, str(seen.failed_forced), bound, count, one.name


CHECK = ProbeCheck(
    name="concurrency",
    order=40,
    prefix="concurrency",
    rule=RULE,
    evidence=Concurrency,
    aspects=(
        Aspect(
            lambda one: f"The same result concurrently: {one.name}",
            "the same result concurrently",
            lambda one, seen: [_said(one, seen)],
        ),
    ),
    page=_page,
    doubt="not known whether it comes to the same",
    remedy="Make it run to its end, alone and concurrently, to the same result each time.",
).check()
