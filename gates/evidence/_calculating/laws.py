"""The properties that a function can be tried for: each holds for some inputs, or tells that it does not."""

import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from .calling import Unreachable
from .likeness import Number, number, numbers_in, rounding
from .trying import Rejected, Trial
from .values import FORM, encode, shown

APART = 1e-3  # of the domain: results of nearer points may be equal by rounding, which says nothing of a strict order

Inputs = Sequence[Any]
Law = Callable[["Trial", Inputs, Any], bool | None]


def _ordered(sign: int, *, strict: bool) -> Law:
    def holds(trial: "Trial", inputs: Inputs, other: Any) -> bool | None:  # noqa: ANN401  # JSON
        at = trial.places[0]
        low, high = sorted((_real(inputs[at]), _real(other)))
        if low == high:
            return False
        points = [_with(inputs, at, value) for value in (low, high)]
        first, second = (_number(trial, point) for point in points)
        slack = max(rounding(first, second, trial.scale, trial.kind), trial.asked["tolerance"] or 0)
        step = (second - first) * sign
        if strict and abs(step) <= slack and high - low <= APART * trial.reach:
            return False
        if not (step > 0 if strict else step >= -slack):
            seen = f"{trial.told(points[0])} = {first!r}, and {trial.told(points[1])} = {second!r}"
            trial.fail(points[0], seen)
        return None

    return holds


def _same(change: Callable[["Trial", Inputs, Any], Inputs], sign: int = 1) -> Law:
    """Return the law that a change of the inputs changes nothing, or the sign only, of what a function gives."""

    def holds(trial: "Trial", inputs: Inputs, extra: Any) -> bool | None:  # noqa: ANN401  # JSON
        changed = change(trial, inputs, extra)
        if sign == 1 and change is not _unchanged and list(changed) == list(inputs):
            return False  # which tries nothing
        _alike(trial, inputs, changed, sign, trial.scale)
        return None

    return holds


def _shift_invariant(trial: "Trial", inputs: Inputs, by: float) -> bool | None:
    changed = _with(inputs, trial.places[0], _plus(inputs[trial.places[0]], by))
    _alike(trial, inputs, changed, 1, trial.scale + by)
    return None


def _homogeneous(trial: "Trial", inputs: Inputs, factor: float) -> bool | None:
    grown = factor ** trial.asked["degree"]
    _alike(trial, inputs, _scaled(trial, inputs, factor), grown, trial.scale * max(1.0, grown))
    return None


def _alike(trial: "Trial", inputs: Inputs, changed: Inputs, times: float, scale: float) -> None:
    """Refuse changed inputs for which a function does not give so many times of what it gave."""
    before, after = _whole(trial, inputs), _whole(trial, changed)
    expected = before if times == 1 else _each(before, lambda one: encode(_finite(one, one * times)), _product(times))
    if trial.differ(expected, after, scale=scale):
        wanted = "" if times == 1 else f" (expected {shown(expected, 80)})"
        seen = f"{trial.told(inputs)} = {shown(before, 80)}, and {trial.told(changed)} = {shown(after, 80)}{wanted}"
        trial.fail(inputs, seen)


def _swapped(trial: "Trial", inputs: Inputs, _extra: object) -> Inputs:
    one, two = trial.places
    return _with(_with(inputs, one, inputs[two]), two, inputs[one])


def _negated(trial: "Trial", inputs: Inputs, _extra: object) -> Inputs:
    return _with(inputs, trial.places[0], _times(inputs[trial.places[0]], -1))


def _another(trial: "Trial", inputs: Inputs, other: object) -> Inputs:
    return _with(inputs, trial.places[0], other)


def _scaled(trial: "Trial", inputs: Inputs, factor: float) -> Inputs:
    return _with(inputs, trial.places[0], _times(inputs[trial.places[0]], factor))


def _shuffled(trial: "Trial", inputs: Inputs, order: int) -> Inputs:
    items = inputs[trial.places[0]]
    if not isinstance(items, list):
        raise Unreachable(f"an order-free function takes a list there, found {shown(items, 80)}")
    return _with(inputs, trial.places[0], random.Random(order).sample(items, len(items)))  # noqa: S311  # no secret


def _unchanged(_trial: "Trial", inputs: Inputs, _extra: object) -> Inputs:
    return inputs


def _inverse(trial: "Trial", inputs: Inputs, _extra: object) -> bool | None:
    at = trial.places[0]
    values = trial.values(inputs)
    expected = encode(values[at])
    given = trial.give(inputs)
    between = shown(encode(given), 80)
    values[at] = given
    back = encode(trial.other(inputs, values))
    if unlike := trial.differ(expected, back, scale=trial.reach):
        name = (trial.asked["with"] or trial.name).rpartition(":")[2]
        trial.fail(inputs, f"{trial.told(inputs)} = {between}, and {name} of that: {unlike}")
    return None


