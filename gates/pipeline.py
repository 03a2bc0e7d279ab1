"""The whole flow: collect, judge, decide, stage by stage, into one report."""

import itertools
import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import yaml

from gates import criteria, registry
from gates.check import About, Evidence, EvidenceSet, RunDate, day_of, writable
from gates.checks.entry_points import EntryPointRuns
from gates.child.guardian import Interrupted, end, guarded_folder
from gates.child.probing import warmed, warming
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.pytest_run import PytestRun
from gates.measuring.machine import DRIVERS, may_have
from gates.model import Decision, Finding, Level, Outcome, Planned, Revision, RuleText, Severity
from gates.project import what_was_read
from gates.project.copies import copy_project
from gates.project.revision import digest_folder, environment, observe, unlike_commit
from gates.proving.bench import COPIES, benched
from gates.proving.emptied_code import EmptiedCode
from gates.report import RESULT_SCHEMA, GateReport, Report, excerpts
from gates.stages import Gate
from gates.task.task import Selection, Task, left_out, narrowed
from gates.words import first_of

UNFOUNDED = About(severity=Severity.CRITICAL)  # the run as a whole can be no pass
CHANGED = "GT002"
INTERRUPTED = "the run was interrupted"
MISSING = "missing.json"  # beside the evidence: why there is none of a kind


class Progress(NamedTuple):
    """Called as the run goes on: before each kind of evidence of a gate, and when a gate is done or was not run."""

    step: Callable[[Gate, int, type[Evidence]], None]
    ended: Callable[[GateReport], None]


def run(task: Task, context: Context, selection: Selection, progress: Progress, evidence: EvidenceSet) -> Report:
    """Run the gates of a task in stages and fold what they found into a report; `evidence` is what is there already."""
    with guarded_folder() as beside, evidence.stack, ExitStack() as stack:
        evidence.copy = beside / "copy"
        context = replace(context, copied=cache(partial(copy_project, context.root, evidence.copy, copies=0)))
        if task.training_steps and not any(map(may_have, DRIVERS)):  # where one has a device, a fork may not use it
            begun = warming(context, beside / "warm", stack)  # while the tests run
            context = replace(context, warm=cache(partial(warmed, task, context, begun)))
        return _run(task, context, selection, progress, evidence)


def _run(task: Task, context: Context, selection: Selection, progress: Progress, evidence: EvidenceSet) -> Report:
    begun, clock = datetime.now(UTC), time.monotonic()
    before, lying = observe(task, context), unlike_commit(context.root)
    whole, task = task, narrowed(task, *selection.only)
    evidence.collect(RunDate, task, context)
    reports, ended = list[GateReport](), list[Finding]()
    _foresee(task, context, selection, evidence)
    try:
        for done in _in_stages(task, context, selection, progress, evidence):
            reports.append(done)  # those before an interrupt are kept
    except Interrupted:  # what was seen is told all the same
        end()
        evidence = replace(evidence, why=INTERRUPTED)
        reports += _broken_off(task, evidence, {report.name for report in reports})
        about = UNFOUNDED.but(rule="GT003", check="interrupted", command=f"gates run {task.id}")
        ended = [about.unknown(f"{INTERRUPTED.capitalize()}.", "Run again.")]
    _save(evidence, context)
    differing, ran = changed(before, observe(whole, context), only=before.commit), evidence.get(PytestRun)
    # it is of the commit alone only where no other files ran
    strayed = {"dirty": True, "strays": ran.strays, "web": None} if ran and ran.strays and before.commit else {}
    notes = (*ended, *differing, *wrote(lying, context), *looked_for(whole, context, evidence), *left_out(whole, task))
    report = fold(whole, reports, evidence, notes)
    facts = {
        "task": report.task.model_copy(update={"policy": context.policy}),
        "revision": before.model_copy(update=strayed),
        "environment": environment(context),
        "started_at": begun.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "duration_s": round(time.monotonic() - clock, 1),
        "evidence": digest_folder(context.evidence),
        "excerpts": excerpts(report.every_finding, context.root),
        "partial": "interrupted" if ended else selection.partial,
    }
    return writable(report.model_copy(update=facts))


def discover() -> list[Gate]:
    """Return the gates in the order of their stages."""
    return sorted(registry.values_of("gates.stages", Gate), key=lambda gate: (gate.stage, -gate.weight, gate.name))


def kinds() -> dict[str, type[Evidence]]:
    """Return every kind of evidence that a gate uses, by its name."""
    used: list[type[Evidence]] = [RunDate, *(kind for gate in discover() for kind in gate.uses)]
    return {kind.__name__: kind for kind in used}


