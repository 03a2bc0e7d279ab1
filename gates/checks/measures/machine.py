"""Measuring itself: was the machine fit, how often was it tried, and how were the numbers taken?"""

import statistics
from collections.abc import Iterator, Sequence

from gates.check import About, EvidenceSet
from gates.checks.measures.answers import ALIKE, Answered, answers_of, from_elsewhere, level_of, targets_of
from gates.checks.measures.collect import Regressions, comparisons_of
from gates.evidence.measurements import Measurements, command
from gates.measuring.fitness import TIMED, contended, differing, floor_of, noise
from gates.measuring.interval import LEAST_RESTARTS, METHOD, pairs_needed, smallest_effect
from gates.measuring.taken import MeasurementRun, Taken
from gates.model import SEVERITY, Finding, Level, Outcome, Planned, as_rules
from gates.report import Section
from gates.task.measurement import Measurement
from gates.task.task import Task
from gates.words import counted, in_shell

RULES = as_rules(
    PF002="The machine was fit to measure. While the gate measured, the machine was not disturbed, two copies of one "
    "arm agreed, and arms returned the same where asked. Otherwise no interval decides.",
    PF003="Every attempt counts. Each measurement of the same code on one machine goes into a ledger. All attempts "
    "share one error, so that trying again changes no verdict. A ledger that cannot be read leaves it open.",
)
QUIETER = "Measure on a quieter machine, or let `clock: either` decide comparisons by CPU time (`threads: 1`)."
MEND = "Fix what keeps the arms from running to their end."


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
        name, level = measurement.id, _level(task, measurement)
        runs = measurements.of(name) if measurements else ()
        runs += from_elsewhere(task.measures_of(name), evidence)
        why = evidence.why_missing(Measurements) if measurements is None else "it was not run"
        why = next((run.problem for run in runs if run.problem), why)
        taken = [run for run in runs if run.taken]
        asked = [one for one in answers_of(task, evidence) if one[2].from_ == name]
        about = About(location=task.place(measurement), subject=name, level=level, actual="not known")
        about = about.but(command=f"gates run {task.id} --gate performance")
        wanted = "a machine that disturbs nothing, arms that do the same"
        fit = about.but(rule="PF002", check=f"machine:{name}", expected=wanted)
        yield _fit(fit, measurement, [run.taken for run in taken if run.taken], why, asked)
        ledger = about.but(rule="PF003", check=f"attempts:{name}", expected="a ledger as it was written")
        yield _attempts(ledger, name, taken, why)


def _asked(task: Task) -> Iterator[Measurement]:
    wanted = {measure.from_ for _, _, measure in targets_of(task) if not measure.against_base}
    yield from (one for one in task.measurements if one.arms and one.id in wanted)


def _level(task: Task, measurement: Measurement) -> Level:
    levels = [level_of(criterion, m) for criterion, _, m in targets_of(task) if m.from_ == measurement.id]
    return min(levels, key=list(Level).index)


def _fit(
    about: About, measurement: Measurement, taken: Sequence[Taken], why: str, asked: Sequence[Answered]
) -> Finding:
    name, met = measurement.id, about.but(actual="yes", command="")
    if not taken:
        return about.unknown(f"{name}: nothing was measured: {why}.", MEND)
    for unlike, outcome in map(differing, taken) if measurement.same_result else ():
        if unlike:
            level = min((level_of(one[0], one[2]) for one in asked), key=list(Level).index)
            told = met.but(actual="no") if outcome is Outcome.FAILED else about
            return told(outcome, f"{name}: {unlike}.", ALIKE, severity=SEVERITY[Outcome.UNKNOWN][level])
    if unfit := [one for one in asked if one[3].unfit]:  # as binding as what it leaves open
        level = min((level_of(one[0], one[2]) for one in unfit), key=list(Level).index)
        reasons = dict.fromkeys(reason for one in unfit for reason in one[3].unfit)
        return about.unknown(f"{name}: {'; '.join(reasons)}.", QUIETER, level=level)
    by_clock = [got.run.taken for *_, got in asked if got.clock and got.run and got.run.taken]
    by_cpu = [f"; CPU time decides, because {reason}" for one in by_clock for reason in contended(one)]
    copies = [
        f"a second copy of {one.baseline} took {seen.value:.3g} [{seen.low:.3g}, {seen.high:.3g}] times as long as the "
        f"first ({seen.n} pairs)"
        if (seen := noise(one))
        else "no second copy was timed"
        for one in taken
    ]
    return met.passed("".join([f"{name}: nothing disturbed what decides; ", "; ".join(copies), *by_cpu[:1], "."]))


def _attempts(about: About, name: str, runs: Sequence[MeasurementRun], why: str) -> Finding:
    if not runs:
        return about.unknown(f"{name}: no attempt came to its end: {why}.", MEND)
    earlier = runs[0].earlier
    if earlier.problem:
        fix = "Put the ledger back as it was: what was tried before counts."
        return about.unknown(f"{name}: {earlier.problem}.", fix)
    count, left_out = len(earlier.attempts), sum(bool(attempt.unfit) for attempt in earlier.attempts)
    message = f"attempt {count + 1}; the pairs of all earlier ones count" if count else "the first attempt"
    message += f", save for {left_out} that did not end or had an unfit machine" if left_out else ""
    return about.passed(f"{name}: {message}.", actual="yes", command="")


