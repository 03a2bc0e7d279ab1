"""The part of the performance gate on targets: does each number's interval meet its target, does each bundle fit?"""

import statistics
from collections.abc import Iterator

from gates.check import About, Check, EvidenceSet
from gates.checks.measures.answers import answers_of, from_elsewhere, level_of, targets_of, why_silent
from gates.checks.measures.collect import Regressions, comparisons_of
from gates.evidence.bundles import Bundles
from gates.evidence.measurements import Measurements, command
from gates.measuring.answers import FITNESS, Answer
from gates.measuring.fitness import TIMED, noise
from gates.measuring.interval import LEAST_RESTARTS, METHOD, pairs_needed
from gates.measuring.taken import MeasurementRun, Taken
from gates.model import SEVERITY, Finding, Level, Outcome, Planned, Row, Severity
from gates.report import Section
from gates.task.task import Criterion, Measure, Task
from gates.words import counted, first_of, in_shell

NAME = "performance"
FAR_ABOVE = 10  # times its target
SAME_WORK = "See that both arms do the same work, and that no cache answers for one: give each step other inputs."
IMPACT = {
    Outcome.FAILED: "The promise of the criterion is not kept on this hardware.",
    Outcome.UNKNOWN: "Whether the promise is kept is not known.",
}
UNASKED = "no measure asks for what it holds; those that it was made for were changed or are not asked for"
COLUMNS = ("Outcome", "Criterion", "Measured", "Measure", "Interval", "Confidence", "n", "Device")


def plan(task: Task) -> Iterator[Planned]:
    """Plan one check for each measure of each criterion."""
    for criterion, i, measure in targets_of(task):
        title = f"{criterion.id}: {measure.name}"
        yield Planned(id=_check(criterion, i), title=title, level=level_of(criterion, measure), criterion=criterion.id)


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Compare each target with its interval; of a ratio far above its target it is asked why, which decides nothing."""
    for criterion, i, measure, got in answers_of(task, evidence):
        level, (sign, limit) = level_of(criterion, measure), measure.bound
        about = About(rule=got.rule, check=_check(criterion, i), criterion=criterion.id, level=level)
        about = about.but(location=task.place(measure), subject=measure.name, impact=IMPACT.get(got.outcome, ""))
        settled = got.outcome in {Outcome.PASSED, Outcome.NOT_APPLICABLE}
        yield about(
            got.outcome,
            _message(measure, got),
            _remedy(task, measure, got),
            expected=f"{sign} {limit:g} {got.unit(measure)}".rstrip(),
            actual=got.shown(measure) + (f", n = {got.seen.n}, on {_device(got)}" if got.seen else f": {got.problem}"),
            severity=Severity.INFO if settled else SEVERITY[Outcome.UNKNOWN][level],
            evidence=got.run.raw if got.run else None,
            command=_command(task, measure) if got.outcome is Outcome.UNKNOWN else "",
        )
        times = got.seen.value / measure.at_least if got.seen and measure.at_least and measure.ratio else 0
        if got.outcome is Outcome.PASSED and times >= FAR_ABOVE:
            why = f"why {measure.name} is so far above"
            about = about.but(severity=Severity.INFO, level=Level.ADVISORY, subject=why, impact="")
            message = f"{measure.name} is {times:.0f} times its target. Why it is so much more was not seen."
            yield about.unknown(message, SAME_WORK, actual=f"{times:.0f} times")


def _device(got: Answer) -> str:
    name = got.samples.device.name if got.samples else "an unknown device"
    return name + (f" ({got.run.elsewhere})" if got.run and got.run.elsewhere else "")


def _message(measure: Measure, got: Answer) -> str:
    name, value = measure.name, got.shown(measure)
    if got.seen is None or got.samples is None:
        return f"{name} was not measured: {got.problem}"
    device = _device(got)
    if got.outcome is Outcome.NOT_APPLICABLE:
        return f"{name} does not apply to {device}: {got.problem}; seen for information: {value}"
    if got.rule == FITNESS:
        return f"{name}: {value} is not believed: {got.problem}"
    seen = f"{name}: {value}{f' by {got.clock}' if got.clock else ''} from {got.seen.n} samples"
    verb = {Outcome.PASSED: " meets the target", Outcome.FAILED: " misses the target"}.get(got.outcome, "")
    verb = verb or ("" if got.problem else " is too uncertain to decide the target")
    return f"{seen}{verb}, on {device}{f': {got.problem}' if got.problem else ''}"


def _remedy(task: Task, measure: Measure, got: Answer) -> str:
    if got.remedy or got.outcome not in {Outcome.FAILED, Outcome.UNKNOWN}:
        return got.remedy
    if got.outcome is Outcome.FAILED:
        return f"Find what makes {' and '.join(measure.arms)} miss the target; the raw samples are in the evidence."
    if got.seen:
        fix = "Measure again on a quieter machine, or take more samples: the interval holds the limit."
        return fix + _needed(measure, got)
    if measure.on in {"any", "cpu"}:
        return "Make the measurement end with good samples, then run the command."
    here = f"then `gates run {task.id} --evidence BUNDLE` here."
    here = "for no bundle brings a comparison with the base." if measure.against_base else here
    return f"Run the command on a machine with a {measure.on} device, {here}"


def _command(task: Task, measure: Measure) -> str:
    """Return what would settle a measure: for a device that is not here, a bundle of all that is asked of it there."""
    alone = measure.on in {"any", "cpu"} or measure.against_base
    return f"gates run {task.id}" if alone else f"gates measure {task.id} --on {measure.on}"


def _needed(measure: Measure, got: Answer) -> str:
    """Return how many pairs may settle it, where the gate took them itself."""
    if (taken := got.run.taken if got.run else None) is None or got.seen is None:
        return ""
    is_timed = (got.clock or measure.of) in TIMED
    needed = pairs_needed(got.seen, measure, taken.split if is_timed else 1)
    what = "pairs" if is_timed else "starts of the processes"
    why = ", for which the budget was too small" if taken.ended == "budget" else ""
    return f" At this noise about {needed} {what} may do{why}." if needed else ""


def _check(criterion: Criterion, index: int) -> str:
    return f"measure:{criterion.id}:{index}"


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell each target with what was measured, and how sure that is."""
    if rows := tuple(_row(criterion, measure, got) for criterion, _, measure, got in answers_of(task, evidence)):
        yield Section(title="Targets", columns=COLUMNS, rows=rows, leads=True)


