"""Training steps, run in processes of their own and recorded: their calls, and the orders of code rules for these."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from pydantic import Field

from gates.check import EvidenceSet
from gates.child.probing import Entry, Probe, Probed
from gates.child.process import ProcessRun
from gates.evidence._probes import Probes, readable
from gates.evidence.source_tree import rules_of
from gates.model import Location, Model, Severity
from gates.scan.order import MARKERS, Order
from gates.scan.rule import Rule
from gates.task.task import Need, TrainingStep

M = TypeVar("M", bound=Model)
# What a training step shows here is its semantics: on every machine the same, on a CPU.
ALONE = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
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


class Attempt(Placed):
    """One step of an optimizer, taken or left out (`skipped`), if it moved a parameter, and what it began with."""

    optimizer: int
    scaler: int | None = None
    skipped: bool
    moved: bool
    window: int | None = None  # the updates of its scaler before it: steps of one have one loss scale
    lr: tuple[float | None, ...] = ()
    scale: float | None = None
    params: tuple[str, ...] = ()


class Compared(Placed):
    """Gradients beside those of the same modules in float64, before they were clipped or used (`when`).

    `factor` is by how much they are too large; `error` is the distance from the reference, relative to its length, and
    `error_less_factor` the same once the factor is divided out. `outputs_off` is how far the outputs computed again
    are from those that were seen. `lost` is the share of gradients that are zero where the reference is not. `length`
    is that of the reference, without any scale; `by_hand` the power of two that the project multiplied the loss with.
    """

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


class Overflowed(Placed):
    """A step whose gradients were made infinite on purpose, and what became of it.

    `changed` counts the parameters that are not bit by bit what they were, `state_changed` names the moments and
    counters that are not. `swallowed` says that the gradient was made finite where it was, neither cleared nor
    computed again.
    """

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


class Logged(Placed):
    """One record of a training step, and where it went."""

    to: str
    values: dict[str, float | None]


class Absent(Placed):
    """A device that was asked for and not there: what torch answered, and if the run `ends` by it."""

    what: str
    dtype: str | None = None
    ends: bool = False


class Spoiled(Placed):
    """Parameters and buffers of a module that were finite and that a step, taken or left out, left otherwise."""

    names: tuple[str, ...]


class Recorded(Model):
    """One process in which a training step was run and recorded."""

    process: ProcessRun | None = None
    problem: str = ""
    complete: bool = False
    error: str = ""
    crash: Location | None = None
    troubles: tuple[str, ...] = ()
    events: tuple[Happened, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    compared: tuple[Compared, ...] = ()
    overflows: tuple[Overflowed, ...] = ()
    injected: bool = False
    steps_after_overflow: int = 0
    absent: tuple[Absent, ...] = ()
    spoiled: tuple[Spoiled, ...] = ()
    logged: tuple[Logged, ...] = ()


def as_recorded(seen: Probed) -> Recorded:
    """Return what a program told, or that it cannot be read."""

    def all_of(kind: type[M], *words: str) -> tuple[M, ...]:
        return tuple(kind.model_validate(_known(kind, entry)) for entry in seen.entries if entry["word"] in words)

    def facts() -> dict[str, object]:
        words = [str(entry["word"]) for entry in seen.entries]
        alien = (f"{seen.foreign} lines of the journal are not its own",) if seen.foreign else ()
        told = words.index("overflow") if "overflow" in words else len(words)
        return {
            "complete": "end" in words and not seen.foreign and (seen.process is None or seen.process.exit_code == 0),
            "troubles": (*alien, *(str(entry["what"]) for entry in seen.of("trouble"))),
            "events": all_of(Happened, *WORDS),
            "attempts": all_of(Attempt, "attempt"),
            "compared": all_of(Compared, "reference"),
            "overflows": all_of(Overflowed, "overflow"),
            "injected": "injected" in words,
            "steps_after_overflow": words[told:].count("attempt"),
            "absent": all_of(Absent, "hidden"),
            "spoiled": all_of(Spoiled, "spoiled"),
            "logged": all_of(Logged, "log"),
        }

    return readable(Recorded(process=seen.process, problem=seen.problem, error=seen.error, crash=seen.place), facts)


def _known(kind: type[Model], entry: Entry) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name in kind.model_fields and value is not None}


BEGINS, ENDS = {"forward", "autocast_enter", "scaled_backward", "backward"}, {"step", "plain_step"}
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
    compiled = [(rule, Order.parse(rule.order, WORDS)) for rule in orders if whole or not rule.demanded]
    for scaler, optimizer in pairs(events):
        places, word = _word(_about(events, scaler, optimizer), ("done", "end") if whole else ())
        for rule, order in compiled:
            if trace := _broken(rule, order, places, word):
                yield Breach(rule, trace)


def _broken(rule: RuntimeOrder, order: Order, places: Sequence[Happened | None], word: Sequence[str]) -> list[Happened]:
    if not all(set(names) & set(word) for names in rule.needs):
        return []
    match = order.search(word)
    if rule.demanded:
        return [place for place in places if place is not None and place.word in rule.at][:1] if match is None else []
    if match is None:
        return []
    return [event for event in places[match[0] : match[1]] if event is not None and event.word in order.names]


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


class StepRecording(Model):
    """One training step, as it is and with an overflow where a scaler is to handle it, and the orders of its calls."""

    name: str
    plain: Recorded
    overflow: Recorded | None = None
    orders: tuple[RuntimeOrder, ...] = ()


class Recording(Probes[TrainingStep, StepRecording]):
    """All training steps of a task, recorded."""

    key = "training_steps"
    method = "each training step once as it is and once with an overflow, in processes of their own"
    at_once = True

    @classmethod
    def look(cls, probe: Probe, name: str, part: TrainingStep, limit_s: float) -> StepRecording:
        """Run a training step under the recorder, and again with an overflow where something is to handle that."""

        def run(journal: str, at: dict[str, int] | None) -> Recorded:
            asked = {"call": part.call, "args": part.args, "overflow": at}
            seen = probe.ask("recorder.__main__", journal, asked, limit_s, ALONE)
            recorded = as_recorded(seen)
            cut_off = seen.process is not None and seen.process.timed_out
            unheard = "" if seen.entries or cut_off else "the recorder wrote no journal"
            return recorded.model_copy(update={"problem": recorded.problem or unheard})

        plain, overflow = run(name, None), None
        scaled = any(event.word == "scaled_backward" for event in plain.events)
        guarded = scaled or any(e.word == "step" and e.enabled for e in plain.events) or Need.OVERFLOW in part.needs
        if plain.complete and plain.attempts and guarded:  # in the second step, if there is one: then moments are there
            overflow = run(f"{name}-overflow", {**step_to_overflow(plain.attempts, scaled=scaled), "scaled": scaled})
        orders = runtime_orders(rules_of(probe.context))
        return StepRecording(name=part.name, plain=plain, overflow=overflow, orders=orders)


def step_to_overflow(attempts: Sequence[Attempt], *, scaled: bool) -> dict[str, int]:
    """Return which step is to overflow, and whose it is: the second one, of those through a scaler if one scales."""
    through = [i for i, attempt in enumerate(attempts) if attempt.scaler is not None or not scaled]
    known = through or list(range(len(attempts)))
    step = next((i for i in known if i), known[-1])
    return {"step": step, "optimizer": attempts[step].optimizer}


class Seen(NamedTuple):
    """What the recorder saw of the orders of a rule in one training step: its events, and what breaks an order."""

    name: str
    events: frozenset[str]
    broken: tuple[Breach, ...]


def seen_of(rule: str, evidence: EvidenceSet) -> list[Seen]:
    """Return each recorded step that came to its end, and is judged by orders that a rule asks for."""
    recording, found = evidence.get(Recording), []
    for step in recording.seen if recording else ():
        if (asked := [order for order in step.orders if rule in order.asked]) and step.plain.complete:
            events = frozenset(f"{event.word} {event.location}" for event in step.plain.events)
            found.append(Seen(step.name, events, tuple(broken_in(step.plain.events, asked, whole=True))))
    return found