MOST = 10
_LOOKED = (
    " Where the gate timed the arms itself, it looked at the pairs as they came in. All looks and all attempts share "
    "one error. The interval is widened to hold Student's interval over the restarts. Failures of several required "
    "targets share the error by Holm's procedure."
)


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell how small an effect could be seen, where and how it was measured, and last the samples."""
    asked = [measure for _, _, measure in targets_of(task)]
    if not asked:
        return
    yield from _outlooks(task, evidence)
    measurements = evidence.get(Measurements)
    runs = measurements.runs if measurements else ()
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
    seen = evidence.get(Regressions)
    if seen is None:
        yield Section(title="Against the Base", text=f"Not compared: {evidence.why_missing(Regressions)}.")
        return
    more = f" and {len(seen.changed) - MOST} more" if len(seen.changed) > MOST else ""
    none = f"Nothing to compare with: {seen.shown} has no file of the implementation." if seen.is_new else ""
    facts = (
        ("Base", seen.shown),
        ("Changed since", ", ".join(seen.changed[:MOST]) + more or "nothing, so nothing was measured"),
        ("The benchmark of here, run on both", ", ".join(seen.lent)),
        *((run.id, run.ended) for run in seen.runs if run.taken),
    )
    text = f"Not compared: {seen.problem}." if seen.problem else none
    yield Section(title="Against the Base", text=text, facts=tuple(fact for fact in facts if fact[1]))


def _outlooks(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell of what the gate timed itself how small an effect it could have seen, and what would settle what is open."""
    rows = []
    for criterion, _, measure, got in answers_of(task, evidence):
        if got.seen and got.run and got.run.taken and got.outcome is not Outcome.NOT_APPLICABLE:
            by = got.clock or measure.of
            floor = noise(got.run.taken, by) if by in TIMED else None
            more = pairs_needed(got.seen, measure, got.run.taken.split if floor else 1)
            needed = str(more or "-") if got.outcome is Outcome.UNKNOWN else "settled"
            effect, least = f"{smallest_effect(got.seen, measure):.2%}", f"{floor_of(floor):.2%}" if floor else "-"
            rows.append((criterion.id, measure.name, effect, least, needed))
    if rows:
        columns = ("Criterion", "Measure", "Smallest effect seen", "Noise floor", "Pairs to settle it")
        yield Section(title="Sensitivity", columns=columns, rows=tuple(rows))


def _describe_run(task: Task, run: MeasurementRun) -> Section:
    title = f"Measurement {run.id} on {run.device}"
    words = command(task, run.id, run.device)
    asked = [("Command", "; ".join(words) if run.taken else in_shell(words)), ("From", run.elsewhere)]
    if run.samples is None:
        facts = tuple(fact for fact in asked if fact[1])
        return Section(title=title, text=f"No samples: {run.problem}.", facts=facts)
    device = run.samples.device
    asked += [
        ("Device", f"{device.type}: {device.name}"),
        ("Capabilities", ", ".join(device.capabilities) or "none stated"),
        ("Timing", run.samples.timing or "not told"),
        *(facts_of(run, run.taken) if run.taken else ()),
        ("Environment", _together(run.samples.environment)),
        ("Settings", _together(run.samples.settings)),
    ]
    return Section(title=title, facts=tuple(fact for fact in asked if fact[1]))


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
    starts = taken.starts
    alone = ": how they differ is not in the interval" if 0 < starts < LEAST_RESTARTS else ""
    split = f", each of {taken.most // taken.split} split into {taken.split}" if taken.split > 1 else ""
    yield "Pairs", f"{taken.pairs} of at most {taken.most}{split}, ended: {taken.ended}"
    started = f"{counted(starts, 'start')}, {counted(taken.threads, 'thread')} each{alone}"
    yield "Processes", started if starts else "one for each sample"
    yield "Time", f"{taken.measured_s:.1f} s measuring, {taken.started_s:.1f} s starting; budget {taken.budget_s:g} s"
    seen = noise(taken)
    yield (
        f"A second copy of {taken.baseline}",
        f"{seen}, n = {seen.n} (noise floor of wall time {floor_of(seen):.1%})" if seen else "not timed",
    )
    for arm, values in taken.stretch.items():
        yield f"Wall time over CPU time of {arm}", f"{statistics.median(values):.2f}"
    if taken.waiting is not None:
        yield "Something waited for a processor", f"{taken.waiting:.0%} of the time"
    yield (
        "Decides by",
        {"either": "wall time, or CPU time where the wall clock was disturbed"}.get(taken.clock, f"{taken.clock} time"),
    )
    yield "Attempt", str(len(run.earlier.attempts) + 1)