def _row(criterion: Criterion, measure: Measure, got: Answer) -> tuple[str, ...]:
    name = f"{measure.name}{' (' + level_of(criterion, measure).value + ')' if measure.level else ''}"
    if got.seen is None or got.samples is None:
        return got.outcome.words, criterion.id, "not measured", name, "-", "-", "-", "-"
    value, _, interval = got.shown(measure).partition(" [")
    elsewhere = f", {got.run.elsewhere}" if got.run and got.run.elsewhere else ""
    device = f"{got.samples.device.type}: {got.samples.device.name}{elsewhere}"
    numbers = (f"[{interval}", f"{got.seen.level:.1%}", str(got.seen.n))
    return got.outcome.words, criterion.id, value + (f" (by {got.clock})" if got.clock else ""), name, *numbers, device


def plan_bundles(task: Task) -> Iterator[Planned]:
    """Plan one check for each bundle that was handed in."""
    for path in task.bundles:
        yield Planned(id=f"bundle:{path}", title=f"Evidence from elsewhere: {path}", scored=False)


def judge_bundles(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Say of each bundle whether it is taken, and if not why."""
    known = {one.path: one for one in bundles.handed_in} if (bundles := evidence.get(Bundles)) else {}
    for path in task.bundles:
        about = About(rule="PF008", check=f"bundle:{path}", subject=path, impact="It answers no criterion.")
        about = about.but(expected="as it was written, of the files as they are here")
        if (one := known.get(path)) is None:
            message = f"The bundle {path} was not looked at: {evidence.why_missing(Bundles)}."
            yield about.unknown(message, "Let the gate run.", actual="not looked at")
            continue
        if one.origin is None or not one.runs:
            remedy = "Take the file as `gates measure` wrote it."
            yield about.unknown(f"The bundle {path} is refused: {one.why}.", remedy, actual="refused")
            continue
        about = about.but(evidence=one.runs[0].run.raw)
        devices = dict.fromkeys(f"{s.device.type}: {s.device.name}" for run in one.runs if (s := run.run.samples))
        signed = f"signed by {one.signer}" if one.signer else "not signed"
        made = f"made {one.origin.at} at {one.origin.revision} by {one.origin.by} ({signed}), on {', '.join(devices)}"
        stale = f"{one.why}, since it was made" if all(run.changed for run in one.runs) else ""
        answering = any(why_silent(run, measure) == "" for run in one.runs for _, _, measure in targets_of(task))
        if reason := stale or ("" if answering else UNASKED):
            advised = about.but(level=Level.ADVISORY, actual="stale")
            yield advised.unknown(f"The bundle {path} is stale: {reason}.", "Make it again on such a machine.")
        else:
            part = f" in part ({one.why}, since it was made)" if one.why else ""
            yield about.passed(f"The bundle {path} fits{part}, {made}.", actual="fits", impact="")


MOST = 10
_LOOKED = (
    " Where the gate timed the arms itself, it looked at the pairs as they came in. All looks and all attempts share "
    "one error. The interval is widened to hold Student's interval over the restarts. Failures of several required "
    "targets share the error by Holm's procedure."
)


def describe_machine(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell where and how it was measured, and last the samples."""
    if not (asked := [measure for _, _, measure in targets_of(task)]):
        return
    runs = measurements.runs if (measurements := evidence.get(Measurements)) else ()
    if measurements is None:
        yield Section(title="Measurements", text=f"None: {evidence.why_missing(Measurements)}.")
    for run in (*runs, *(one for one in from_elsewhere(asked, evidence) if one.taken)):
        yield _describe_run(task, run)
    yield Section(
        title="Method",
        text=f"Each number is the {METHOD}: distribution-free, at least 95 % coverage, at least 6 samples. A target is "
        "met where the whole interval lies on its good side, and missed where it lies on the other."
        + (_LOOKED if any(run.taken for run in runs) else ""),
    )
    yield from (_sample_table(run) for run in runs if run.samples)


def against_base(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell what is compared with what, where anything is."""
    if not comparisons_of(task):
        return
    if (seen := evidence.get(Regressions)) is None:
        yield Section(title="Against the Base", text=f"Not compared: {evidence.why_missing(Regressions)}.")
        return
    none = f"Nothing to compare with: {seen.shown} has no file of the implementation." if seen.is_new else ""
    facts = (
        ("Base", seen.shown),
        ("Changed since", first_of(seen.changed, MOST) or "nothing, so nothing was measured"),
        ("The benchmark of here, run on both", ", ".join(seen.lent)),
        *((run.id, run.ended) for run in seen.runs if run.taken),
    )
    text = f"Not compared: {seen.problem}." if seen.problem else none
    yield Section(title="Against the Base", text=text, facts=tuple(fact for fact in facts if fact[1]))


def _describe_run(task: Task, run: MeasurementRun) -> Section:
    title = f"Measurement {run.id} on {run.device}"
    words = command(task, run.id, run.device)
    facts = [("Command", "; ".join(words) if run.taken else in_shell(words)), ("From", run.elsewhere)]
    if samples := run.samples:
        facts += [
            ("Device", f"{samples.device.type}: {samples.device.name}"),
            ("Capabilities", ", ".join(samples.device.capabilities) or "none stated"),
            ("Timing", samples.timing or "not told"),
            *(facts_of(run, run.taken) if run.taken else ()),
            ("Environment", _together(samples.environment)),
            ("Settings", _together(samples.settings)),
        ]
    text = "" if samples else f"No samples: {run.problem}."
    return Section(title=title, text=text, facts=tuple(fact for fact in facts if fact[1]))


def _together(named: dict[str, str]) -> str:
    return "; ".join(f"{name}: {value}" for name, value in sorted(named.items()))


def _sample_table(run: MeasurementRun) -> Section:
    assert run.samples is not None
    rows = []
    for name, metric in sorted(run.samples.metrics.items()):
        for arm, values in sorted(metric.arms.items()):
            numbers = (f"{each:.4g}" for each in (min(values), statistics.median(values), max(values)))
            rows.append((name, metric.unit, arm, str(len(values)), *numbers))
    columns = ("Metric", "Unit", "Arm", "Samples", "Least", "Median", "Most")
    return Section(title=f"Samples of {run.id} on {run.device}", columns=columns, rows=tuple(rows), appendix=True)


def facts_of(run: MeasurementRun, taken: Taken) -> Iterator[tuple[str, str]]:
    """Yield each fact with its name."""
    alone = ": how they differ is not in the interval" if 0 < taken.starts < LEAST_RESTARTS else ""
    split = f", each of {taken.most // taken.split} split into {taken.split}" if taken.split > 1 else ""
    yield "Pairs", f"{taken.pairs} of at most {taken.most}{split}, ended: {taken.ended}"
    started = f"{counted(taken.starts, 'start')}, {counted(taken.threads, 'thread')} each{alone}"
    yield "Processes", started if taken.starts else "one for each sample"
    yield "Time", f"{taken.measured_s:.1f} s measuring, {taken.started_s:.1f} s starting; budget {taken.budget_s:g} s"
    if seen := noise(taken):
        floor = max(abs(seen.high - 1), abs(seen.low - 1))
        yield f"A second copy of {taken.baseline}", f"{seen}, n = {seen.n} (noise floor of wall time {floor:.1%})"
    for arm, values in taken.stretch.items():
        yield f"Wall time over CPU time of {arm}", f"{statistics.median(values):.2f}"
    if taken.waiting is not None:
        yield "Something waited for a processor", f"{taken.waiting:.0%} of the time"
    either = "wall time, or CPU time where the wall clock was disturbed"
    yield "Decides by", either if taken.clock == "either" else f"{taken.clock} time"
    left_out = sum(bool(attempt.unfit) for attempt in run.earlier)
    count = f"; the pairs of all earlier ones count, save for {left_out} that did not end or had an unfit machine"
    yield "Attempt", f"{len(run.earlier) + 1}{count if run.earlier else ''}"


TARGETS = Check("targets", NAME, 10, (Measurements,), plan, judge, describe, row=Row.MEASURE)
BASE = Check("base", NAME, 60, uses=(Regressions,), page=against_base)
HANDED_IN = Check("bundles", NAME, 80, (Bundles,), plan_bundles, judge_bundles)
MACHINE = Check("machine", NAME, 90, page=describe_machine)