def _idempotent(trial: "Trial", inputs: Inputs, _extra: object) -> bool | None:
    given = trial.give(inputs)
    once, values = encode(given), trial.values(inputs)
    values[trial.places[0]] = given
    twice = encode(trial.other(inputs, values))
    if unlike := trial.differ(once, twice):
        trial.fail(inputs, f"{trial.told(inputs)} = {shown(once, 80)}, and again of that: {unlike}")
    return None


def _equal(trial: "Trial", inputs: Inputs, _extra: object) -> bool | None:
    given = _whole(trial, inputs)
    expected = encode(trial.other(inputs, trial.values(inputs)))
    if unlike := trial.differ(expected, given):
        trial.fail(inputs, f"{trial.told(inputs)} is not as {trial.asked['with']}: {unlike}")
    return None


def _bounded(trial: "Trial", inputs: Inputs, _extra: object) -> bool | None:
    least, most = trial.asked["bounds"] or (None, None)
    given = trial.written(inputs)
    found = [*numbers_in(given)]
    if not found:
        trial.fail(inputs, f"{trial.told(inputs)} = {shown(given, 80)}, in which there is no number")
    for value in found:
        inside = (least is None or value >= least) and (most is None or value <= most)
        if not inside or not math.isfinite(value):
            trial.fail(inputs, f"{trial.told(inputs)} = {shown(given, 80)}")
    return None


def _whole(trial: "Trial", inputs: Inputs) -> Any:  # noqa: ANN401  # JSON
    """Return what a function gives, encoded; NaN is no value that a property can hold of."""
    given = trial.written(inputs)
    if any(isinstance(value, float) and math.isnan(value) for value in numbers_in(given)):
        trial.fail(inputs, f"{trial.told(inputs)} = {shown(given, 80)}")
    return given


def _number(trial: "Trial", inputs: Inputs) -> float:
    given = trial.written(inputs)
    found = number(given)
    if found is None:
        raise Unreachable(
            f"{trial.asked['property']} is said of a number, {trial.told(inputs)} gave {shown(given, 80)}"
        )
    if isinstance(found, float) and math.isnan(found):
        trial.fail(inputs, f"{trial.told(inputs)} = nan")
    return found  # type: ignore[return-value]  # numbers of all kinds can be compared


def _real(value: Any) -> float:  # noqa: ANN401  # JSON
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unreachable(f"an ordered property needs numbers for the argument under 'in', found {shown(value, 80)}")
    return value


def _with(inputs: Inputs, at: int, value: object) -> Inputs:
    return [*inputs[:at], value, *inputs[at + 1 :]]


def _times(value: Any, factor: float) -> Any:  # noqa: ANN401  # JSON
    def change(one: Number) -> Number:
        return _whole_number(one * Fraction(factor)) if isinstance(one, int) else _finite(one, one * factor)

    return _each(value, change, _product(factor))


def _plus(value: Any, by: float) -> Any:  # noqa: ANN401  # JSON
    def change(one: Number) -> Number:
        return _whole_number(one + Fraction(by)) if isinstance(one, int) else _finite(one, one + by)

    return _each(value, change, f"have {by} added")


def _product(factor: float) -> str:
    return f"be multiplied by {factor}"


def _whole_number(changed: Fraction) -> int:
    if changed.denominator != 1:
        raise Rejected  # what is given whole numbers need not take others
    return int(changed)


def _finite(before: Number, changed: Number) -> Number:
    if isinstance(changed, float) and not math.isfinite(changed) and math.isfinite(before):
        raise Rejected  # it is beyond what a float can hold
    return changed


def _each(value: Any, change: Callable[[Any], Any], what: str) -> Any:  # noqa: ANN401  # JSON
    """Change every number of a value; refuse what then is beyond all floats."""
    if isinstance(value, list):
        return [_each(item, change, what) for item in value]
    if isinstance(value, dict) and value.get(FORM) == "array":
        return {**value, "items": _each(value["items"], change, what)}
    found = number(value)
    if found is None:
        raise Unreachable(f"{shown(value, 80)} cannot {what}")
    try:
        return change(found)
    except OverflowError as error:
        raise Rejected from error


LAWS: dict[str, tuple[str, Law]] = {
    "increasing": ("other", _ordered(1, strict=False)),
    "decreasing": ("other", _ordered(-1, strict=False)),
    "strictly-increasing": ("other", _ordered(1, strict=True)),
    "strictly-decreasing": ("other", _ordered(-1, strict=True)),
    "symmetric": ("none", _same(_swapped)),
    "antisymmetric": ("none", _same(_swapped, sign=-1)),
    "even": ("none", _same(_negated)),
    "odd": ("none", _same(_negated, sign=-1)),
    "constant": ("other", _same(_another)),
    "scale-invariant": ("factor", _same(_scaled)),
    "shift-invariant": ("factor", _shift_invariant),
    "order-free": ("order", _same(_shuffled)),
    "deterministic": ("none", _same(_unchanged)),
    "homogeneous": ("factor", _homogeneous),
    "inverse": ("none", _inverse),
    "idempotent": ("none", _idempotent),
    "equal": ("none", _equal),
    "bounded": ("none", _bounded),
    "finite": ("none", _bounded),
}
