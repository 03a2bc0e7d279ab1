"""The log of runs (`.gates/history.jsonl`), and what `gates history` and `gates diff` show; no verdict rests on it."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import Field

from gates import store
from gates.config import Project
from gates.errors import UsageError
from gates.measuring import machine
from gates.model import Decision, Finding, Model, Outcome
from gates.project.files import append
from gates.report import GateReport, Report
from gates.task import loading as spec

NAME = Path(".gates", "history.jsonl")
MOST_BYTES = 16 * 1024 * 1024


class LoggedRun(Model):
    """One run: when, of which revision, on which machine, how it ended, and the numbers that it judged."""

    task: str
    at: str
    commit: str | None
    dirty: bool | None
    digest: str
    machine: str
    decision: Decision
    score: int
    gates: tuple[str, ...]
    only: str | None = None
    duration_s: float
    numbers: dict[str, float] = Field(default={})

    @property
    def revision(self) -> str:
        """Return the commit as people read it, with a plus where the work tree differed from it."""
        return f"{self.commit[:12]}{'+' if self.dirty else ''}" if self.commit else "no commit"


def log_run(root: Path, run: LoggedRun) -> str:
    """Add a run to the log; return why it is not there, where that is so."""
    return append(root / NAME, run.model_dump_json())


def runs_of(root: Path, task: str) -> tuple[LoggedRun, ...]:
    """Return the runs of a task, the oldest first; a line that is no run is passed over."""
    runs: list[LoggedRun] = []
    with suppress(OSError):
        for line in (root / NAME).read_bytes()[-MOST_BYTES:].split(b"\n"):
            with suppress(ValueError):
                runs.append(LoggedRun.model_validate_json(line))
    return tuple(run for run in runs if run.task == task)


def perform(project: Project, task_id: str, last: int) -> Iterator[str]:
    """Yield the last runs of a task, so many at most, the oldest first."""
    task = spec.of_project(task_id, project)
    runs = runs_of(project.root, task.id)[-last:]
    yield f"{task.id}  {task.title}"
    if not runs:
        yield f"  no run is in {NAME}; `gates run {task.id}` adds one"
    here = machine.name()
    for run in runs:
        asked = [*([f"--only {run.only}"] if run.only else []), *([] if run.machine == here else ["another machine"])]
        ended, ran = f"{run.decision.value:<14}  {run.score:>3}/100", " ".join(run.gates) or "no gate"
        yield f"  {run.at}  {ended}  {run.revision:<13}  {run.duration_s:>7.1f} s  {', '.join([ran, *asked])}"
    yield from _courses([run for run in runs if run.machine == here])


def _courses(runs: Sequence[LoggedRun]) -> Iterator[str]:
    """Yield how each number went; only what one machine measured stands in one row."""
    if names := dict.fromkeys(name for run in runs for name in run.numbers):
        yield ""
        yield "  numbers on this machine, the oldest first; no verdict rests on them"
    for name in names:
        values = [run.numbers[name] for run in runs if name in run.numbers]
        yield f"  {name}: {values[0]:.4g} -> {values[-1]:.4g}, {len(values)} runs"


NAMED = 5  # findings of one rule


def newest(reports: Path) -> Path:
    """Return the folder of the newest result below a folder; raise `UsageError` where there is none."""
    if not (found := sorted(reports.glob(f"**/{store.RESULT}"), key=lambda path: path.stat().st_mtime)):
        raise UsageError(f"{reports}: holds no {store.RESULT}; `gates run TASK` makes one")
    return found[-1].parent


def compare(before: Path, after: Path | None = None) -> str:
    """Compare two results, each a `result.json` or the folder that holds one; of one folder its last two runs."""
    before, after = (before, after) if after else (before / store.PREVIOUS, before)
    old, new = _result(before), _result(after)
    lines = [_head("A", before, old), _head("B", after, new), *_notes(old, new)]
    apart = (f"{name}: {text}: {way or 'the intervals overlap'}" for name, text, way in numbers(old, new))
    for name, found in {"criteria": _criteria(old, new), "findings": _findings(old, new), "numbers": apart}.items():
        told = [f"  {line}" for line in found]
        nothing = f"{name}: no change" if name != "numbers" else "numbers: none in both"
        lines += ["", f"{name}:" if told else nothing, *told]
    return "\n".join([*lines, ""])


def _result(path: Path) -> Report:
    folder, name = (path, store.RESULT) if path.is_dir() else (path.parent, path.name)
    if name not in {store.RESULT, store.PREVIOUS}:
        raise UsageError(f"{path}: expected a folder of reports, or the {store.RESULT} in it")
    if (report := store.last(folder, name)) is None and name == store.PREVIOUS:
        raise UsageError(f"{folder}: holds one run only; run the task again, then compare")
    if report is None:
        raise UsageError(f"{folder}: holds no {name}; `gates run TASK --out {folder}` makes one")
    return report


def _head(name: str, path: Path, report: Report) -> str:
    commit = f"{report.revision.commit[:12]}{'+' if report.revision.dirty else ''}" if report.revision.commit else "-"
    score = f"{report.score.total}/{report.score.of}"
    return f"{name}  {report.task.id}  {report.headline}  {score}  {commit}  {report.started_at}  {path}"


def _notes(old: Report, new: Report) -> Iterator[str]:
    if old.task.id != new.task.id:
        yield f"note: they are of different tasks, {old.task.id} and {new.task.id}"
    elif old.task.digest != new.task.digest:
        yield "note: the task file has changed between them"
    names = ("processor", "cores", "platform", "python")
    if other := [name for name in names if old.environment.get(name) != new.environment.get(name)]:
        yield f"note: not the same {', '.join(other)}: their times are not of one machine"
    ran = [", ".join(gate.name for gate in report.gates if gate.ran) or "none" for report in (old, new)]
    if ran[0] != ran[1]:
        yield f"note: A ran other gates ({ran[0]}) than B ({ran[1]})"


def _criteria(old: Report, new: Report) -> Iterator[str]:
    was, now = ({one.id: one for one in report.criteria} for report in (old, new))
    for name, one in now.items():
        if name not in was:
            yield f"{name}: new, {one.status.value} ({one.text})"
        elif was[name].status is not one.status:
            why = f": {one.reasons[0]}" if one.reasons else ""
            yield f"{name}: {was[name].status.value} -> {one.status.value}{why}"
    for gone in [one for name, one in was.items() if name not in now]:
        yield f"{gone.id}: {gone.status.value} -> no longer asked for ({gone.text})"


def _findings(old: Report, new: Report) -> Iterator[str]:
    """Tell the findings that are open or bad in one of them only, the first few of each rule, or in both otherwise."""
    was, now = (_open_or_bad(report) for report in (old, new))
    for word, here, there in (("gone", was, now), ("new", now, was)):
        only = [finding for key, finding in here.items() if key not in there]
        for rule, count in Counter(finding.rule for finding in only).items():
            yield from (f"{word}: {_ended(f)} {f}" for f in [f for f in only if f.rule == rule][:NAMED])
            if count > NAMED:
                yield f"{word}: {count - NAMED} more of {rule}"
    for key, before in was.items():
        if key in now and _ended(before) != _ended(now[key]):
            yield f"{_ended(before)} -> {_ended(now[key])} {now[key]}"


def _open_or_bad(report: Report) -> dict[tuple[str, int], Finding]:
    """Return them by fingerprint, and by their number among those of the same fingerprint."""
    found, seen = dict[tuple[str, int], Finding](), Counter[str]()
    for finding in report.every_finding:
        if finding.outcome in {Outcome.FAILED, Outcome.UNKNOWN}:
            found[finding.fingerprint, seen[finding.fingerprint]] = finding
            seen[finding.fingerprint] += 1
    return found


def _ended(finding: Finding) -> str:
    return "waived" if finding.waived else finding.outcome.value


NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
INTERVAL = re.compile(rf"^({NUMBER}) \[({NUMBER}), ({NUMBER})\]")
NOTED = 1.2  # a gate that took less than this many times as long took as long as before
LEAST_S = 5.0
TURNED, MOVED = 4, 2  # criteria and numbers that a report names


def since(old: Report, new: Report) -> str:
    """Return what turned, which numbers changed by more than their intervals, and which gates took longer or less."""
    was, timed = {one.id: one.status for one in old.criteria}, not (old.taken or new.taken)
    took = {gate.name: gate for gate in old.gates if timed}
    other = [(one.id, was.get(one.id), one.status) for one in new.criteria if was.get(one.id) is not one.status]
    turned = [f"{name} {then.value} -> {now.value}" if then else f"{name} is new" for name, then, now in other]
    moved = [f"{name}: {text}" for name, text, way in numbers(old, new) if way]
    times = [line for gate in new.gates if gate.name in took for line in _times(took[gate.name], gate)]
    left = len(turned[TURNED:]) + len(moved[MOVED:])
    told = [*turned[:TURNED], *moved[:MOVED], *times, *([f"{left} more"] if left else [])]
    return f"({old.started_at}, {old.verdict.decision.value}) {'; '.join(told) or 'no criterion or number changed'}"


def numbers(old: Report, new: Report) -> Iterator[tuple[str, str, str]]:
    """Yield each number with an interval that is in both: name, values, `less` or `more` where the intervals differ."""
    was, now = intervals(old), intervals(new)
    for name in was:
        if name in now:
            (before, low, high), (after, least, most) = was[name], now[name]
            text = f"{before:g} [{low:g}, {high:g}] -> {after:g} [{least:g}, {most:g}]"
            yield name, text, ("less" if after < before else "more") if low > most or high < least else ""


def _times(was: GateReport, now: GateReport) -> Iterator[str]:
    before, after = sorted((was.duration_s, now.duration_s))
    if was.ran and now.ran and after >= LEAST_S and after > NOTED * before:
        yield f"{now.name} {was.duration_s:.0f} s -> {now.duration_s:.0f} s"


def intervals(report: Report) -> dict[str, tuple[float, float, float]]:
    """Return value and interval of each number by what it is of."""
    found = {}
    for one in report.every_finding:
        if (match := INTERVAL.match(one.actual)) and one.outcome is not Outcome.NOT_APPLICABLE:
            value, low, high = map(float, match.groups())
            found[f"{one.subject or one.check}{f' ({one.criterion})' if one.criterion else ''}"] = (value, low, high)
    return found
