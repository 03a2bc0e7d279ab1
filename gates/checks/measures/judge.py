"""The part of the performance gate on targets: was every number measured, and does its interval meet the target?"""

from collections.abc import Iterator
from typing import Never

from gates.check import Check, EvidenceSet
from gates.checks.measures import handed_in, machine
from gates.checks.measures.answers import Answer, answers_of, level_of, targets_of
from gates.checks.measures.base.arms import comparisons_of
from gates.checks.measures.base.collect import Regressions
from gates.evidence.bundles import Bundles
from gates.evidence.measurements import Measurements
from gates.measuring.fitness import TIMED
from gates.measuring.interval import NotEnough, pairs_needed, values_of
from gates.model import SEVERITY, Finding, Outcome, Planned, Row, RuleText, Severity
from gates.report import Section
from gates.task.task import Criterion, Measure, Task
from gates.words import sparkline

NAME = "performance"
COLUMNS = ("Criterion", "Measure", "Measured", "Interval", "Level", "n", "Course", "Device", "Outcome")


RULES = (
    RuleText(
        id="PF001",
        title="A target is met by its interval",
        meaning="The number comes from raw samples on the device that the criterion asks for. It passes "
        "when the whole interval meets the target, and fails when the whole interval misses it.",
    ),
)


def plan(task: Task) -> Iterator[Planned]:
    """Plan one check for each measure of each criterion."""
    for criterion, i, measure in targets_of(task):
        title = f"{criterion.id}: {measure.name}"
        yield Planned(id=_check(criterion, i), title=title, level=level_of(criterion, measure), criterion=criterion.id)


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Compare each target with its interval; an estimate is not a measurement, and a CPU is not a GPU."""
    for criterion, i, measure, got in answers_of(task, evidence):
        yield _judge_one(task, criterion, i, measure, got)


def _judge_one(task: Task, criterion: Criterion, index: int, measure: Measure, got: Answer) -> Finding:
    level = level_of(criterion, measure)
    sign, limit = measure.bound
    settled = got.outcome in {Outcome.PASSED, Outcome.NOT_APPLICABLE}
    return Finding(
        rule="PF001", check=_check(criterion, index), criterion=criterion.id, level=level, outcome=got.outcome,
        severity=Severity.INFO if settled else SEVERITY[Outcome.UNKNOWN][level], message=_message(measure, got),
        location=task.place(measure), subject=measure.name, expected=f"{sign} {limit:g} {got.unit(measure)}".rstrip(),
        actual=got.shown(measure), impact=_impact(got.outcome),
        remediation=_remedy(task, measure, got), evidence=got.run.raw if got.run else None,
        command=_command(task, measure) if got.outcome is Outcome.UNKNOWN else "",
    )  # fmt: skip


def _message(measure: Measure, got: Answer) -> str:
    if got.seen is None or got.samples is None:
        return f"{measure.name} was not measured: {got.problem}"
    device = got.samples.device.name + (f" ({got.run.elsewhere})" if got.run and got.run.elsewhere else "")
    if got.outcome is Outcome.NOT_APPLICABLE:
        return f"{measure.name} does not apply to {device}: {got.problem}; seen for information: {got.shown(measure)}"
    if got.unfit:
        return f"{measure.name}: {got.shown(measure)} is not believed: {got.problem}"
    by = f" by {got.clock}" if got.clock else ""
    if got.outcome is Outcome.UNKNOWN and got.problem:
        return f"{measure.name}: {got.shown(measure)}{by} from {got.seen.n} samples, on {device}: {got.problem}"
    verb = {Outcome.PASSED: "meets", Outcome.FAILED: "misses"}.get(got.outcome, "is too uncertain to decide")
    why = f": {got.problem}" if got.problem else ""
    return f"{measure.name}: {got.shown(measure)}{by} from {got.seen.n} samples {verb} the target, on {device}{why}"


def _impact(outcome: Outcome) -> str:
    if outcome is Outcome.FAILED:
        return "The promise of the criterion is not kept on this hardware."
    return "Whether the promise is kept is not known." if outcome is Outcome.UNKNOWN else ""


def _remedy(task: Task, measure: Measure, got: Answer) -> str:
    if got.outcome is Outcome.FAILED:
        return f"Find what makes {' and '.join(measure.arms)} miss the target; the raw samples are in the evidence."
    if got.outcome is not Outcome.UNKNOWN:
        return ""
    if got.run and got.run.earlier.problem and not got.unfit:
        return "Put the ledger of attempts back as it was."
    if got.seen and task.smoke:
        return "Run without --smoke: that takes the time to decide it."
    if got.remedy:
        return got.remedy
    if got.unfit:
        return "Measure again on a machine that is fit for it."
    if got.seen:
        return "Measure again on a quieter machine, or take more samples: the interval holds the limit." + _needed(
            measure, got
        )
    if measure.on in {"any", "cpu"}:
        return "Make the measurement end with good samples, then run the command."
    return f"Run the command on a machine with a {measure.on} device, then `gates run --evidence BUNDLE` here."


def _command(task: Task, measure: Measure) -> str:
    """Return what would settle a measure: for a device that is not here, a bundle of all that is asked of it there."""
    if measure.on in {"any", "cpu"}:
        return f"gates run {task.id}"
    return f"gates measure {task.id} --on {measure.on}"


def _needed(measure: Measure, got: Answer) -> str:
    """Return how many pairs may settle it, where the gate took them itself."""
    taken = got.run.taken if got.run and not got.unfit else None
    if taken is None or got.seen is None:
        return ""
    is_timed = (got.clock or measure.of) in TIMED
    needed = pairs_needed(got.seen, measure, taken.split if is_timed else 1)
    what = "pairs" if is_timed else "starts of the processes"
    why = ", for which the budget was too small" if taken.ended == "budget" else ""
    return f" At this noise about {needed} {what} may do{why}." if needed else ""


def _check(criterion: Criterion, index: int) -> str:
    return f"measure:{criterion.id}:{index}"


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell each target with what was measured, how sure that is, and how it went from pair to pair."""
    rows = tuple(_row(criterion, measure, got) for criterion, _, measure, got in answers_of(task, evidence))
    if rows:
        yield Section(title="Targets", columns=COLUMNS, rows=rows)


