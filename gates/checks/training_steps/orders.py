"""The order of a scaled step, judged on the calls that really happened."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gates.evidence.recorded_step import Happened, Recorded
from gates.evidence.runtime_orders import WORDS, RuntimeOrder
from gates.judging.said import Said
from gates.model import Level, Location, Outcome, Severity
from gates.scan.automata.order import Order

BEGINS = {"forward", "autocast_enter", "scaled_backward", "backward"}
ENDS = {"step", "plain_step"}
BACKWARD = {"backward", "scaled_backward"}
NEAR = 1e-3
COMMON = {"forward", "autocast_enter", "autocast_exit", "update"}  # about no optimizer alone
SHOWN = 6


def judge_order(run: Recorded, orders: Iterable[RuntimeOrder]) -> Iterator[Said]:
    """Judge the calls of each scaler with each of its optimizers; a line is told of once, and a rule once a file."""
    told: set[tuple[str, str]] = set()
    whole = run.complete and not run.truncated
    for breach in breaches(run.events, parsed(orders), ends=("done", "end") if whole else ()):
        where = breach.place.location
        keys = {(breach.rule.rule, where.path if where else ""), ("line", str(where))}
        if not keys & told:
            told |= keys
            yield breach.said()
    if not _pairs(run.events):
        why = "no backward pass and step of a torch optimizer was seen"
        yield Said(Outcome.UNKNOWN, f"The order of calls was not seen: {why}.", "not seen", level=Level.ADVISORY)
    elif not told:
        steps = sum(event.word in ENDS for event in run.events)
        yield Said(Outcome.PASSED, f"The calls of {steps} steps happened in the right order.", f"{steps} steps",
                   _first(run.events))  # fmt: skip


def judge_windows(run: Recorded) -> Iterator[Said]:
    """Tell of a step on fewer backward passes than its mean is over, where other steps have them all."""
    windows = list(_windows(run.events))
    counts = {len(one) for one in windows if len(one) > 1 and abs(sum(event.share for event in one) - 1) < NEAR}
    for one in windows:
        asked = round(1 / one[0].share)
        if asked in counts and len(one) < asked and len({event.share for event in one}) == 1:
            yield Said(
                Outcome.FAILED,
                f"A step on {len(one)} backward passes divides their sum by {asked}.",
                f"{len(one) / asked:.2g} times the mean",
                one[-1].location,
                expected="the mean",
                level=Level.ADVISORY,
                subject="partial window",
                impact="The step of an incomplete window is too small.",
                remediation="Divide by the number of backward passes that the window has.",
            )
            return


def _windows(events: Sequence[Happened]) -> Iterator[list[Happened]]:
    """Yield the backward passes before each step, of each optimizer."""
    for optimizer in sorted({number for event in events for number in event.optimizers}):
        window: list[Happened] = []
        for event in events:
            if optimizer in event.optimizers and event.word in BACKWARD:
                window.append(event)
            elif optimizer in event.optimizers and event.word in {*ENDS, "zero_grad"}:
                if window and event.word in ENDS:
                    yield window
                window = []


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

    def said(self) -> Said:
        """Return what is to be said of it."""
        rule, trace = self.rule, self.trace
        shown = [*trace[: SHOWN - 1], trace[-1]] if len(trace) > SHOWN else list(trace)
        path = " -> ".join(f"{event.word} {event.location or '(not in the project)'}" for event in shown)
        blocks = rule.severity in {Severity.CRITICAL, Severity.HIGH}
        return Said(
            Outcome.FAILED, f"{rule.rule}: {rule.problem} {path}", path, self.place.location,
            expected="the order of a step", impact=rule.impact, remediation=rule.fix, subject=rule.rule,
            level=Level.MUST if blocks else Level.ADVISORY,
        )  # fmt: skip


def parsed(orders: Iterable[RuntimeOrder]) -> list[tuple[RuntimeOrder, Order]]:
    """Return each rule with its order compiled."""
    return [(rule, Order.parse(rule.order, WORDS, within_turn=rule.within_turn)) for rule in orders]


def breaches(
    events: Sequence[Happened], compiled: Sequence[tuple[RuntimeOrder, Order]], *, ends: tuple[str, ...]
) -> Iterator[Breach]:
    """Yield what breaks a rule, of each scaler with each of its optimizers; `ends` are the markers at the end."""
    for scaler, optimizer in _pairs(events):
        places, word = _word(_about(events, scaler, optimizer), ends)
        for rule, order in compiled:
            trace = _broken(rule, order, places, word, whole="end" in ends)
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


def _pairs(events: Sequence[Happened]) -> list[tuple[int | None, int]]:
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
        event for event in events
        if event.word in WORDS
        and event.scaler in (None, scaler)
        and (optimizer in event.optimizers or (not event.optimizers and event.word in COMMON))
        and event.thread in threads
    ]  # fmt: skip


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


def _first(events: Sequence[Happened]) -> Location | None:
    return next((event.location for event in events if event.word in ENDS), None)
