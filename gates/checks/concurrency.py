"""Callables that run several times at once, in threads, and must come to the same as alone."""

import math
from collections import ChainMap
from collections.abc import Iterator
from typing import Annotated, ClassVar, Self

from pydantic import Field, JsonValue, model_validator

from gates.check import Said
from gates.child.probing import Probe
from gates.child.values import shown
from gates.evidence._probes import ProbeCheck, Probes, Seen, only, readable, unknown
from gates.model import Location, Model, Outcome
from gates.task.types import Callable, Distance, Json, Run, Seconds, Taken

MOST = 1000  # characters of arguments in a name
CONFIDENT = 3  # k rounds without a failure: fewer than 3/k fail, at 95 %


class Concurrent(Run):
    """What several threads do at once, and what must come of it: the same as alone.

    Either `call`, which each of them calls (with `args`, or each with its own of `each`): what it returns, or the part
    of it that `take` names, must be what it returns alone. Or `shared`, which makes one object that all threads `use`,
    `times` times each; what `read` says of it afterwards must be `expected`, or what the same uses give one after the
    other. `failure_rate` is what must be shown: so few rounds fail, or fewer.
    """

    key: ClassVar[str] = "concurrency"

    one_of = (("call", "shared"),)
    along = (("call", "each", "take"), ("shared", "use", "read", "times", "expected"))
    call: Callable | None = None
    args: tuple[Json, ...] = ()
    each: tuple[tuple[Json, ...], ...] = ()
    take: Taken | None = None
    shared: Callable | None = None
    use: Callable | None = None
    read: Callable | None = None
    times: Annotated[int, Field(ge=1, le=100_000)] = 1000
    expected: Json = None
    workers: Annotated[int, Field(ge=2, le=16)] = 2
    failure_rate: Annotated[float, Field(ge=0.003, le=1)] = 0.15
    tolerance: Distance | None = None
    relative: Distance | None = None
    budget_s: Seconds = 20.0

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.shared and not (self.use and self.read):
            raise ValueError("'shared' needs 'use', what each thread does with it, and 'read', what is asked then")
        if self.each and {"args", "workers"} & self.model_fields_set:
            raise ValueError("'each' says what each is called with, and how many there are: no 'args', no 'workers'")
        if len(self.each) == 1:
            raise ValueError("'each' needs two lists of arguments or more")
        return self

    @property
    def name(self) -> str:
        """Return what it is called in reports."""
        if self.shared:
            return f"{self.use} on one {self.shared}({_shown(self.args)})"
        return f"{self.call}({' | '.join(map(_shown, self.each)) or _shown(self.args)})"

    @property
    def count(self) -> int:
        """Return how many there are at once."""
        return len(self.each) or self.workers

    @property
    def rounds(self) -> int:
        """Return how many rounds without a failure show that so few fail."""
        return math.ceil(CONFIDENT / self.failure_rate - 1e-9)


def _shown(args: tuple[JsonValue, ...]) -> str:
    return shown(list(args), MOST)[1:-1]


class Differed(Model):
    """A round in which something else came of it than alone: what, in words, or the error that was raised."""

    expected: str = ""
    found: str = ""
    error: str = ""
    place: Location | None = None


class Together(Seen):
    """One thing that was done in threads; rounds count where they `met`; `stood` says where each stood still."""

    unclear: str = ""
    rounds: int = 0
    met: int = 0
    pauses: int = 0
    failed: int = 0
    differed: tuple[Differed, ...] = ()
    stood: tuple[str, ...] = ()
    stood_at: Location | None = None
    slow: bool = False
    free_threaded: bool | None = None

    @property
    def bound(self) -> float | None:
        """Return the rate below which rounds fail, at 95 %, where none did: the rule of three."""
        return 3 / self.met if self.met and not self.failed else None


