"""What `gates explain`, `list`, `rules` and `schema` say: from verdict to rule to evidence, and what there is."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from gates import pipeline, store
from gates.bundles import Bundle
from gates.config import Project
from gates.errors import UsageError
from gates.measuring.samples import Samples
from gates.model import Finding, Model, Outcome, RuleText
from gates.render._views import causes
from gates.report import CriterionReport, Report
from gates.scan.loading import load_rules
from gates.scan.rule import Rule
from gates.task import loading as spec
from gates.task.task import Task, task_model
from gates.words import did_you_mean, meant

LISTED = 3


def explain(subject: str, criterion: str | None, project: Project, out: Path | None) -> Iterator[str]:
    """Explain a rule, a code rule, a task or a criterion; raise `UsageError` for what there is not."""
    known = pipeline.rule_texts()
    code_rules = {} if subject in known else load_rules(project.rules, project.root)
    if subject in known:
        yield from _rule(known[subject])
    elif subject in code_rules:
        yield from _code_rule(code_rules[subject])
    elif meant(subject, (*known, *code_rules)) and subject not in {task.id for task in spec.load_all(project)[0]}:
        raise UsageError(f"there is no rule {subject!r}{did_you_mean(subject, (*known, *code_rules))}")
    else:
        task = spec.of_project(subject, project)
        report = store.last(out or project.reports / task.id)
        yield from _of_task(task, criterion, report, out or Path(project.settings.reports, task.id))


def every_rule(project: Project, word: str) -> list[str]:
    """Return the rules of the gates and the code rules that have a word, a line each."""
    lines = {rule.id: f"{rule.id}  {rule.title}" for rule in pipeline.rule_texts().values()}
    for rule in load_rules(project.rules, project.root).values():
        lines[rule.id] = f"{rule.id}  ({rule.form.severity.value}) {rule.form.problem}"
    if not (found := [line for line in lines.values() if word.casefold() in line.casefold()]):
        raise UsageError(f"there is no rule {word!r}{did_you_mean(word, lines)}")
    return found


def _of_task(task: Task, name: str | None, report: Report | None, folder: Path) -> Iterator[str]:
    """Explain a task, or of it the criterion or the rule of a name."""
    known = pipeline.rule_texts()
    names = [*(each.id for each in task.criteria), *known]
    if name and name not in names and (near := meant(name, names)):
        raise UsageError(f"{task.id} has no criterion or rule {name!r}{near}")
    asked = task.criterion(name) if name is not None and name not in known else None
    if asked:
        yield f"{task.id} {asked.id} ({asked.level.value}): {asked.text}"
        yield f"  asked for in {task.place(asked)}"
    elif name:
        yield from _rule(known[name])
    judged = [one for one in report.criteria if asked is None or one.id == asked.id] if report else []
    if report is None or not judged:
        yield f"{task.id} {task.title}: never judged; run `gates run {task.id}`"
        return
    stale = "" if report.task.digest == task.digest else " (the task file has changed since)"
    yield f"verdict of {report.started_at}, {report.revision.commit or 'no commit'}: {report.headline}{stale}"
    yield from (f"reports and evidence: {folder}", "")
    of_it = [f for f in report.every_finding if (name in {f.criterion, f.rule} if name else f.blocks or f.leaves_open)]
    found = [*_findings(of_it)]
    for criterion in judged if asked or not (name or found) else []:
        yield f"{criterion.id} {criterion.status.value}: {criterion.text}"
        yield from (f"  {'though':<12} {reason}" for reason in criterion.reasons[: 0 if asked else LISTED])
        yield from _standing(criterion)
    yield from ("", *found) if asked else found


def _standing(criterion: CriterionReport) -> Iterator[str]:
    """Say what verifies a criterion, the first of each kind: what did not pass comes first."""
    for title, found in {"code": criterion.code, "test": criterion.tests, "measure": criterion.measures}.items():
        for trace in sorted(found, key=lambda trace: trace.outcome is Outcome.PASSED)[:LISTED]:
            where = f" at {trace.location}" if trace.location else ""
            detail = f" ({trace.detail})" if trace.detail not in {"", trace.outcome.value} else ""
            yield f"  {trace.kind or title:<12} {trace.outcome.words:<15} {trace.name}{where}{detail}"
        if len(found) > LISTED:
            yield f"  {title:<12} ... and {len(found) - LISTED} more"


FACTS = ("expected", "actual", "impact", "remediation", "command")


def _findings(found: Iterable[Finding]) -> Iterator[str]:
    """Yield findings, those of one cause in one, each with its rule and the raw file that it rests on."""
    for cause in causes(found):
        finding, known = cause.first, pipeline.rule_texts()
        title = known[finding.rule].title if finding.rule in known else "unknown rule"
        open_or_bad = finding.outcome in {Outcome.FAILED, Outcome.UNKNOWN}
        yield f"{finding.outcome.words:<8} {finding}{f' ({title})' if open_or_bad else ''}"
        facts = [(name, getattr(finding, name)) for name in (FACTS if open_or_bad else ())]
        yield from [f"  and {len(cause.others)} more like it"] if cause.others else []
        yield from (f"  {name}: {value}" for name, value in facts if value)
        yield from [f"  evidence: evidence/{finding.evidence}"] if finding.evidence else []
        yield from [f"  {finding.waived}"] if finding.waived else []


def _rule(rule: RuleText) -> list[str]:
    return [f"{rule.id}: {rule.title}", f"  {rule.meaning}"]


def _code_rule(rule: Rule) -> Iterator[str]:
    form = rule.form
    yield f"{rule.id} ({form.severity.value}): {form.problem}"
    yield f"  impact: {form.impact}"
    yield f"  fix: {form.fix}"
    if form.tags:
        yield f"  tags: {', '.join(form.tags)}"
    for title, texts in (("good", form.good), ("bad", form.bad)):
        if texts:
            yield f"  {title}:"
            yield from (f"    {line}" for line in min(texts, key=len).splitlines())
    if (more := len(form.good) + len(form.bad) - 2) > 0:
        yield f"  {more} more examples: {rule.source}"


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
    stale = "; the task file has changed since" if report and report.task.digest != task.digest else ""
    verdict = f"{report.headline} on {report.started_at}{stale}" if report else "never run"
    status = {criterion.id: criterion.status.value for criterion in report.criteria} if report else {}
    rows = (f"  {c.id:<6} {c.level.value:<9} {status.get(c.id, '-'):<16} {c.text}" for c in task.criteria)
    return [f"{task.id}  {task.title}  [{verdict}]", *rows]


MODELS: dict[str, type[Model]] = {"result": Report, "task": task_model(), "samples": Samples, "bundle": Bundle}


def schema_of(name: str) -> str:
    """Return the JSON schema of a kind of file, as text."""
    schema = MODELS[name].model_json_schema(by_alias=True, mode="serialization" if name == "result" else "validation")
    if name == "task":
        for part in (schema, *schema.get("$defs", {}).values()):
            properties = part.get("properties", {})
            part["properties"] = {key: value for key, value in properties.items() if not value.get("readOnly")}
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=2, sort_keys=True)
