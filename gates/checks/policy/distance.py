"""How far a result may be off what a task states, by both of its tolerances together."""

from collections.abc import Iterable, Iterator
from typing import Any

from gates.checks.policy.change import Part
from gates.model import Model

KEYS = ("tolerance", "relative")
NINE_DIGITS, NOTHING = 1e-9, 1e-12
ROUNDING = 1 + 1e-9


def wider(key: str, before: Model, after: Model) -> Iterator[tuple[Part, str, object, object]]:
    """Yield once for both keys what is allowed now and was not, at the result that is stated."""
    changed = [name for name in KEYS if getattr(before, name) != getattr(after, name)]
    if key == changed[0] and _is_wider(before, after, [*_numbers(getattr(before, "expected", None))]):
        yield Part.BAR, *_told(changed, before, after)


def states(one: Model) -> bool:
    """Return whether a part of a task states a result within a tolerance."""
    return {*KEYS, "expected", "raises"} <= type(one).model_fields.keys()


def _is_wider(before: Model, after: Model, numbers: Iterable[float]) -> bool:
    return any(_allowed(after, number) > _allowed(before, number) * ROUNDING for number in numbers)


def _told(changed: list[str], before: Model, after: Model) -> tuple[str, object, object]:
    """Return key and values where one key says it all, and else what each state says."""
    values = [getattr(one, changed[0]) for one in (before, after)]
    if len(changed) == 1 and None not in values:
        return changed[0], *values
    return changed[0], _words(before), _words(after)


def _words(one: Model) -> str:
    said = [f"{key} {getattr(one, key):g}" for key in KEYS if getattr(one, key) is not None]
    return " or ".join(said) or "nine digits"


def _allowed(one: Model, number: float) -> float:
    tolerance, relative = (getattr(one, key) for key in KEYS)
    if tolerance is None and relative is None:
        return 0.0 if isinstance(number, int) else max(NINE_DIGITS * abs(number), NOTHING)
    return max(tolerance or 0.0, (relative or 0.0) * abs(number))


def _numbers(value: Any) -> Iterator[float]:  # noqa: ANN401  # JSON
    """Yield the numbers in a result."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        yield from _numbers(inner)