class Concurrency(Probes[Concurrent, Together]):
    """All that a task wants to see done at once."""

    key = "concurrency"
    method = "alone, then several at once: started together, with switches between threads as often as there can be"

    @classmethod
    def look(cls, probe: Probe, name: str, part: Concurrent, limit_s: float) -> Together:
        """Do it alone, and at once, in a process of its own."""
        keys = {"call", "take", "shared", "args", "use", "read", "times", "tolerance", "relative", "budget_s"}
        keys |= {"expected"} & part.model_fields_set
        each = part.each or (part.args,) * part.workers
        asked = {**part.model_dump(include=keys), "each": each, "workers": part.count, "rounds": part.rounds}
        probed = probe.ask("concurrency", name, asked, limit_s)
        base = Together(problem=probed.trouble, place=probed.place)
        return readable(base, lambda: dict(ChainMap(*probed.of("seen")[-1:], *probed.of("alone"))))


IMPACT = "What runs beside others loses updates, or computes with the state of another; now and then only."
REMEDIATION = "Give each its own state, or hold one lock from the read to the write."


def _said(one: Concurrent, seen: Together) -> Said:
    """Say what was seen: what was provoked fails, whatever else could not be seen."""
    if seen.stood and not seen.slow:
        told = f"{len(seen.stood)} of {one.count} threads stand still: {'; '.join(seen.stood)}"
        fix = "Take locks in one order everywhere, and wait for nothing while one is held."
        return Said(Outcome.FAILED, told, "a deadlock", seen.stood_at, "an end", "It never comes to its end.", fix)
    if differed := [each for each in seen.differed if each.error or not seen.unclear]:
        return _differs(one, seen, differed[0])
    if seen.problem or seen.unclear:
        return unknown(seen.problem or seen.unclear, location=seen.place)
    if seen.stood:
        where = "; ".join(seen.stood)
        return unknown(f"concurrently it did not come to its end; it was at {where}", location=seen.stood_at)
    if seen.bound is None:
        return unknown(f"the {one.count} never met in {seen.rounds} rounds")
    fewer = f"fewer than {seen.bound:.2g}"
    if seen.bound > one.failure_rate * (1 + 1e-9):
        why = f"no failure in {seen.met} rounds shows only that {fewer} fail, asked is {one.failure_rate:.3g}"
        return unknown(why, fewer, remedy="Give it a larger 'budget_s', or less to do.")
    met = f"the same as alone in {seen.met} rounds in which all {one.count} met, with {seen.pauses} forced switches"
    asked = f"fewer than {one.failure_rate:.3g} of the rounds fail"
    return Said(Outcome.PASSED, f"{met}: {fewer} of the rounds fail, at 95 %", f"{fewer} fail", expected=asked)


def _differs(one: Concurrent, seen: Together, first: Differed) -> Said:
    found = f"{first.found} after {one.count * one.times} uses" if one.shared else first.found
    told = f"it raises {first.error}, which it does not alone" if first.error else found
    told, alone = f"{told}, in {seen.failed} of {seen.rounds} rounds", first.expected or "what comes of it alone"
    return Said(Outcome.FAILED, told, first.error or first.found, first.place, alone, IMPACT, REMEDIATION)


FREE = {
    None: "not known",
    True: "free-threading: threads run in parallel",
    False: "no free-threading: this interpreter has one lock for all",
}


def _rows(one: Concurrent, seen: Together, said: Said) -> Iterator[tuple[str, ...]]:
    bound = f"< {seen.bound:.2g}" if seen.bound is not None else "-"
    met = f"{seen.met} of {seen.rounds}"
    yield said.outcome.value, str(seen.failed), met, str(seen.pauses), bound, str(one.count), one.name


CHECK = ProbeCheck(
    name="concurrency",
    order=40,
    rule="PF006",
    evidence=Concurrency,
    aspects=only(lambda one: f"The same result concurrently: {one.name}", _said),
    promise="the same result concurrently",
    title="Concurrency",
    text="A round counts where all workers overlapped; every other one has forced switches. Where none of k rounds "
    "failed, fewer than 3/k of them fail (95 %).",
    columns=("Outcome", "Failed", "Overlapped", "Forced switches", "Rate", "Threads", "Concurrent"),
    rows=_rows,
    facts=lambda _one, seen: FREE[seen.free_threaded],
    doubt="not known whether it comes to the same",
    remedy="Make it run to its end, alone and concurrently, to the same result each time.",
).check()
