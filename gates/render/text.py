"""The summary for a terminal: verdict, cause and next command in the first lines."""

from pathlib import Path

from gates.render import Format, _causes, _views
from gates.report import GateReport, Report
from gates.words import counted, visible

WAIVERS = 5


def render(report: Report, _templates: Path | None) -> dict[str, str]:
    """Return the summary as plain text, a line for each gate and each criterion."""
    return {"summary.txt": summary(report)}


def summary(report: Report, options: str = "") -> str:
    """Return the summary; `options` are those by which the next command finds the reports."""
    command, purpose = _views.next_step(report)
    command += options if command.startswith("gates explain") else ""
    task, verdict, score = report.task, report.verdict, report.score
    ended = f"exit code {verdict.exit_code}, score {score.total}/{score.of}"
    lines = [
        f"{report.headline}  {task.id} {task.title}  ({ended})",
        f"cause: {_views.first_cause(report)}",
        f"next:  {command}" + (f"  # {purpose}" if purpose else ""),
        *_first_lines(report),
        "",
        *(_gate(gate) for gate in report.gates),
        "",
        *(f"{c.id:<6} {c.status.value:<16} {c.text}" for c in report.criteria),
    ]
    return "\n".join(visible(line) for line in lines) + "\n"


def _first_lines(report: Report) -> list[str]:
    """Return the lines that only some reports have: what is waived, what is not of the commit, how the bar stands."""
    waived, moved = report.waived, [goal.message for goal in _causes.goalposts(report)]
    standing = _causes.waivers(report)
    budgets = report.environment.get("budgets")
    return [
        *([f"budgets: {budgets}"] if budgets else []),
        *([f"waived: {', '.join(waived)}"] if waived else []),
        *(f"waiver: {how}" for how in standing[:WAIVERS]),
        *(
            [f"waiver: ... and {len(standing) - WAIVERS} more (see business-logic.md)"]
            if len(standing) > WAIVERS
            else []
        ),
        *([f"not of the commit: {_causes.strays(report)}"] if _causes.strays(report) else []),
        *([f"policy changes: {len(moved)}; first: {moved[0]}"] if moved else []),
        *(f"policy changes: not compared: {why}" for why in _causes.uncompared(report)),
        *([f"since the last run: {_views.since(report)}"] if report.since else []),
    ]


def _gate(gate: GateReport) -> str:
    seen = f"{counted(gate.planned, 'check')}: {_views.endings(gate)}" if gate.ran else gate.not_run_because
    decision = gate.decision.value if gate.ran else "NOT RUN"
    return f"stage {gate.stage}  {gate.name:<15} {decision:<14} {gate.score.total:>3}/{gate.score.of:<4} {seen}"


FORMAT = Format(name="text", render=render)