def looked_for(task: Task, context: Context, evidence: EvidenceSet) -> Iterator[Finding]:
    """Yield the paths of the task that lead nowhere, and the files that nobody read."""
    yield from what_was_read.led_nowhere(task, context.root)
    yield from what_was_read.not_read(evidence.get(SourceTree), task, context.root)


@cache
def rule_texts() -> dict[str, RuleText]:
    """Return what every rule means, by a text beside what decides it, whose first sentence is its title."""
    here = Path(__file__)
    checks = here.with_name("checks")
    files = [here.with_suffix(".yaml"), *checks.glob("*.yaml"), *checks.glob("*/rules.yaml")]
    texts = {name: text for file in files for name, text in yaml.safe_load(file.read_bytes()).items()}
    parts = ((name, texts[name].partition(". ")) for name in sorted(texts))
    return {name: RuleText(id=name, title=title, meaning=meaning) for name, (title, _, meaning) in parts}


def fold(task: Task, gates: Sequence[GateReport], evidence: EvidenceSet, findings: tuple[Finding, ...] = ()) -> Report:
    """Fold the gates of a task and what was found of the run as a whole into a report of no time or machine; pure."""
    weights = {gate.name: gate.weight for gate in discover()}
    seen = [finding for gate in gates for finding in gate.findings] + [*findings]
    stands = {each.id: criteria.status(f for f in seen if f.criterion == each.id) for each in task.criteria}
    findings += (*criteria.unneeded(task, gates, day_of(evidence)), *criteria.unseen(task, seen, stands))
    findings += (criteria.judge_coverage(task, stands),)
    return Report(
        schema=RESULT_SCHEMA,
        task=task.identity,
        revision=Revision(commit=None, dirty=None, digest="", files=()),
        environment={},
        started_at="",
        duration_s=0,
        verdict=criteria.decide([*(finding for gate in gates for finding in gate.findings), *findings]),
        score=criteria.score_task([(gate.name, weights.get(gate.name, 1), gate.score) for gate in gates]),
        findings=findings,
        gates=tuple(gates),
        criteria=tuple(criteria.stand(task, each, gates, evidence.get(PytestRun), findings) for each in task.criteria),
        commands=tuple(command for piece in evidence.present.values() for command in piece.commands),
    )


def draft(task: Task) -> Report:
    """Return the report of a task of which nothing was seen so far; pure."""
    return fold(task, [judge(gate, task, EvidenceSet()) for gate in discover()], EvidenceSet())


def judge(gate: Gate, task: Task, evidence: EvidenceSet, today: date | None = None) -> GateReport:
    """Judge one gate on evidence that is there; pure. Without a day, waivers work by that of the evidence."""
    checks, findings = gate.plan(task), (*gate.judge(task, evidence),)
    findings += tuple(_unreconciled(gate, checks, findings))
    findings = criteria.waive(task, findings, today or day_of(evidence))
    decision, reasons = criteria.decide_gate(findings)
    return GateReport(
        name=gate.name,
        title=gate.title,
        stage=gate.stage,
        decision=decision,
        score=criteria.score_gate(checks, findings),
        planned=len(checks),
        decided=len({check.id for check in checks} & {finding.check for finding in findings}),
        ran=True,
        duration_s=0,
        reasons=reasons,
        checks=checks,
        findings=findings,
        sections=tuple(gate.describe(task, evidence)),
    )


def _foresee(task: Task, context: Context, asked: Selection, evidence: EvidenceSet) -> None:
    """Start what tries faults while the tests still run, where they may be asked to notice some."""
    uses = {kind for gate in discover() if not asked.gates or gate.name in asked.gates for kind in gate.uses}
    foreseen = EmptiedCode not in evidence.present and any(criterion.code for criterion in task.criteria)
    if EmptiedCode in uses and foreseen and COPIES > 1:
        before = evidence.before(PytestRun)
        with suppress(EvidenceUnavailable):  # it says so when it is asked for
            evidence.shared(benched, task, context).start(before.packages if before else ())


def _in_stages(
    task: Task, context: Context, selection: Selection, progress: Progress, evidence: EvidenceSet
) -> Iterator[GateReport]:
    """Run gate after gate; a stage that blocks stops those after it, if it is to."""
    blocked_by = ""
    for _, group in itertools.groupby(discover(), key=lambda gate: gate.stage):
        reports = list[GateReport]()
        for gate in group:
            reports.append(_run_gate(gate, task, context, evidence, selection, blocked_by, progress))
            yield reports[-1]
        evidence.stack.close()  # before anything is measured
        if not selection.keep_going:
            blocked_by = blocked_by or " and ".join(each.name for each in reports if each.decision is Decision.BLOCK)


