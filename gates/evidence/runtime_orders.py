"""The orders that code rules ask for and that can also be judged on what really happened."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from gates.check import EvidenceSet
from gates.evidence.recorded_step import Happened, Recorded
from gates.model import Model, Severity
from gates.scan.order import MARKERS, Order
from gates.scan.rule import OrderRule, Rule

_WORDS = (
    "forward autocast_enter autocast_exit scaled_backward backward handed_backward unscale unscale_once "
    "unscale_by_hand clip given_grad step plain_step update zero_grad scheduler scheduler_set uncleared"
)
WORDS = tuple(_WORDS.split())
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
        order=one.order.text,
        demanded=demanded,
        at=tuple(sorted(one.at)),
        needs=tuple(tuple(sorted(names)) for names in rule.required),
        problem=one.says or rule.form.problem,
        **{name: getattr(rule.form, name) for name in ("severity", "impact", "fix")},
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
    return [
        event
        for event in events
        if event.word in WORDS
        and event.scaler in (None, scaler)
        and (optimizer in event.optimizers or (not event.optimizers and event.word in COMMON))
        and event.thread in threads
    ]


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
