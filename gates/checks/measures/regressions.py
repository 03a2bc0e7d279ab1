"""The part of the performance gate on regressions: is it slower or larger than it was at the baseline revision?"""

import statistics
from collections.abc import Iterator
from dataclasses import replace

from gates.check import EvidenceSet
from gates.checks.measures.answers import Answer, compared, regressions_of, told_by
from gates.checks.measures.base.collect import Regressions
from gates.judging import Said, for_criteria
from gates.measuring.comparison import BASELINE, CANDIDATE, comparisons_of, limits_of, of_regression
from gates.measuring.fitness import noise
from gates.measuring.interval import smallest_effect
from gates.measuring.taken import MeasurementRun
from gates.model import Finding, Level, Outcome, Planned, RuleText
from gates.report import Section
from gates.task.measurement import Regression
from gates.task.task import Measure, Task
from gates.words import sparkline

MOST = 10
COLUMNS = (
    "Number", "Baseline", "Candidate", "Candidate over baseline", "n", "Warns, blocks above", "Noise floor",
    "Smallest effect seen", "Candidate's course",
)  # fmt: skip


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell what was compared with what, each number on both sides, and how sure that is."""
    if not comparisons_of(task):
        return
    seen = evidence.get(Regressions)
    if seen is None:
        yield Section(title="Regression", text=f"Not compared: {evidence.why_missing(Regressions)}.")
        return
    rows = [_row(one, seen.of(task, of_regression(one)), seen) for one in task.regressions]
    yield Section(
        title="Regression", text=_text(seen), facts=tuple(_facts(seen)),
        columns=COLUMNS,
        rows=tuple(rows) if seen.runs else (),
    )  # fmt: skip


def _text(seen: Regressions) -> str:
    if not seen.changed:
        return f"Nothing has changed since {seen.shown}, so nothing was measured."
    if seen.is_new:
        return f"{seen.shown} has no file of the implementation, so there is nothing to compare with."
    return f"Not compared: {seen.problem}." if seen.problem else ""


def _facts(seen: Regressions) -> Iterator[tuple[str, str]]:
    yield "Baseline", seen.shown
    if seen.changed:
        more = f" and {len(seen.changed) - MOST} more" if len(seen.changed) > MOST else ""
        yield "Changed since", ", ".join(seen.changed[:MOST]) + more
    if seen.lent:
        yield "The benchmark of here, run on both", ", ".join(seen.lent)
    for one in seen.runs:
        if one.run.taken:
            yield f"{one.run.id}/{one.arm}", one.run.ended


def _row(regression: Regression, run: MeasurementRun | None, seen: Regressions) -> tuple[str, ...]:
    limits = f"{regression.warns_at:.0%}, {regression.block_at:.0%}"
    if run is None or run.samples is None:
        problem = run.problem if run else seen.problem or "not measured"
        return regression.name, "-", "-", problem, "-", limits, "-", "-", "-"
    block, _ = limits_of(regression)
    got = told_by(run, block)
    metric = run.samples.metrics.get(got.clock or regression.of)
    floor = noise(run.taken, got.clock or regression.of) if run.taken and not regression.of.endswith("bytes") else None
    sides = [metric.arms[side] for side in (BASELINE, CANDIDATE)] if metric else [(), ()]
    return (
        f"{regression.name}{f' by {got.clock}' if got.clock else ''}",
        *(f"{statistics.median(values):.4g} {metric.unit}" if metric and values else "-" for values in sides),
        str(got.seen) if got.seen else got.problem, str(got.seen.n) if got.seen else "-", limits,
        f"{floor.floor:.1%}" if floor else "-", f"{smallest_effect(got.seen, block):.1%}" if got.seen else "-",
        sparkline(sides[1]),
    )  # fmt: skip


RULES = (
    RuleText(
        id="PF009",
        title="No regression against the baseline",
        meaning="One benchmark runs on the baseline's files and on the change's, in turn. It fails where "
        "the whole interval is above `block_at`, and warns above `warn_at`.",
    ),
)
REMEDY = "Find what became slower: `git diff {commit} -- {paths}`. Where it must be, raise the limit and say why."
IMPACT = "Whoever takes this change pays for it."


COMMAND = "gates run {} --gate performance"
FIT = "Measure again on a machine that is fit for it."
QUIETER = "Measure again on a quieter machine, or with more 'pairs': the interval holds the limit."
MORE = "Take more samples: more 'restarts' for memory, more 'pairs' for times, a larger 'budget_s' for both."
RUNS = "Name a revision that runs with --base, or what makes it ready with 'build'."


def plan(task: Task) -> Iterator[Planned]:
    """Plan for each regression the limit that blocks, for each criterion that it stands for too, and a warning."""
    for i, regression in enumerate(task.regressions):
        title = f"Not worse than the baseline: {regression.name}"
        if not regression.criteria:
            yield Planned(id=f"regression:{i}", title=title)
        yield from for_criteria(task, regression, f"regression:{i}:for", f": {title}")
        yield Planned(id=f"regression:{i}:warn", title=f"{title} (warning)", level=Level.SHOULD)


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge both limits of each regression; failures that block share the error with those of targets."""
    blocks = regressions_of(task, evidence)
    for i, regression in enumerate(task.regressions):
        block, warn = limits_of(regression)
        about: list[tuple[str, Level, str | None]] = [
            (f"regression:{i}:for:{c.id}", c.level, c.id) for c in task.criteria_of(regression)
        ]
        said = _said(task, block, evidence, blocks[i])
        for check, level, criterion in about if regression.criteria else [(f"regression:{i}", Level.MUST, None)]:
            yield _finding(task, regression, said, blocks[i], check, level, criterion)
        got = compared(task, of_regression(regression), warn, evidence)
        yield _finding(
            task, regression, _said(task, warn, evidence, got), got, f"regression:{i}:warn", Level.SHOULD, None
        )


