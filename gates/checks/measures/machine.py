"""The part of the performance gate on measuring itself: was the machine fit, and how often was it tried?"""

from collections.abc import Iterator

from gates.check import EvidenceSet
from gates.checks.measures.answers import ALIKE, answers_of, any_from_elsewhere, is_compared, level_of, targets_of
from gates.evidence.measurements import Measurements
from gates.measuring.fitness import contended, noise
from gates.measuring.taken import MeasurementRun, Taken
from gates.model import SEVERITY, Finding, Level, Outcome, Planned, RuleText, Severity
from gates.task.measurement import Measurement
from gates.task.task import Task

RULES = (
    RuleText(
        id="PF002",
        title="The machine was fit to measure",
        meaning="While the gate measured, the machine was not disturbed, two copies of one arm agreed, "
        "and arms returned the same where asked. Otherwise no interval decides.",
    ),
    RuleText(
        id="PF003",
        title="Every attempt counts",
        meaning="Each measurement of the same code on one machine goes into a ledger. All attempts share "
        "one error, so that trying again changes no verdict. A changed ledger leaves it open.",
    ),
)
REMEDY = {
    "PF002": "Measure on a quieter machine, or let `clock: either` decide comparisons by CPU time (`threads: 1`).",
    "PF003": "Put the ledger back as it was: what was tried before counts.",
}
EXPECTED = {"PF002": "a machine that disturbs nothing, arms that do the same", "PF003": "a ledger as it was written"}
SEEN = {Outcome.PASSED: "so it was", Outcome.FAILED: "not so"}
MEND = "Mend what keeps the arms from running to their end."


def plan(task: Task) -> Iterator[Planned]:
    """Plan two checks for each measurement whose arms the gate times."""
    for measurement in _asked(task):
        level = _level(task, measurement)
        yield Planned(id=f"machine:{measurement.id}", title=f"The machine was fit for {measurement.id}", level=level)
        yield Planned(id=f"attempts:{measurement.id}", title=f"Every attempt at {measurement.id} counts", level=level)


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Say of each measurement whether the machine was fit, and what of earlier attempts is known."""
    measurements = evidence.get(Measurements)
    for measurement in _asked(task):
        runs = measurements.of(measurement.id) if measurements else ()
        runs += any_from_elsewhere(task, measurement.id, evidence)
        why = evidence.why_missing(Measurements) if measurements is None else "it was not run"
        yield _fit(task, measurement, runs, why, evidence)
        yield _attempts(task, measurement, runs, why)


def _asked(task: Task) -> Iterator[Measurement]:
    wanted = {measure.from_ for _, _, measure in targets_of(task) if not is_compared(measure)}
    yield from (one for one in task.measurements if one.arms and one.id in wanted)


def _level(task: Task, measurement: Measurement) -> Level:
    levels = [level_of(criterion, m) for criterion, _, m in targets_of(task) if m.from_ == measurement.id]
    return min(levels, key=list(Level).index)


def _fit(
    task: Task, measurement: Measurement, runs: tuple[MeasurementRun, ...], why: str, evidence: EvidenceSet
) -> Finding:
    taken = [(run, run.taken) for run in runs if run.taken]
    if not taken:
        problem = next((run.problem for run in runs if run.problem), why)
        said = f"nothing was measured: {problem}"
        return _said(task, measurement, "PF002", "machine", Outcome.UNKNOWN, said, remedy=MEND)
    if measurement.same_result:
        differing, outcome = _differing([one for _, one in taken])
        if differing:
            return _said(task, measurement, "PF002", "machine", outcome, differing, remedy=ALIKE)
    asked = [one for one in answers_of(task, evidence) if one[2].from_ == measurement.id]
    answered = [got for _, _, _, got in asked]
    reasons = dict.fromkeys(reason for got in answered for reason in got.unfit)
    if reasons:  # as binding as what it leaves open
        level = min((level_of(one[0], one[2]) for one in asked if one[3].unfit), key=list(Level).index)
        return _said(task, measurement, "PF002", "machine", Outcome.UNKNOWN, "; ".join(reasons), level=level)
    seen = "; ".join(_copied(one) for _, one in taken)
    by_cpu = [
        reason for got in answered if got.clock and got.run and got.run.taken for reason in contended(got.run.taken)
    ]
    message = f"nothing disturbed what decides; {seen}"
    message += f"; CPU time decides, because {by_cpu[0]}" if by_cpu else ""
    return _said(task, measurement, "PF002", "machine", Outcome.PASSED, message)


def _copied(taken: Taken) -> str:
    seen = noise(taken)
    if seen is None:
        return "no second copy was timed"
    ratio = f"{seen.value:.3g} [{seen.low:.3g}, {seen.high:.3g}]"
    return f"a second copy of {taken.baseline} took {ratio} times as long as the first ({seen.n} pairs)"


def _differing(taken: list[Taken]) -> tuple[str, Outcome]:
    """Return which arm had another result than the first, and what that means."""
    for one in taken:
        changing = [arm for arm, digests in one.digests.items() if len(digests) > 1]
        if changing or not one.digests:
            why = f"the step of {changing[0]} returns now this, now that" if changing else "no arm told its result"
            return f"{why}: whether the results are the same was not seen", Outcome.UNKNOWN
        first = one.digests.get(one.baseline)
        others = [arm for arm, digests in one.digests.items() if digests != first]
        if others:
            return f"{others[0]} does not return what {one.baseline} returns: it is not the same work", Outcome.FAILED
    return "", Outcome.PASSED


def _attempts(task: Task, measurement: Measurement, runs: tuple[MeasurementRun, ...], why: str) -> Finding:
    run = next((run for run in runs if run.taken), None)
    if run is None or run.taken is None:
        problem = next((run.problem for run in runs if run.problem), why)
        said = f"no attempt came to its end: {problem}"
        return _said(task, measurement, "PF003", "attempts", Outcome.UNKNOWN, said, remedy=MEND)
    if run.earlier.problem:
        return _said(task, measurement, "PF003", "attempts", Outcome.UNKNOWN, run.earlier.problem)
    earlier = run.earlier.attempts
    left_out = sum(bool(attempt.unfit) for attempt in earlier)
    message = "the first attempt" if not earlier else f"attempt {len(earlier) + 1}; the pairs of all earlier ones count"
    message += f", save for {left_out} that did not end or had an unfit machine" if left_out else ""
    return _said(task, measurement, "PF003", "attempts", Outcome.PASSED, message)


def _said(
    task: Task, measurement: Measurement, rule: str, check: str, outcome: Outcome, message: str, *,
    remedy: str = "", level: Level | None = None,
) -> Finding:  # fmt: skip
    level = level or _level(task, measurement)
    return Finding(
        rule=rule, check=f"{check}:{measurement.id}", level=level, outcome=outcome,
        severity=Severity.INFO if outcome is Outcome.PASSED else SEVERITY[Outcome.UNKNOWN][level],
        message=f"{measurement.id}: {message}.", location=task.place(measurement), subject=measurement.id,
        expected=EXPECTED[rule], actual=SEEN.get(outcome, "not known"),
        remediation="" if outcome is Outcome.PASSED else remedy or REMEDY[rule],
        command=f"gates run {task.id} --gate performance" if outcome is Outcome.UNKNOWN else "",
    )  # fmt: skip