def _broken_off(task: Task, evidence: EvidenceSet, done: Collection[str]) -> Iterator[GateReport]:
    """Judge the gates that an interrupt left undone by what was seen."""
    told = {"ran": False, "not_run_because": INTERRUPTED}
    for gate in discover():
        if gate.name not in done:
            yield judge(gate, task, evidence, day_of(evidence)).model_copy(update=told)


def _run_gate(
    gate: Gate, task: Task, context: Context, evidence: EvidenceSet, asked: Selection, blocked: str, progress: Progress
) -> GateReport:
    """Collect what a gate uses and judge it; a gate that is not run judges nothing, and so passes nothing."""
    why_not, first = "", ""
    if asked.gates and gate.name not in asked.gates:
        why_not = f"it was not asked for (--gate {' --gate '.join(asked.gates)})"
        first = f"Run the {gate.name} gate, too."
    elif blocked:
        why_not = f"{blocked} blocked (--keep-going runs it all the same)"
        first = f"Fix first what blocks {blocked}; then the {gate.name} gate is run."
    clock = time.monotonic()
    if why_not:
        report = judge(gate, task, EvidenceSet(why=f"the {gate.name} gate was not run"), day_of(evidence))
        put_off = {"remediation": first, "impact": ""}  # what comes first, and nothing else
        open_ = (f.model_copy(update=put_off) if f.outcome is Outcome.UNKNOWN else f for f in report.findings)
        report = report.model_copy(update={"findings": tuple(open_)})
    else:
        for number, kind in enumerate(gate.uses, start=1):
            progress.step(gate, number, kind)
            if kind is EntryPointRuns and not (asked.gates or (context.rules and context.rules.is_dir())):
                evidence.begin(SourceTree, task, context)  # an own rule is stopped at its limit in this thread alone
            evidence.collect(kind, task, context)
        report = judge(gate, task, evidence)
    told = {"ran": not why_not, "not_run_because": why_not, "duration_s": round(time.monotonic() - clock, 1)}
    report = report.model_copy(update=told)
    progress.ended(report)
    return report


def _unreconciled(gate: Gate, checks: Sequence[Planned], findings: Iterable[Finding]) -> Iterable[Finding]:
    """Say so where what was planned and what was decided are not the same."""
    planned, decided = {check.id for check in checks}, {finding.check for finding in findings}
    if planned == decided and planned and len(planned) == len(checks):
        return
    off = ", ".join(sorted(planned ^ decided)) or "nothing was planned"
    message = f"The {gate.name} gate did not decide exactly what it planned: {off}."
    about = UNFOUNDED.but(rule="GT001", check="plan", subject=gate.name)
    yield about.unknown(message, "This is a fault of the gate; report it.")


def changed(
    before: Revision, after: Revision, others: Iterable[str] = (), why: str = "", only: str | None = None
) -> Iterator[Finding]:
    """Say so where the files, and `others`, are not those that a run began with, or `why` that is not known.

    Where the run began with a commit, `only` that, new files are none of its state: what is read of them is compared.
    """
    old, new = ({file.path: file.sha256 for file in revision.files} for revision in (before, after))
    paths = old.keys() if only else old.keys() | new.keys()
    differing = sorted({*others, *(path for path in paths if old.get(path) != new.get(path))})
    unknown = f"Whether files changed since the run began is not known: {why}." if why else ""
    message = f"Files changed since the run began: {', '.join(differing[:5])}." if differing else unknown
    if not message:
        return
    about = UNFOUNDED.but(rule=CHANGED, check="revision", impact="The evidence speaks of no one state of the files.")
    yield about.unknown(message, "Run again and leave the files alone; fix tests that write into the source tree.")


def wrote(before: Mapping[str, object], context: Context) -> Iterator[Finding]:
    """Name the files that are another now than when the run began, of those that are not as in the commit."""
    after = unlike_commit(context.root)
    paths = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    about = About(rule="GT008", check="wrote", level=Level.ADVISORY, severity=Severity.LOW)
    if paths:
        fix = "Let tests write into a temporary folder, and commands where {out} says."
        yield about.failed(f"The run wrote into the work tree: {first_of(paths, 5)}.", fix)


def _save(evidence: EvidenceSet, context: Context) -> None:
    """Write each piece of evidence beside the raw files that it was read from, so that it can be judged again."""
    for piece in evidence.present.values():
        path = context.evidence / f"{type(piece).__name__}.json"
        path.write_text(piece.model_dump_json(indent=1, by_alias=True) + "\n", encoding="utf-8")
    missing = {kind.__name__: why for kind, why in evidence.missing.items()}
    (context.evidence / MISSING).write_text(json.dumps(missing, indent=1) + "\n", encoding="utf-8")
