"""The summary for a terminal: verdict, cause and next command in the first lines; and the report itself, as JSON."""

from gates.render import Format, _views
from gates.report import GateReport, Report
from gates.words import counted, visible


def summary(report: Report) -> str:
    """Return the summary as plain text, a line for each gate and each criterion."""
    command, purpose = _views.next_step(report)
    task, verdict, score = report.task, report.verdict, report.score
    causes = [*(str(cause.first) for cause in _views.deciding(report)), *verdict.reasons]
    ended = f"exit code {verdict.exit_code}, score {score.total}/{score.of}"
    lines = [
        f"{report.headline}  {task.id} {task.title}  ({ended})",
        f"cause: {(causes or [_views.nothing_wrong(report.every_finding)])[0]}",
        f"next:  {command}" + (f"  # {purpose}" if purpose else ""),
        *([f"waived: {', '.join(report.waived)}"] if report.waived else []),
        *(f"{label.lower()}: {line}" for label, line in _views.notes(report)),
        "",
        *(_gate(gate) for gate in report.gates),
        "",
        *(f"{c.id:<6} {c.status.value:<16} {c.text}" for c in report.criteria),
    ]
    return "\n".join(visible(line) for line in lines) + "\n"


def details(report: Report) -> str:
    """Return each check of the gates that ran, as it ended, with what was seen."""
    told = ((gate.name, *row) for gate in report.gates if gate.ran for row in _views.checks(gate))
    lines = (f"{_views.word(f):<8} {name:<15} {f.rule}  {check.title}: {f.message}" for name, check, f, _ in told)
    return "\n".join(["", *map(visible, lines)]) + "\n"


def _gate(gate: GateReport) -> str:
    seen = f"{counted(gate.planned, 'check')}: {_views.endings(gate)}" if gate.ran else gate.not_run_because
    decision = gate.decision.value if gate.ran else "NOT RUN"
    return f"stage {gate.stage}  {gate.name:<15} {decision:<14} {gate.score.total:>3}/{gate.score.of:<4} {seen}"


TEXT = Format("text", lambda report, _: {"summary.txt": summary(report)})
# a line for each field; every other format is made from the same value
JSON = Format("json", lambda report, _: {"result.json": report.model_dump_json(indent=2, by_alias=True) + "\n"})
