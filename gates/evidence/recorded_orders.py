"""The calls of a training step that was recorded, and the orders of code rules that they are judged by."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import Field

from gates.model import Location, Model, Severity
from gates.scan.order import MARKERS, Order
from gates.scan.rule import Rule

BACKWARD = ("scaled_backward", "backward", "handed_backward")
SCALER = ("unscale", "unscale_once", "unscale_by_hand", "step", "update")
OPTIMIZER = ("clip", "given_grad", "plain_step", "zero_grad", "uncleared", "scheduler", "scheduler_set")
WORDS = ("forward", "autocast_enter", "autocast_exit", *BACKWARD, *SCALER, *OPTIMIZER)


class Placed(Model):
    """Something that the recorder told of, and the line of the project that led to it."""

    location: Location | None = None


class Happened(Placed):
    """One call, where in the project it came from, and which scaler and optimizers (by number) it was about.

    `scaling` is whether the scaler had scaled a loss by then, `enabled` whether it is turned on. `products` counts the
    matrix products that a backward pass leads back to, by dtype, and `whole` says that all of its graph could be read.
    `share` is the part of 1 that the loss was multiplied with, as for a mean over several backward passes.
    """

    word: str
    scaler: int | None = None
    optimizers: tuple[int, ...] = ()
    scaling: bool = False
    enabled: bool = True
    scale: float | None = None
    products: dict[str, int] = Field(default={})
    whole: bool = True
    share: float = 1.0
    thread: int = 0


BEGINS = {"forward", "autocast_enter", "scaled_backward", "backward"}
ENDS = {"step", "plain_step"}
COMMON = {"forward", "autocast_enter", "autocast_exit", "update"}  # about no optimizer alone


class RuntimeOrder(Model):
    """An order that must not happen, or is `demanded`; `at` is the event of the fault, `asked` are its rules."""

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


def _orders(rule: Rule) -> Iterator[RuntimeOrder]:
    form, needs = rule.form, [sorted(names) for names in rule.required]
    about = {"rule": rule.id, "severity": form.severity, "impact": form.impact, "fix": form.fix, "needs": needs}
    for demanded, orders in ((False, rule.never), (True, rule.always)):
        for one in orders:
            if one.order.names <= {*WORDS, *MARKERS}:  # of what cannot be seen here, nothing may depend
                own = {"order": one.order.text, "at": sorted(one.at), "problem": one.says or form.problem}
                yield RuntimeOrder.model_validate({**about, **own, "demanded": demanded})


class Breach(NamedTuple):
    """A rule that is broken, and the events that break it."""

    rule: RuntimeOrder
    trace: Sequence[Happened]

    @property
    def place(self) -> Happened:
        """Return the event at which the fault lies."""
        if "first" in self.rule.at:
            return self.trace[0]
        return next((event for event in self.trace if event.word in self.rule.at), self.trace[-1])


def broken_in(events: Sequence[Happened], orders: Iterable[RuntimeOrder], *, whole: bool) -> Iterator[Breach]:
    """Yield what breaks an order in a run, seen as a `whole` or not, of each scaler with each of its optimizers."""
    ends = ("done", "end") if whole else ()
    compiled = [(rule, Order.parse(rule.order, WORDS)) for rule in orders if whole or not rule.demanded]
    for scaler, optimizer in pairs(events):
        places, word = _word(_about(events, scaler, optimizer), ends)
        for rule, order in compiled:
            trace = _broken(rule, order, places, word)
            if trace:
                yield Breach(rule, trace)


def _broken(rule: RuntimeOrder, order: Order, places: Sequence[Happened | None], word: Sequence[str]) -> list[Happened]:
    if not all(set(names) & set(word) for names in rule.needs):
        return []
    match = order.search(word)
    if rule.demanded:
        missing = [place for place in places if place is not None and place.word in rule.at]
        return missing[:1] if match is None else []
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
    return [(scaler, each) for each, scalers in sorted(found.items()) for scaler in sorted(scalers) or (None,)]


def _about(events: Sequence[Happened], scaler: int | None, optimizer: int) -> list[Happened]:
    """Return the events of a scaler with an optimizer; what is about no optimizer counts in their own threads alone."""
    threads = {event.thread for event in events if optimizer in event.optimizers}
    theirs = [event for event in events if event.scaler in (None, scaler) and event.thread in threads]
    return [one for one in theirs if optimizer in one.optimizers or (not one.optimizers and one.word in COMMON)]


def _word(events: Sequence[Happened], ends: tuple[str, ...]) -> tuple[list[Happened | None], list[str]]:
    """Return the events as a word with the markers of a loop; an end is marked only where they came to it."""
    letters: list[tuple[Happened | None, str]] = [(None, word) for word in ("start", "loop", "turn")]
    stepped = False
    for event in events:
        if stepped and event.word in BEGINS:
            stepped = False
            letters.append((None, "turn"))
        stepped = stepped or event.word in ENDS
        letters.append((event, event.word))
    letters += [(None, end) for end in ends]
    return [place for place, _ in letters], [word for _, word in letters]
