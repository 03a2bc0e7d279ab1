"""The part of the business logic report on the integrity of what is trained: one table of all that was seen of it."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from gates.check import EvidenceSet
from gates.evidence.code_rules import CodeRules, RuleSite, RuleTrace
from gates.evidence.source_tree import SourceTree
from gates.model import Finding, Location, Outcome, Planned, RuleText
from gates.report import Section
from gates.stages import _calculations, _recorded
from gates.task.task import Task

RULES: tuple[RuleText, ...] = ()
LISTED = 5
COLUMNS = ("What", "Expected", "Actual", "Where", "Seen by", "Outcome")
SAID = {
    Outcome.PASSED: "kept",
    Outcome.FAILED: "VIOLATED",
    Outcome.UNKNOWN: "not seen",
    Outcome.NOT_APPLICABLE: "not applicable",
}


@dataclass(frozen=True)
class Topic:
    """Something that training must not harm, the aspect of a training step and the code rules that speak of it."""

    what: str
    aspect: str
    rules: tuple[str, ...]


TOPICS = (
    Topic("Parameters stay in float32", "parameters", ("amp-half-parameters",)),
    Topic(
        "Gradients are unscaled once before they are clipped and used",
        "gradients",
        ("amp-clip-before-unscale", "amp-unscale-twice", "amp-unscale-in-microstep", "amp-unscaled-backward"),
    ),
    Topic("A step that overflows changes no parameter", "overflow", ("amp-plain-step", "amp-step-without-update")),
    Topic("The learning rate stays in a step that is left out", "schedule", ("amp-scheduler-ignores-skip",)),
    Topic("The scaler's state is saved with the optimizer's", "", ("amp-scaler-not-saved",)),
)
Row = tuple[str, str, str, str, str, str]


def plan(_task: Task) -> Iterator[Planned]:
    """Plan nothing: other parts judge what this one sets side by side."""
    yield from ()


def judge(_task: Task, _evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge nothing."""
    yield from ()


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Set side by side what training steps, code rules and round trips show, for a task that has any of them."""
    rules = _rules(evidence)
    spoken = {name for topic in TOPICS for name in topic.rules} & rules.keys()
    if not task.training_steps and not spoken:
        return
    recorded: dict[str, list[Finding]] = defaultdict(list)
    for finding in _recorded.judge(task, evidence):
        recorded[finding.check].append(finding)
    rows = [row for topic in TOPICS for row in _rows(topic, task, recorded, rules)]
    rows += _round_trips(task, evidence)
    bad = sum(row[-1] == SAID[Outcome.FAILED] for row in rows)
    unseen = sum(row[-1] == SAID[Outcome.UNKNOWN] for row in rows)
    yield Section(
        title="Data Integrity",
        text=f"{bad} violations, {unseen} not seen. A rule reads the code; a training step was run.",
        columns=COLUMNS,
        rows=tuple(rows),
    )


def _rules(evidence: EvidenceSet) -> dict[str, RuleTrace]:
    """Return what each rule found that the task asks for or that a criterion is bound to."""
    tree, applied = evidence.get(SourceTree), evidence.get(CodeRules)
    bound = {trace.rule: trace for trace in (tree.rules if tree else ())}
    return {**bound, **{trace.rule: trace for trace in (applied.applied if applied else ())}}


def _rows(
    topic: Topic, task: Task, recorded: dict[str, list[Finding]], rules: dict[str, RuleTrace]
) -> Iterator[Row]:  # fmt: skip
    found = [*_from_steps(topic, task, recorded), *_from_rules(topic, rules)]
    if not found:
        found = [(topic.what, "-", "nothing looked at it", "-", "-", SAID[Outcome.UNKNOWN])]
    yield from found


def _from_steps(topic: Topic, task: Task, recorded: dict[str, list[Finding]]) -> Iterator[Row]:
    for i, step in enumerate(task.training_steps):
        for finding in recorded.get(f"recorded:{i}:{topic.aspect}", ()):
            where = str(finding.location) if finding.location and finding.outcome is not Outcome.UNKNOWN else "-"
            yield (
                topic.what, finding.expected or "unchanged", finding.actual, where,
                f"training step {i + 1}, {step.name}", SAID[finding.outcome],
            )  # fmt: skip


def _from_rules(topic: Topic, rules: dict[str, RuleTrace]) -> Iterator[Row]:
    for trace in (rules[name] for name in topic.rules if name in rules):
        expected, by = f"{trace.rule} is kept", f"rule {trace.rule}"
        if trace.problem:
            yield topic.what, expected, trace.problem, "-", by, SAID[Outcome.UNKNOWN]
            continue
        bad = [site for site in trace.sites if not site.ok and not site.undecided]
        open_ = [site for site in trace.sites if not site.ok and site.undecided]
        for site in bad[:LISTED]:
            yield topic.what, expected, _told(site), str(site.location), by, SAID[Outcome.FAILED]
        if len(bad) > LISTED:
            yield topic.what, expected, f"{len(bad) - LISTED} more places", "-", by, SAID[Outcome.FAILED]
        if open_:
            more = f" (and {len(open_) - 1} more)" if len(open_) > 1 else ""
            yield topic.what, expected, _told(open_[0]) + more, str(open_[0].location), by, SAID[Outcome.UNKNOWN]
        if not bad and not open_:
            kept = [site.location for site in trace.sites]
            actual = f"kept in {len(kept)} place{'s' if len(kept) > 1 else ''}" if kept else "no place breaks it"
            yield topic.what, expected, actual, _first(kept), by, SAID[Outcome.PASSED] if kept else "none found"


def _told(site: RuleSite) -> str:
    return " -> ".join(site.trace) or site.message


def _first(places: list[Location]) -> str:
    return str(places[0]) if places else "-"


def _round_trips(task: Task, evidence: EvidenceSet) -> Iterator[Row]:
    """Yield the properties that say that something comes back as it was."""
    wanted = {f"property:{i}": stated for i, stated in enumerate(task.properties) if stated.law == "inverse"}
    seen: set[str] = set()
    for finding in _calculations.judge(task, evidence) if wanted else ():
        check = ":".join(finding.check.split(":")[:2])
        if check in wanted and check not in seen:
            seen.add(check)
            where = str(finding.location) if finding.location else "-"
            yield (
                wanted[check].name, "comes back as it was", finding.actual or finding.message, where,
                f"property of {wanted[check].call}", SAID[finding.outcome],
            )  # fmt: skip
