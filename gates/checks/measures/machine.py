"""How the numbers were taken: pages on the machine, the attempts, the baseline and the samples."""

import statistics
from collections.abc import Iterator

from gates.check import EvidenceSet
from gates.checks.measures.answers import from_elsewhere, targets_of
from gates.checks.measures.collect import Regressions, comparisons_of
from gates.evidence.measurements import Measurements, command
from gates.measuring.fitness import noise
from gates.measuring.interval import LEAST_RESTARTS, METHOD
from gates.measuring.taken import MeasurementRun, Taken
from gates.report import Section
from gates.task.task import Task
from gates.words import counted, first_of, in_shell

MOST = 10
_LOOKED = (
    " Where the gate timed the arms itself, it looked at the pairs as they came in. All looks and all attempts share "
    "one error. The interval is widened to hold Student's interval over the restarts. Failures of several required "
    "targets share the error by Holm's procedure."
)


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell where and how it was measured, and last the samples."""
    asked = [measure for _, _, measure in targets_of(task)]
    if not asked:
        return
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
    starts = taken.starts
    alone = ": how they differ is not in the interval" if 0 < starts < LEAST_RESTARTS else ""
    split = f", each of {taken.most // taken.split} split into {taken.split}" if taken.split > 1 else ""
    yield "Pairs", f"{taken.pairs} of at most {taken.most}{split}, ended: {taken.ended}"
    started = f"{counted(starts, 'start')}, {counted(taken.threads, 'thread')} each{alone}"
    yield "Processes", started if starts else "one for each sample"
    yield "Time", f"{taken.measured_s:.1f} s measuring, {taken.started_s:.1f} s starting; budget {taken.budget_s:g} s"
    if seen := noise(taken):
        floor = max(abs(seen.high - 1), abs(seen.low - 1))
        yield f"A second copy of {taken.baseline}", f"{seen}, n = {seen.n} (noise floor of wall time {floor:.1%})"
    for arm, values in taken.stretch.items():
        yield f"Wall time over CPU time of {arm}", f"{statistics.median(values):.2f}"
    if taken.waiting is not None:
        yield "Something waited for a processor", f"{taken.waiting:.0%} of the time"
    yield (
        "Decides by",
        {"either": "wall time, or CPU time where the wall clock was disturbed"}.get(taken.clock, f"{taken.clock} time"),
    )
    left_out = sum(bool(attempt.unfit) for attempt in run.earlier)
    count = f"; the pairs of all earlier ones count, save for {left_out} that did not end or had an unfit machine"
    yield "Attempt", f"{len(run.earlier) + 1}{count if run.earlier else ''}"
