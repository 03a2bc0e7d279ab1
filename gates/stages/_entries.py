"""The part of the execution gate that judges entry points: does the production code run?"""

from collections.abc import Iterator

from gates.evidence.entry_points import EntryPointRuns, EntryRun
from gates.evidence.kind import EvidenceSet
from gates.model import Check, Finding, Outcome, RuleText, Section, Severity
from gates.task import EntryPoint, Task

RULES = (
    RuleText(
        id="EX004",
        title="Entry points run to their end",
        meaning="Each entry point of the task is run in its own process and must end with exit code 0. A crash is "
        "critical and names the innermost line of the traceback that lies in the project.",
    ),
)


def plan(task: Task) -> Iterator[Check]:
    """Plan each entry point, and each criterion that one shows."""
    for i, entry in enumerate(task.entry_points):
        yield Check(id=f"entry:{i}", title=f"Entry point ends well: {entry.name}")
    for i, entry in enumerate(task.entry_points):
        for c in task.criteria:
            if c.id in entry.criteria:
                title = f"{c.id} is shown by entry point {i + 1}"
                yield Check(id=f"entry:{i}:{c.id}", title=title, level=c.level, criterion=c.id)


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge each entry point by its end, for itself and for the criteria that it shows."""
    entries = evidence.get(EntryPointRuns)
    for i, entry in enumerate(task.entry_points):
        seen = next((r for r in entries.runs if r.index == i), None) if entries else None
        finding = _entry(task, i, entry, seen, evidence.why_missing(EntryPointRuns))
        yield finding
        for criterion in task.criteria:
            if criterion.id in entry.criteria:
                own = {
                    "check": f"entry:{i}:{criterion.id}",
                    "criterion": criterion.id,
                    "level": criterion.level,
                }
                yield Finding.model_validate({**finding.model_dump(exclude={"fingerprint"}), **own})


def describe(_task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell each entry point's end."""
    entries = evidence.get(EntryPointRuns)
    yield Section(
        title="Entry Points",
        text="" if entries else f"Not run: {evidence.why_missing(EntryPointRuns)}.",
        columns=("Command", "Ended", "Duration (s)"),
        rows=tuple(
            (run.name, run.process.ended if run.process else run.problem,
             f"{run.process.duration_s:.2f}" if run.process else "-")
            for run in (entries.runs if entries else ())
        ),
    )  # fmt: skip


def _entry(task: Task, index: int, entry: EntryPoint, seen: EntryRun | None, why: str) -> Finding:
    name = entry.name
    facts = {
        "rule": "EX004",
        "check": f"entry:{index}",
        "subject": name,
        "expected": "exit code 0",
        "command": name,
    }
    if seen is None or seen.process is None:
        problem = seen.problem if seen else why
        return Finding(
            **facts, outcome=Outcome.UNKNOWN, severity=Severity.HIGH, location=task.place(entry), actual="not run",
            message=f"The entry point was not seen running: {problem}",
            remediation="Name a command that can be started.",
        )  # fmt: skip
    raw = f"entry_points/{index}.stderr.txt"
    ended = seen.process
    if ended.exit_code == 0:
        return Finding(
            **facts, outcome=Outcome.PASSED, severity=Severity.INFO, location=task.place(entry), evidence=raw,
            actual=ended.ended, message=f"`{name}` ran to its end.",
        )  # fmt: skip
    return Finding(
        **facts, outcome=Outcome.UNKNOWN if ended.timed_out else Outcome.FAILED, severity=Severity.CRITICAL,
        location=seen.crash or task.place(entry), evidence=raw, actual=ended.ended,
        message=f"`{name}`: {ended.ended}: {ended.last_words}", impact="Users of this entry point meet this crash.",
        remediation="Mend the crash and add a test that runs this path.",
    )  # fmt: skip
