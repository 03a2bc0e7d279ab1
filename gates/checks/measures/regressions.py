"""The part of the performance gate on regressions: is it slower or larger than it was at the baseline revision?"""

from collections.abc import Iterator
from dataclasses import dataclass

from gates.check import EvidenceSet
from gates.checks.measures.answers import Answer, compared, regressions_of
from gates.checks.measures.base.collect import Regressions
from gates.evidence.measurement_run import MeasurementRun
from gates.measuring.comparison import limits_of, of_regression
from gates.model import Finding, Level, Outcome, Planned, RuleText
from gates.task.measurement import Regression
from gates.task.task import Criterion, Measure, Task

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


@dataclass(frozen=True)
class _Told:
    """What is said of one limit of a regression."""

    outcome: Outcome
    message: str
    actual: str
    run: MeasurementRun | None = None
    remedy: str = ""


def plan(task: Task) -> Iterator[Planned]:
    """Plan for each regression the limit that blocks, for each criterion that it stands for too, and a warning."""
    for i, regression in enumerate(task.regressions):
        title = f"Not worse than the baseline: {regression.name}"
        if not regression.criteria:
            yield Planned(id=f"regression:{i}", title=title)
        for criterion in _criteria(task, regression):
            name = criterion.id
            yield Planned(
                id=f"regression:{i}:for:{name}", title=f"{name}: {title}", level=criterion.level, criterion=name
            )
        yield Planned(id=f"regression:{i}:warn", title=f"{title} (warning)", level=Level.SHOULD)


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge both limits of each regression; failures that block share the error with those of targets."""
    blocks = regressions_of(task, evidence)
    for i, regression in enumerate(task.regressions):
        block, warn = limits_of(regression)
        got = _told(block, evidence, blocks[i])
        if not regression.criteria:
            yield _finding(task, evidence, regression, block, got, check=f"regression:{i}", level=Level.MUST)
        for criterion in _criteria(task, regression):
            about = {"check": f"regression:{i}:for:{criterion.id}", "level": criterion.level, "criterion": criterion.id}
            yield _finding(task, evidence, regression, block, got, **about)
        told = _told(warn, evidence, compared(task, of_regression(regression), warn, evidence))
        yield _finding(task, evidence, regression, warn, told, check=f"regression:{i}:warn", level=Level.SHOULD)


def _criteria(task: Task, regression: Regression) -> list[Criterion]:
    return [criterion for criterion in task.criteria if criterion.id in regression.criteria]


def _told(limit: Measure, evidence: EvidenceSet, got: Answer) -> _Told:
    seen = evidence.get(Regressions)
    if seen is not None and not seen.changed:
        message = f"nothing has changed since {seen.shown}: there is nothing to compare"
        return _Told(Outcome.NOT_APPLICABLE, message, "nothing changed")
    if seen is not None and seen.is_new:
        message = f"{seen.shown} has no file of the implementation: there is nothing to compare with"
        return _Told(Outcome.NOT_APPLICABLE, message, "no baseline")
    at = f" at {seen.shown}" if seen else ""
    if got.seen is None:
        return _Told(Outcome.UNKNOWN, f"not compared with the baseline{at}: {got.problem}", "not measured", got.run)
    over = "baseline over candidate" if limit.arms[0] == "baseline" else "candidate over baseline"
    told = f"{over} is {got.seen} from {got.seen.n} samples, the baseline{at}"
    if got.unfit or (got.outcome is Outcome.UNKNOWN and got.problem):
        fit = "Measure again on a machine that is fit for it." if got.unfit else ""
        return _Told(Outcome.UNKNOWN, f"{told}: {got.problem}", str(got.seen), got.run, got.remedy or fit)
    verb = {Outcome.FAILED: "is", Outcome.PASSED: "is not"}.get(got.outcome, "may or may not be")
    return _Told(got.outcome, f"{told}: it {verb} more than {_percent(limit)} worse", str(got.seen), got.run)


def _percent(limit: Measure) -> str:
    return f"{100 * (limit.bound[1] - 1):.4g} %"


def _finding(
    task: Task, evidence: EvidenceSet, regression: Regression, limit: Measure, told: _Told, **about: object
) -> Finding:
    return Finding.model_validate(
        {
            "rule": "PF009", "outcome": told.outcome, "subject": regression.name,
            "message": f"{regression.name}: {told.message}.", "location": task.place(regression),
            "expected": f"<= {limit.bound[1]:g}", "actual": told.actual,
            "impact": IMPACT if told.outcome is Outcome.FAILED else "", "remediation": _remedy(task, evidence, told),
            "command": f"gates run {task.id} --gate performance" if told.outcome is Outcome.UNKNOWN else "",
            "evidence": told.run.raw if told.run else None, **about,
        }
    )  # fmt: skip


def _remedy(task: Task, evidence: EvidenceSet, told: _Told) -> str:
    seen = evidence.get(Regressions)
    if told.outcome is Outcome.FAILED and seen:
        return REMEDY.format(commit=seen.commit[:12], paths=" ".join(task.implementation))
    if told.outcome is not Outcome.UNKNOWN:
        return ""
    if told.remedy:
        return told.remedy
    if told.run and told.run.samples and told.actual == "not measured":
        return "Take more samples: more 'restarts' for memory, more 'pairs' for times, a larger 'budget_s' for both."
    if told.actual != "not measured":
        return "Measure again on a quieter machine, or with more 'pairs': the interval holds the limit."
    return "Name a revision that runs with --base, or what makes it ready with 'build'."
