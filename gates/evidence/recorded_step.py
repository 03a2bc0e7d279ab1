"""What the recorder notes of one training step, and the orders of code rules that are judged by it, too."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

from pydantic import Field, ValidationError

from gates.check import EvidenceSet
from gates.child.probing import Entry, location
from gates.child.process import ProcessRun
from gates.model import Location, Model, Severity
from gates.scan.order import MARKERS, Order
from gates.scan.rule import OrderRule, Rule

M = TypeVar("M", bound=Model)
BACKWARD = ("scaled_backward", "backward", "handed_backward")
SCALER = ("unscale", "unscale_once", "unscale_by_hand", "step", "update")
OPTIMIZER = ("clip", "given_grad", "plain_step", "zero_grad", "uncleared", "scheduler", "scheduler_set")
WORDS = ("forward", "autocast_enter", "autocast_exit", *BACKWARD, *SCALER, *OPTIMIZER)


class Happened(Model):
    """One call, where in the project it came from, and which scaler and optimizers (by number) it was about.

    `scaling` is whether the scaler had scaled a loss by then, `enabled` whether it is turned on. `products` counts the
    matrix products that a backward pass leads back to, by dtype, and `whole` says that all of its graph could be read.
    `share` is the part of 1 that the loss was multiplied with, as for a mean over several backward passes.
    """

    word: str
    location: Location | None = None
    scaler: int | None = None
    optimizers: tuple[int, ...] = ()
    scaling: bool = False
    enabled: bool = True
    scale: float | None = None
    products: dict[str, int] = Field(default={})
    whole: bool = True
    share: float = 1.0
    thread: int = 0


class Attempt(Model):
    """One step of an optimizer, taken or left out (`skipped`), and what it was taken with.

    `window` counts the updates of its scaler before it: steps of one window have one loss scale.
    """

    location: Location | None = None
    optimizer: int
    scaler: int | None = None
    skipped: bool
    window: int | None = None
    lr: tuple[float | None, ...] = ()
    scale: float | None = None
    params: tuple[str, ...] = ()


class Compared(Model):
    """Gradients beside those of the same modules in float64, before they were clipped or used (`when`).

    `factor` is by how much they are too large; `error` is the distance from the reference, relative to its length, and
    `error_less_factor` the same once the factor is divided out. `outputs_off` is how far the outputs computed again
    are from those that were seen. `lost` is the share of gradients that are zero where the reference is not. `length`
    is that of the reference, without any scale; `by_hand` the power of two that the project multiplied the loss with.
    """

    location: Location | None = None
    optimizer: int
    when: str
    why_not: str = ""
    precision: str = ""
    outputs_off: float | None = None
    parameters: int = 0
    left_out: int = 0
    finite: bool = False
    factor: float | None = None
    error: float | None = None
    error_less_factor: float | None = None
    lost: float | None = None
    length: float | None = None
    by_hand: float = 1.0


class Overflowed(Model):
    """A step whose gradients were made infinite on purpose, and what became of it.

    `changed` counts the parameters that are not bit by bit what they were, `state_changed` names the moments and
    counters that are not. `swallowed` says that the gradient was made finite where it was, neither cleared nor
    computed again.
    """

    location: Location | None = None
    optimizer: int
    changed: int
    state_changed: tuple[str, ...] = ()
    finite_at_step: bool | None = None
    swallowed: bool = False
    scale_before: float | None = None
    scale_after: float | None = None
    backoff: float | None = None
    least: float | None = None
    rates_before: tuple[float | None, ...] = ()
    rates_after: tuple[float | None, ...] = ()


class Logged(Model):
    """One record of a training step, and where it went."""

    to: str
    location: Location | None = None
    values: dict[str, float | None]


class Absent(Model):
    """A device that was asked for and not there: what torch answered, the dtype that autocast was to compute in.

    `ends` says that the run ended by this answer.
    """

    what: str
    location: Location | None = None
    dtype: str | None = None
    ends: bool = False


class Spoiled(Model):
    """Parameters and buffers of a module that were finite and that a step, taken or left out, left otherwise."""

    names: tuple[str, ...]
    location: Location | None = None


class Recorded(Model):
    """One process in which a training step was run and recorded."""

    process: ProcessRun | None = None
    problem: str = ""
    complete: bool = False
    truncated: bool = False
    error: str = ""
    crash: Location | None = None
    troubles: tuple[str, ...] = ()
    events: tuple[Happened, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    compared: tuple[Compared, ...] = ()
    overflows: tuple[Overflowed, ...] = ()
    injected: bool = False
    steps_after_overflow: int | None = None
    absent: tuple[Absent, ...] = ()
    spoiled: tuple[Spoiled, ...] = ()
    logged: tuple[Logged, ...] = ()


def as_recorded(entries: Sequence[Entry], foreign: int = 0) -> Recorded:
    """Return what entries tell, or that they cannot be read."""
    try:
        return _recorded(entries, foreign)
    except (ValidationError, KeyError, TypeError, ValueError) as error:
        return Recorded(problem=f"the journal cannot be read: {type(error).__name__}")


def _recorded(entries: Sequence[Entry], foreign: int) -> Recorded:
    def all_of(kind: type[M], *words: str) -> tuple[M, ...]:
        return tuple(kind.model_validate(_known(kind, entry)) for entry in entries if entry["word"] in words)

    last = {str(entry["word"]): entry for entry in entries}
    raised, after = last.get("raised", {}), last.get("after_overflow", {})
    alien = (f"{foreign} lines of the journal are not its own",) if foreign else ()
    return Recorded(
        problem=str(last.get("problem", {}).get("what", "")),
        error=str(raised.get("what", "")),
        crash=location(raised.get("place")),
        complete="end" in last and not foreign,
        truncated="truncated" in last,
        troubles=(*alien, *(str(entry["what"]) for entry in entries if entry["word"] == "trouble")),
        events=all_of(Happened, *WORDS),
        attempts=all_of(Attempt, "attempt"),
        compared=all_of(Compared, "reference"),
        overflows=all_of(Overflowed, "overflow"),
        injected="injected" in last,
        steps_after_overflow=_known(Recorded, after).get("steps_after_overflow"),
        absent=all_of(Absent, "hidden"),
        spoiled=all_of(Spoiled, "spoiled"),
        logged=all_of(Logged, "log"),
    )


def _known(kind: type[Model], entry: Entry) -> dict[str, Any]:
    """Return the facts of an entry that a model has."""
    return {name: value for name, value in entry.items() if name in kind.model_fields and value is not None}


BEGINS = {"forward", "autocast_enter", "scaled_backward", "backward"}
ENDS = {"step", "plain_step"}
COMMON = {"forward", "autocast_enter", "autocast_exit", "update"}  # about no optimizer alone


class RuntimeOrder(Model):
    """An order that must not happen, or that must where there is what it `needs`; `at` is the event of the fault.

    `asked` are all rules that ask for it, `rule` is the most special of them.
    """

    rule: str
    asked: tuple[str, ...] = ()
    severity: Severity
    order: str
    demanded: bool = False
    at: tuple[str, ...] = ("last",)
    needs: tuple[tuple[str, ...], ...] = ()
    problem: str
    impact: str
    fix: str


UNCLEARED = RuntimeOrder(
    rule="amp-missing-zero-grad",
    severity=Severity.HIGH,
    order="uncleared",
    problem="Gradients of the step before are used again, as nothing cleared them.",
    impact="Each step moves by the sum of all gradients since training began.",
    fix="Call optimizer.zero_grad() once for each step.",
)


def runtime_orders(known: Mapping[str, Rule]) -> tuple[RuntimeOrder, ...]:
    """Return the orders of the rules that are judged at run time, too; special rules before those that sum them up."""
    rules = [rule for rule in known.values() if rule.form.runtime]
    found = [order for rule in sorted(rules, key=lambda rule: len(rule.never)) for order in _orders(rule)]
    asked: dict[str, tuple[str, ...]] = {}
    for one in found:
        asked[one.order] = (*asked.get(one.order, ()), one.rule)
    chosen = {order.order: order for order in reversed(found)}
    return (*(one.model_copy(update={"asked": asked[one.order]}) for one in chosen.values()), UNCLEARED)


@runtime_checkable
class RecordedSteps(Protocol):
    """Training steps that were recorded, whoever asked for them."""

    def recorded(self) -> Iterator[tuple[str, Recorded, Sequence[RuntimeOrder]]]:
        """Yield each with its name and the orders that its calls are judged by."""


def _orders(rule: Rule) -> Iterator[RuntimeOrder]:
    for demanded, orders in ((False, rule.never), (True, rule.always)):
        for one in orders:
            if one.order.names <= {*WORDS, *MARKERS}:  # of what cannot be seen here, nothing may depend
                yield _order(rule, one, demanded=demanded)


def _order(rule: Rule, one: OrderRule, *, demanded: bool) -> RuntimeOrder:
    return RuntimeOrder(
        rule=rule.id,
        severity=rule.form.severity,
        order=one.order.text,
        demanded=demanded,
        at=tuple(sorted(one.at)),
        needs=tuple(tuple(sorted(names)) for names in rule.required),
        problem=one.says or rule.form.problem,
        impact=rule.form.impact,
        fix=rule.form.fix,
    )


@dataclass(frozen=True)
class Breach:
    """A rule that is broken, and the events that break it."""

    rule: RuntimeOrder
    trace: Sequence[Happened]

    @property
    def place(self) -> Happened:
        """Return the event at which the fault lies."""
        if "first" in self.rule.at:
            return self.trace[0]
        return next((event for event in self.trace if event.word in self.rule.at), self.trace[-1])


def broken_in(run: Recorded, orders: Iterable[RuntimeOrder]) -> Iterator[Breach]:
    """Yield what breaks an order in a run, of each scaler with each of its optimizers."""
    ends = ("done", "end") if run.complete and not run.truncated else ()
    compiled = [(rule, Order.parse(rule.order, WORDS)) for rule in orders]
    for scaler, optimizer in pairs(run.events):
        places, word = _word(_about(run.events, scaler, optimizer), ends)
        for rule, order in compiled:
            trace = _broken(rule, order, places, word, whole=bool(ends))
            if trace:
                yield Breach(rule, trace)


def _broken(
    rule: RuntimeOrder, order: Order, places: Sequence[Happened | None], word: Sequence[str], *, whole: bool
) -> list[Happened]:
    """Return the events that break a rule, or none."""
    if not all(set(names) & set(word) for names in rule.needs):
        return []
    match = order.search(word)
    if rule.demanded:
        missing = [place for place in places if place is not None and place.word in rule.at]
        return missing[:1] if whole and match is None else []
    if match is None:
        return []
    matched = [place for place in places[match[0] : match[1]] if place is not None]
    return [event for event in matched if event.word in order.names]


def pairs(events: Sequence[Happened]) -> list[tuple[int | None, int]]:
    """Return which scaler and optimizer work together; an optimizer without a scaler stands alone."""
    found: dict[int, set[int]] = {}
    for event in events:
        if event.word in {"scaled_backward", "step", "plain_step", "unscale"}:
            for optimizer in event.optimizers:
                scalers = found.setdefault(optimizer, set())
                if event.scaler is not None and (event.scaling or event.word == "scaled_backward"):
                    scalers.add(event.scaler)
    pairs: list[tuple[int | None, int]] = []
    for each, scalers in sorted(found.items()):
        pairs += [(scaler, each) for scaler in sorted(scalers)] or [(None, each)]
    return pairs


def _about(events: Sequence[Happened], scaler: int | None, optimizer: int) -> list[Happened]:
    """Return the events of a scaler with an optimizer; what is about no optimizer counts in their own threads alone."""
    threads = {event.thread for event in events if optimizer in event.optimizers}
    theirs = [event for event in events if event.scaler in (None, scaler) and event.thread in threads]
    return [one for one in theirs if optimizer in one.optimizers or (not one.optimizers and one.word in COMMON)]


def _word(events: Sequence[Happened], ends: tuple[str, ...]) -> tuple[list[Happened | None], list[str]]:
    """Return the events as a word with the markers of a loop, each turn of which ends with a step.

    An end is marked only where the events came to it.
    """
    places: list[Happened | None] = [None, None, None]
    word = ["start", "loop", "turn"]
    stepped = False
    for event in events:
        if stepped and event.word in BEGINS:
            stepped = False
            places.append(None)
            word.append("turn")
        stepped = stepped or event.word in ENDS
        places.append(event)
        word.append(event.word)
    return [*places, *(None for _ in ends)], [*word, *ends]


@dataclass(frozen=True)
class Seen:
    """What the recorder saw of the orders of a rule in one training step: its events, and what breaks an order."""

    name: str
    events: frozenset[str]
    broken: tuple[Breach, ...]


def seen_of(rule: str, evidence: EvidenceSet) -> list[Seen]:
    """Return each recorded step that came to its end, and is judged by orders that a rule asks for."""
    found = []
    for recorded in evidence.present():
        for name, run, orders in recorded.recorded() if isinstance(recorded, RecordedSteps) else ():
            asked = [order for order in orders if rule in order.asked]
            if asked and run.complete and not run.truncated:
                events = frozenset(f"{event.word} {event.location}" for event in run.events)
                found.append(Seen(name, events, tuple(broken_in(run, asked))))
    return found
