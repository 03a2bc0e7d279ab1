"""The part of the performance gate on scaling: by which power of a size do time, memory or calls of a step grow?"""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from gates.check import Said
from gates.checks.scaling.collect import Scaled, Scaling
from gates.evidence._probes import Aspect, ProbeCheck, unknown
from gates.model import Outcome, RuleText
from gates.report import Section
from gates.task.probes import Scale
from gates.words import shown

RULE = RuleText(
    id="PF007",
    title="It scales no worse with a size than it may",
    meaning="A step is measured at several sizes. It fails where the whole interval of its exponent "
    "is beyond the limit. An interval that holds the limit is unknown.",
)
METHOD = (
    "The exponent says by which power of a size a step grows. It lies between the slope in logarithms over the upper "
    "half of the sizes and the k of a + b n^k. Its interval is Student's, of 95 % over the starts."
)
UNITS = {"step_time_s": "s", "step_cpu_time_s": "s", "peak_memory_bytes": "bytes", "python_calls": "calls"}
WIDER = "Choose larger sizes, so that the constant part is small beside them, or a larger 'budget_s' or 'restarts'."


def _said(scale: Scale, seen: Scaled) -> Said:
    if why := _why_not(scale, seen):
        return unknown(why, location=seen.place)
    found, most = seen.power(), scale.exponent.at_most
    asked = _asked(scale)
    told = f"exponent {found}, of {found.n} rounds in {found.starts} starts on {seen.device}"
    said = Said(Outcome.PASSED, told, str(found), expected=asked)
    if found.high <= most:
        return said
    if found.low > most:
        return replace(said, outcome=Outcome.FAILED, **_where(scale, seen, told))
    return unknown(f"{told}, asked is {asked}", str(found), remedy=WIDER)


def _asked(scale: Scale) -> str:
    return f"<= {scale.exponent.at_most:g}"


def _where(scale: Scale, seen: Scaled, told: str) -> dict[str, Any]:
    """Return what is said of a step that grows too fast beside its exponent."""
    worst, middle = seen.grown, _middle(seen)
    by, more = scale.sizes[-1] // scale.sizes[0], middle[-1] / middle[0]
    if worst:
        told += f"; {worst.function} at {worst.place} grows with about {worst.exponent:.2f}"
        told += f" and takes {worst.share:.0%} of the step at {seen.sizes[-1]}"
    return {
        "message": told,
        "location": worst.place if worst else None,
        "impact": f"{scale.argument} times {by} makes it {more:.3g} times as much.",
        "remediation": "Look for a loop within a loop, or a matrix of all by all.",
    }


def _why_not(scale: Scale, seen: Scaled) -> str:
    """Return why there is no exponent, or nothing where there is one."""
    if seen.problem:
        return seen.problem
    if scale.on not in {"any", seen.device}:
        return f"it was measured on {seen.device}, asked is {scale.on}"
    if len(seen.starts) < scale.restarts:
        return f"{len(seen.starts)} of {scale.restarts} starts in the time there is"
    try:
        seen.power()
    except ValueError as error:
        return str(error)
    return ""


def _middle(seen: Scaled) -> list[float]:
    """Return the median of each size, over all rounds."""
    rows = [row for rounds in seen.starts for row in rounds]
    return [statistics.median(column) for column in zip(*rows, strict=True)]


def _page(seen: Sequence[tuple[Scale, Scaled, Said]], not_run: str) -> Iterator[Section]:
    """Tell of each step how it grows."""
    yield Section(
        title="Complexity",
        text=not_run or METHOD,
        columns=("Outcome", "Exponent", "Asked", "Sizes", "At each", "Rounds", "Device", "Function", "Step"),
        rows=tuple(_row(*each) for each in seen),
    )


def _row(scale: Scale, seen: Scaled, said: Said) -> tuple[str, ...]:
    values = [shown(value, UNITS[scale.of]) for value in _middle(seen)] if seen.starts else ["-"]
    sizes = f"{scale.argument} {', '.join(map(str, scale.sizes))}"
    rounds = f"{sum(map(len, seen.starts))} in {len(seen.starts)} starts"
    function = str(seen.grown.place) if seen.grown else "-"
    found = (said.outcome.value, said.actual, _asked(scale))
    return *found, sizes, ", ".join(values), rounds, seen.device, function, scale.name


CHECK = ProbeCheck[Scale, Scaled](
    name="scaling",
    order=50,
    prefix="scaling",
    rule=RULE,
    evidence=Scaling,
    aspects=(
        Aspect(
            lambda scale: f"{scale.name} grows with an exponent {_asked(scale)}",
            "it grows no faster than it may",
            lambda scale, seen: [_said(scale, seen)],
        ),
    ),
    page=_page,
    doubt="not known how it grows",
    remedy="Make `call` return the step, and let it run to its end.",
).check()
