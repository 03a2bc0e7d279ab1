"""The part of the performance gate on scaling: by which power of a size do time, memory or calls of a step grow?"""

import statistics
from collections.abc import Iterator

from gates.check import Check, EvidenceSet, Said, checks, findings
from gates.checks.scaling.collect import Power, Scaled, Scaling
from gates.model import Finding, Outcome, Planned, Row, RuleText
from gates.report import Section
from gates.task.probes import Scale
from gates.task.task import Task
from gates.words import shown

RULES = (
    RuleText(
        id="PF007",
        title="It scales no worse with a size than it may",
        meaning="A step is measured at several sizes. It fails where the whole interval of its exponent "
        "is beyond the limit. An interval that holds the limit is unknown.",
    ),
)
METHOD = ("the exponent lies between the slope in logarithms over the upper half of the sizes and the k of a + b n^k; "
          "Student's interval of 95 % over the starts")  # fmt: skip
UNITS = {"step_time_s": "s", "step_cpu_time_s": "s", "peak_memory_bytes": "bytes", "python_calls": "calls"}
WIDER = "Choose larger sizes, so that the constant part is small beside them, or a larger 'budget_s' or 'restarts'."


def plan(task: Task) -> Iterator[Planned]:
    """Plan one check for each step, and one for each criterion that it stands for."""
    for i, scale in enumerate(task.scaling):
        title = f"{scale.name} grows with an exponent {scale.exponent.bound}"
        yield from checks(task, scale, f"scaling:{i}", title, "it grows no faster than it may")


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Compare each exponent with its limit."""
    scaling = evidence.get(Scaling)
    for i, scale in enumerate(task.scaling):
        seen = scaling.of(i) if scaling else None
        said = _said(scale, seen) if seen else _unknown(f"it was not run: {evidence.why_missing(Scaling)}", scale)
        raw = f"scaling/{i}.jsonl" if seen else None
        yield from findings(task, scale, said, rule="PF007", check=f"scaling:{i}", raw=raw)


def _said(scale: Scale, seen: Scaled) -> Said:
    if seen.problem:
        return _unknown(seen.problem, scale, at=seen)
    if scale.on not in {"any", seen.device}:
        return _unknown(f"it was measured on {seen.device}, asked is {scale.on}", scale)
    if len(seen.starts) < scale.restarts:
        return _unknown(f"{len(seen.starts)} of {scale.restarts} starts in the time there is", scale)
    try:
        found = seen.power()
    except ValueError as error:
        return _unknown(str(error), scale)
    outcome = _compare(scale, found)
    told = f"exponent {found}, of {found.n} rounds in {found.starts} starts on {seen.device}"
    if outcome is Outcome.UNKNOWN:
        return Said(
            outcome, f"not decided: {told}, asked is {scale.exponent.bound}{_line(seen)}", str(found),
            expected=scale.exponent.bound, remediation=WIDER,
        )  # fmt: skip
    if outcome is Outcome.PASSED:
        return Said(outcome, told, str(found), expected=scale.exponent.bound)
    return Said(
        outcome, f"{told}{_line(seen)}", str(found), expected=scale.exponent.bound,
        location=seen.grown[0].place if seen.grown else None,
        impact=f"{scale.argument} times {scale.sizes[-1] // scale.sizes[0]} makes it "
        f"{_times(seen):.3g} times as much.",
        remediation="Look for a loop within a loop, or a matrix of all by all, at the line that is named.",
    )  # fmt: skip


def _compare(scale: Scale, found: Power) -> Outcome:
    most, least = scale.exponent.at_most, scale.exponent.at_least
    if most is not None:
        good, bad = found.high <= most, found.low > most
    else:
        assert least is not None
        good, bad = found.low >= least, found.high < least
    return Outcome.PASSED if good else Outcome.FAILED if bad else Outcome.UNKNOWN


def _line(seen: Scaled) -> str:
    if not seen.grown:
        return ""
    worst = seen.grown[0]
    return (f"; {worst.place} ({worst.function}) grows with about {worst.exponent:.2f} and takes {worst.share:.0%} of "
            f"the step at {seen.sizes[-1]}")  # fmt: skip


def _times(seen: Scaled) -> float:
    middle = _middle(seen)
    return middle[-1] / middle[0]


def _middle(seen: Scaled) -> list[float]:
    """Return the median of each size, over all rounds."""
    return [
        statistics.median(column) for column in zip(*(row for rounds in seen.starts for row in rounds), strict=True)
    ]


def _unknown(why: str, scale: Scale, at: Scaled | None = None) -> Said:
    return Said(
        Outcome.UNKNOWN, f"not known how it grows: {why}", "not seen", location=at.place if at else None,
        expected=scale.exponent.bound, remediation="Make `call` return the step, and let it run to its end.",
    )  # fmt: skip


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell of each step how it grows."""
    if not task.scaling:
        return
    scaling = evidence.get(Scaling)
    seen = scaling.seen if scaling else ()
    yield Section(
        title="Complexity",
        text=f"By which power of a size a step grows: {METHOD}."
        if scaling
        else f"Not run: {evidence.why_missing(Scaling)}.",
        columns=("Step", "Sizes", "At each", "Exponent", "Asked", "Rounds", "Device", "Outcome", "Line"),
        rows=tuple(_row(task.scaling[each.index], each) for each in seen),
    )


def _row(scale: Scale, seen: Scaled) -> tuple[str, ...]:
    values = [shown(value, UNITS[scale.of]) for value in _middle(seen)] if seen.starts else ["-"]
    said = _said(scale, seen)
    return (
        scale.name, f"{scale.argument} {', '.join(map(str, scale.sizes))}", ", ".join(values), said.actual,
        scale.exponent.bound, f"{sum(map(len, seen.starts))} in {len(seen.starts)} starts", seen.device,
        said.outcome.value, str(seen.grown[0].place) if seen.grown else "-",
    )  # fmt: skip


CHECK = Check(
    name="scaling",
    gate="performance",
    order=50,
    rules=RULES,
    uses=(Scaling,),
    plan=plan,
    judge=judge,
    page=describe,
    row=Row.MEASURE,
)