def _row(criterion: Criterion, measure: Measure, got: Answer) -> tuple[str, ...]:
    name = f"{measure.name}{' (' + level_of(criterion, measure).value + ')' if measure.level else ''}"
    if got.seen is None or got.samples is None:
        return criterion.id, name, "not measured", "-", "-", "-", "-", "-", got.outcome.value
    by = f" (by {got.clock})" if got.clock else ""
    value, _, interval = got.shown(measure).partition(" [")
    elsewhere = f", {got.run.elsewhere}" if got.run and got.run.elsewhere else ""
    return (
        criterion.id, name, value + by, f"[{interval}", f"{got.seen.level:.1%}", str(got.seen.n), _course(measure, got),
        f"{got.samples.device.type}: {got.samples.device.name}{elsewhere}", got.outcome.value,
    )  # fmt: skip


def _course(measure: Measure, got: Answer) -> str:
    """Return how the number went from pair to pair, of this attempt, as it was taken."""
    assert got.samples is not None
    try:
        return sparkline(values_of(measure, got.samples.metrics[got.clock or measure.of]))
    except NotEnough:
        return "-"


def not_asked_for(task: Task, _evidence: EvidenceSet) -> Iterator[Section]:
    """Name what nobody asked for, so that nobody takes it for seen."""
    asked = {
        "targets": any(criterion.measures for criterion in task.criteria), "hot paths": task.hot_paths,
        "memory over time": task.leaks, "concurrency": task.concurrency, "complexity": task.scaling,
        "regression": comparisons_of(task), "evidence from elsewhere": task.bundles,
    }  # fmt: skip
    left_out = [name for name, parts in asked.items() if not parts]
    if left_out:
        yield Section(title="Not Asked For", text=f"{', '.join(left_out).capitalize()}: not looked at.")


def _nothing(*_seen: object) -> tuple[Never, ...]:
    """Plan or judge nothing: what is told decides nothing."""
    return ()


TARGETS = Check("targets", NAME, 10, RULES, (Measurements,), plan, judge, describe, row=Row.MEASURE)
BASE = Check("base", NAME, 60, (), (Regressions,), _nothing, _nothing, machine.against_base)
HANDED_IN = Check("bundles", NAME, 80, handed_in.RULES, (Bundles,), handed_in.plan, handed_in.judge, handed_in.describe)
MACHINE = Check("machine", NAME, 90, machine.RULES, (), machine.plan, machine.judge, machine.describe)
NOT_ASKED = Check("not_asked", NAME, 100, (), (), _nothing, _nothing, not_asked_for)
