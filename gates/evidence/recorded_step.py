"""What the recorder notes of one training step: events, steps of optimizers, gradients, an overflow, reads."""

from collections.abc import Sequence

from pydantic import Field, ValidationError

from gates.child.probing import Entry, location
from gates.child.process import ProcessRun
from gates.model import Location, Model


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
    state: tuple[str, ...] = ()


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


LINES = {"start", "raised", "trouble", "truncated", "problem", "end"}
NOTES = LINES | {"attempt", "reference", "overflow", "after_overflow", "log", "injected", "scale", "hidden", "spoiled"}


def as_recorded(entries: Sequence[Entry], foreign: int = 0) -> Recorded:
    """Return what entries tell, or that they cannot be read."""
    try:
        return _recorded(entries, foreign)
    except (ValidationError, KeyError, TypeError, ValueError) as error:
        return Recorded(problem=f"the journal cannot be read: {type(error).__name__}")


def _recorded(entries: Sequence[Entry], foreign: int) -> Recorded:
    by_word: dict[str, list[Entry]] = {}
    for entry in entries:
        by_word.setdefault(str(entry["word"]), []).append(entry)
    after = by_word.get("after_overflow", [{}])[-1]
    alien = (f"{foreign} lines of the journal are not its own",) if foreign else ()
    return Recorded.model_validate(
        {
            "problem": next((entry["what"] for entry in by_word.get("problem", [])), ""),
            "error": next((entry["what"] for entry in by_word.get("raised", [])), ""),
            "crash": next((location(entry["place"]) for entry in by_word.get("raised", [])), None),
            "complete": "end" in by_word and not foreign,
            "truncated": "truncated" in by_word,
            "troubles": (*alien, *(str(entry["what"]) for entry in by_word.get("trouble", []))),
            "events": [_fit(Happened, entry) for entry in entries if entry["word"] not in NOTES],
            "attempts": [_fit(Attempt, entry) for entry in by_word.get("attempt", [])],
            "compared": [_fit(Compared, entry) for entry in by_word.get("reference", [])],
            "overflows": [_fit(Overflowed, entry) for entry in by_word.get("overflow", [])],
            "injected": "injected" in by_word,
            "steps_after_overflow": after.get("steps"),
            "absent": [_fit(Absent, entry) for entry in by_word.get("hidden", [])],
            "spoiled": [_fit(Spoiled, entry) for entry in by_word.get("spoiled", [])],
            "logged": [_fit(Logged, entry) for entry in by_word.get("log", [])],
        }
    )


def _fit(kind: type[Model], entry: Entry) -> Entry:
    """Return the facts of an entry that a model has, its place as a location."""
    facts = {name: value for name, value in entry.items() if name in kind.model_fields and value is not None}
    place, optimizers = entry.get("place") or entry.get("step_place"), entry.get("optimizers")
    if isinstance(entry.get("step_place"), list):
        place = entry["step_place"]
    if found := location(place):
        facts["location"] = found
    if "optimizer" in kind.model_fields and isinstance(optimizers, list) and optimizers:
        facts["optimizer"] = optimizers[0]
    return facts
