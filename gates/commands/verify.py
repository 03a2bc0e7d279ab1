"""What `gates verify` does: judge the saved evidence of a run again, here, without running anything of the project."""

import json
from collections.abc import Iterable
from pathlib import Path

from gates import pipeline, store
from gates.check import EvidenceSet, day_of, writable
from gates.commands.run import follow_moved
from gates.config import Context, Project
from gates.errors import UsageError
from gates.evidence.bundles import Bundles
from gates.model import Finding, TaskIdentity
from gates.project.policy import judging
from gates.project.revision import digest_folder, git, observe
from gates.render import text
from gates.report import GateReport, Report
from gates.stages import Gate
from gates.task import loading as spec
from gates.task.task import Task


def perform(folder: Path, project: Project) -> tuple[str, int]:
    """Judge the evidence of a folder by the task file here; return summary and exit code; refuse what was altered."""
    if (report := store.last(folder)) is None:
        raise UsageError(f"{folder}: holds no {store.RESULT}; `gates run TASK` makes one")
    if report.partial:
        raise UsageError(f"{folder}: this run was partial ({report.partial}); verify a run of the whole task")
    raw = (folder / store.EVIDENCE).resolve()
    _refuse_altered(report, raw)
    evidence = _read(raw)
    task, context = _load_task(report.task, evidence, project), project.context(raw)
    changed = tuple(pipeline.changed(report.revision, observe(task, context), *_find_others(report, folder, project)))
    again = _judge(report, task, context, evidence, changed)
    if not changed and _says(again) != _says(report):
        why = "altered, or made against another base or by another version of gates; run the task again"
        raise UsageError(f"{folder / store.RESULT}: says something else than its evidence ({again.headline}): {why}")
    return text.summary(again), again.verdict.exit_code


def _refuse_altered(report: Report, raw: Path) -> None:
    was, now = ({file.path: file for file in files} for files in (report.evidence, digest_folder(raw)))
    if altered := sorted(path for path in was.keys() | now.keys() if was.get(path) != now.get(path)):
        raise UsageError(f"{raw / altered[0]} (1 of {len(altered)}): not as the run left it, new or gone; run it again")


def _find_others(report: Report, folder: Path, project: Project) -> tuple[list[str], str]:
    """Return the other files that are not those of the commit that ran, or why that is not known; of a clean one."""
    if not (commit := report.revision.commit) or report.revision.dirty:
        return [], ""
    asked = ("diff", "--name-only", "--relative", "-z", commit), ("ls-files", "--others", "--exclude-standard", "-z")
    told = [git(project.root, *words) for words in asked]
    names = {*"\0".join(filter(None, told)).split("\0")} - {"", *(file.path for file in report.revision.files)}
    made = folder.resolve(), project.reports
    others = [name for name in names if not any(map((project.root / name).is_relative_to, made))]
    return others, f"git does not know {commit}" if None in told else ""


def _read(raw: Path) -> EvidenceSet:
    kinds = pipeline.kinds()
    try:
        missing = json.loads((raw / pipeline.MISSING).read_text(encoding="utf-8"))
        there = [name for name in kinds if name not in missing and (raw / f"{name}.json").is_file()]
        present = {kinds[n]: kinds[n].model_validate_json((raw / f"{n}.json").read_bytes()) for n in there}
        return EvidenceSet(present, missing={kinds[name]: str(why) for name, why in missing.items()})
    except (OSError, ValueError, KeyError, AttributeError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"{raw}: not evidence of this version of gates ({reason}); run the task again") from error


def _load_task(was: TaskIdentity, evidence: EvidenceSet, project: Project) -> Task:
    """Return the task as it lies here or at the run's policy; raise `UsageError` where the run had another one."""
    with judging(project.root, project.settings, was.policy.commit if was.policy else None, was.path) as policy:
        task = spec.load(policy.root / was.path, policy.root)
    if task.digest != was.digest:
        raise UsageError(f"{was.path}: not the task file that {was.id} was judged by; run it again")
    bundles = evidence.get(Bundles)
    handed = tuple(one.path for one in bundles.handed_in) if bundles else ()
    return follow_moved(task, project.root, None).model_copy(update={"bundles": handed})


def _judge(report: Report, task: Task, context: Context, evidence: EvidenceSet, changed: Iterable[Finding]) -> Report:
    """Judge and fold again; of the result itself only what no evidence holds is taken: times, and if files changed."""
    was = {gate.name: gate for gate in report.gates}
    gates = tuple(_judge_gate(gate, was.get(gate.name), task, evidence) for gate in pipeline.discover())
    during = tuple(finding for finding in report.findings if finding.rule == pipeline.CHANGED)
    folded = pipeline.fold(task, gates, evidence, (*during, *changed, *pipeline.looked_for(task, context, evidence)))
    of_the_run = ("task", "revision", "environment", "started_at", "duration_s", "evidence")
    facts = {name: getattr(report, name) for name in of_the_run}
    taken = "; ".join(filter(None, (f"evidence saved by the run of {report.started_at}", report.taken)))
    return writable(folded.model_copy(update={**facts, "taken": taken}))


def _judge_gate(gate: Gate, was: GateReport | None, task: Task, evidence: EvidenceSet) -> GateReport:
    seen = evidence if was and was.ran else EvidenceSet(why=f"the {gate.name} gate was not run")
    facts = was.model_dump(include={"ran", "not_run_because", "duration_s"}) if was else {"ran": False}
    return pipeline.judge(gate, task, seen, day_of(evidence)).model_copy(update=facts)


def _says(report: Report) -> tuple[object, ...]:
    findings = [(one.outcome, str(one)) for gate in report.gates if gate.ran for one in gate.findings]
    return report.verdict.decision, report.score, report.criteria, findings
