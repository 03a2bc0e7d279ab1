"""What `gates explain`, `list`, `rules` and `schema` say: from verdict to rule to evidence, and what there is."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from gates import pipeline, store
from gates.bundles import Bundle
from gates.config import Project
from gates.errors import UsageError
from gates.measuring.samples import Samples
from gates.model import Finding, Model, Outcome, RuleText
from gates.report import CriterionReport, Report, Trace, ranked
from gates.scan.loading import load_rules
from gates.scan.rule import Rule
from gates.task import loading as spec
from gates.task.task import Task
from gates.task.yaml_source import did_you_mean
from gates.words import visible

RULE_ID = re.compile(r"[A-Z]{2}[0-9]{3}")
LISTED = 3


def explain(subject: str, criterion: str | None, project: Project, out: Path | None) -> list[str]:
    """Explain a rule, a code rule, a task or a criterion; raise `UsageError` for what there is not."""
    known = pipeline.rule_texts()
    if subject in known:
        return _rule(known[subject])
    code_rules = load_rules(project.rules, project.root)
    if subject in code_rules:
        return _code_rule(code_rules[subject])
    if RULE_ID.fullmatch(subject):
        raise UsageError(f"there is no rule {subject!r}{did_you_mean(subject, known)}")
    task = spec.of_project(subject, project)
    report = store.last(out or project.reports / task.id)
    folder = out or Path(project.settings.reports, task.id)
    if criterion in known:
        return [*_rule(known[criterion]), "", *_findings(report, lambda f: f.rule == criterion, known)]
    if criterion is None:
        stopping = _findings(report, lambda f: f.blocks or f.leaves_open, known)
        return [*_verdict(task, report, folder), "", *(stopping or map(visible, _foundation(report)))]
    asked = task.criterion(criterion)
    lines = [
        f"{task.id} {asked.id} ({asked.level.value}): {asked.text}",
        f"  asked for in {task.place(asked)}",
    ]
    stood = next((c for c in report.criteria if c.id == criterion), None) if report else None
    if report is None or stood is None:
        return [*lines, f"  never judged; run `gates run {task.id}`"]
    lines += [*_verdict(task, report, folder), "", f"status: {stood.status.value}", *_standing(stood), ""]
    return [*map(visible, lines), *_findings(report, lambda f: f.criterion == criterion, known)]


def every_rule(project: Project) -> list[str]:
    """Return the rules of the gates and the code rules, a line each."""
    gates = [f"{rule.id}  {rule.title}" for rule in pipeline.rule_texts().values()]
    code = [
        f"{rule.id}  ({rule.form.severity.value}) {rule.form.problem}"
        for rule in load_rules(project.rules, project.root).values()
    ]
    return [*gates, "", *map(visible, code)]


def _verdict(task: Task, report: Report | None, folder: Path) -> list[str]:
    if report is None:
        return [f"{task.id} {task.title}: never judged; run `gates run {task.id}`"]
    stale = "" if report.task.digest == task.digest else " (the task file has changed since)"
    commit = report.revision.commit or "no commit"
    return [f"verdict of {report.started_at}, {commit}: {report.headline}{stale}", f"reports and evidence: {folder}"]


def _foundation(report: Report | None) -> Iterator[str]:
    """Say of each criterion what its status rests on, the first of each kind."""
    for criterion in report.criteria if report else ():
        yield f"{criterion.id} {criterion.status.value}: {criterion.text}"
        yield from (f"  {'though':<12} {reason}" for reason in criterion.reasons[:LISTED])
        yield from _standing(criterion)


def _standing(criterion: CriterionReport) -> Iterator[str]:
    """Say what verifies a criterion, the first of each kind: what did not pass comes first."""
    for title, traces in _kinds(criterion).items():
        shown = sorted(traces, key=lambda trace: trace.outcome is Outcome.PASSED)[:LISTED]
        yield from (f"  {title:<12} {_trace(trace)}" for trace in shown)
        if len(traces) > LISTED:
            yield f"  {title:<12} ... and {len(traces) - LISTED} more"


def _kinds(criterion: CriterionReport) -> dict[str, list[Trace]]:
    """Return what stands for a criterion by what it is."""
    kinds: dict[str, list[Trace]] = {}
    for title, traces in (("code", criterion.code), ("test", criterion.tests), ("measure", criterion.measures)):
        for trace in traces:
            kinds.setdefault(trace.kind or title, []).append(trace)
    return kinds


def _trace(trace: Trace) -> str:
    where = f" at {trace.location}" if trace.location else ""
    told = trace.detail not in {"", trace.outcome.value}
    return f"{trace.outcome.words:<15} {trace.name}{where}" + (f" ({trace.detail})" if told else "")


def _findings(report: Report | None, chosen: Callable[[Finding], bool], known: dict[str, RuleText]) -> list[str]:
    """Return the findings that fit, each with its rule and the raw file that it rests on; advice is given once."""
    if report is None:
        return []
    lines, given = [], set[tuple[str, str]]()
    for finding in ranked(filter(chosen, report.every_finding)):
        if finding.outcome not in {Outcome.FAILED, Outcome.UNKNOWN}:
            lines.append(_in_one_line(finding))
            continue
        title = known[finding.rule].title if finding.rule in known else "unknown rule"
        lines.append(f"{finding.outcome.value:<8} {finding.rule} ({title}) {finding.location or ''}".rstrip())
        lines.append(f"  {finding.message}")
        details = [each for each in _details(finding) if each[1] and each not in given]
        given.update(each for each in details if each[0] in {"impact", "fix", "command"})
        lines += [f"  {name}: {value}" for name, value in details]
    return [visible(line) for line in lines]


def _in_one_line(finding: Finding) -> str:
    evidence = f" (evidence: evidence/{finding.evidence})" if finding.evidence else ""
    return f"{finding.outcome.words:<8} {finding.rule} {finding.message}{evidence}"


def _details(finding: Finding) -> Iterator[tuple[str, str]]:
    yield "expected", finding.expected
    yield "actual", finding.actual
    yield "impact", finding.impact
    yield "fix", finding.remediation
    yield "command", finding.command
    yield "evidence", f"evidence/{finding.evidence}" if finding.evidence else ""
    yield "waived", str(finding.waived).removeprefix("waived ") if finding.waived else ""


def _rule(rule: RuleText) -> list[str]:
    return [f"{rule.id}: {rule.title}", f"  {rule.meaning}"]


def _code_rule(rule: Rule) -> list[str]:
    form = rule.form

    def shortest(title: str, texts: tuple[str, ...]) -> Iterator[str]:
        if texts:
            yield f"  {title}:"
            yield from (f"    {line}" for line in min(texts, key=len).splitlines())

    lines = [
        f"{rule.id} ({rule.form.severity.value}): {form.problem}",
        f"  impact: {form.impact}",
        f"  fix: {form.fix}",
        *([f"  tags: {', '.join(form.tags)}"] if form.tags else []),
        *shortest("good", form.good),
        *shortest("bad", form.bad),
        *([f"  {more} more examples: {rule.source}"] if (more := len(form.good) + len(form.bad) - 2) > 0 else []),
    ]
    return [visible(line) for line in lines]


def overview(project: Project) -> tuple[list[str], list[str]]:
    """Return the lines of the list, and what is wrong with the task files that could not be loaded."""
    tasks, broken = spec.load_all(project)
    lines: list[str] = []
    for task in tasks:
        try:
            lines += _task(task, store.last(project.reports / task.id))
        except UsageError as error:
            broken.append(str(error))
    if not spec.task_files(project.tasks):
        lines.append(f"no task file (*.yaml) in {project.settings.tasks!r}")
    return lines, broken


def _task(task: Task, report: Report | None) -> list[str]:
    if report is None:
        verdict = "never run"
    else:
        stale = "" if report.task.digest == task.digest else "; the task file has changed since"
        verdict = f"{report.headline} on {report.started_at}{stale}"
    status = {criterion.id: criterion.status.value for criterion in report.criteria} if report else {}
    return [
        f"{task.id}  {task.title}  [{verdict}]",
        *(f"  {c.id:<6} {c.level.value:<9} {status.get(c.id, '-'):<16} {c.text}" for c in task.criteria),
    ]


DIALECT = "https://json-schema.org/draft/2020-12/schema"
MODELS: dict[str, tuple[type[Model], str]] = {
    "result": (Report, "serialization"),
    "task": (Task, "validation"),
    "samples": (Samples, "validation"),
    "bundle": (Bundle, "validation"),
}


def schema_of(name: str) -> str:
    """Return the JSON schema of a kind of file, as text."""
    model, mode = MODELS[name]
    schema = model.model_json_schema(by_alias=True, mode="serialization" if mode == "serialization" else "validation")
    if name == "task":
        for part in (schema, *schema.get("$defs", {}).values()):
            properties = part.get("properties", {})
            part["properties"] = {key: value for key, value in properties.items() if not value.get("readOnly")}
    return json.dumps({"$schema": DIALECT, **schema}, indent=2, sort_keys=True)