def _said(task: Task, limit: Measure, evidence: EvidenceSet, got: Answer) -> Said:
    seen = evidence.get(Regressions)
    if seen is not None and not seen.changed:
        message = f"nothing has changed since {seen.shown}: there is nothing to compare"
        said = Said(Outcome.NOT_APPLICABLE, message, "nothing changed")
    elif seen is not None and seen.is_new:
        message = f"{seen.shown} has no file of the implementation: there is nothing to compare with"
        said = Said(Outcome.NOT_APPLICABLE, message, "no baseline")
    else:
        said = _compared(task, limit, seen, got)
    return replace(said, expected=f"<= {limit.bound[1]:g}")


def _compared(task: Task, limit: Measure, seen: Regressions | None, got: Answer) -> Said:
    at = f" at {seen.shown}" if seen else ""
    if got.seen is None:
        remedy = got.remedy or (MORE if got.run and got.run.samples else RUNS)
        message = f"not compared with the baseline{at}: {got.problem}"
        return Said(Outcome.UNKNOWN, message, "not measured", remediation=remedy)
    over = "baseline over candidate" if limit.arms[0] == "baseline" else "candidate over baseline"
    told, actual = f"{over} is {got.seen} from {got.seen.n} samples, the baseline{at}", str(got.seen)
    if got.unfit or (got.outcome is Outcome.UNKNOWN and got.problem):
        remedy = got.remedy or (FIT if got.unfit else QUIETER)
        return Said(Outcome.UNKNOWN, f"{told}: {got.problem}", actual, remediation=remedy)
    verb = {Outcome.FAILED: "is", Outcome.PASSED: "is not"}.get(got.outcome, "may or may not be")
    said = Said(got.outcome, f"{told}: it {verb} more than {_percent(limit)} worse", actual)
    if got.outcome is Outcome.FAILED and seen:
        fix = REMEDY.format(commit=seen.commit[:12], paths=" ".join(task.implementation))
        return replace(said, impact=IMPACT, remediation=fix)
    return replace(said, remediation=QUIETER) if got.outcome is Outcome.UNKNOWN else said


def _percent(limit: Measure) -> str:
    return f"{100 * (limit.bound[1] - 1):.4g} %"


def _finding(
    task: Task, regression: Regression, said: Said, got: Answer, check: str, level: Level, criterion: str | None
) -> Finding:
    run = got.run if said.outcome is not Outcome.NOT_APPLICABLE else None
    return Finding(
        rule="PF009", check=check, criterion=criterion, level=level, outcome=said.outcome, subject=regression.name,
        message=f"{regression.name}: {said.message}.", location=task.place(regression), expected=said.expected,
        actual=said.actual, impact=said.impact, remediation=said.remediation, evidence=run.raw if run else None,
        command=COMMAND.format(task.id) if said.outcome is Outcome.UNKNOWN else "",
    )  # fmt: skip
