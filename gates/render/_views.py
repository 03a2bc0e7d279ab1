"""What a reader asks of a report first, computed from it: the cause, the next command, the actions, the gaps."""

from collections import Counter
from collections.abc import Iterable

from gates.counted import counted
from gates.model import SEVERITIES, Finding, Level, Outcome, Severity, Status
from gates.ranking import ranked, reason
from gates.report import GateReport, Report, Trace

GAPS = 3
THE_RUN = "EX001"
WORST = ("FAIL", "UNKNOWN", "WAIVED", "PASS")
ENDINGS = {"FAIL": "failed", "UNKNOWN": "unknown", "PASS": "passed", "WAIVED": "waived", "N/A": "not applicable"}
KINDS = {
    "code:": "Criteria are traced to live code",
    "tests:": "Tests stand for the criteria",
    "coverage": "Enough criteria are verified",
    "markers": "Markers name criteria that exist",
    "rule:": "Code rules are kept",
    "calc:": "Calculations are correct",
    "edge:": "Edge cases are handled",
    "property:": "Properties hold",
    "recorded:tests:": "The code does right in its recorded tests",
    "recorded:": "Training steps do right",
    "goalposts": "The bar is where it was",
    "proof": "Faults are noticed",
    "measure:": "Targets are met",
    "hot:": "A step waits for nothing that it need not wait for",
    "leak:": "Memory does not go on growing",
    "concurrency:": "At once it comes to the same",
    "scaling:": "It grows no faster than it may",
    "regression:": "It is not worse than the baseline",
    "machine:": "The machine was fit to measure",
    "attempts:": "Every attempt counts",
    "bundle:": "Evidence from elsewhere is intact and fits",
}


def headline(report: Report) -> str:
    """Return the verdict as a report's first word."""
    return report.headline


def deciding(report: Report) -> list[Finding]:
    """Return what keeps this from being a pass, worst first; of equals, tests that cannot be run explain the rest.

    Where something stands in the way in a gate that ran, what those left open that did not run is none of it.
    """
    stopping = [(gate.ran, f) for gate in report.gates for f in ranked(gate.findings) if f.blocks or f.leaves_open]
    stopping += [(True, f) for f in ranked(report.findings) if f.blocks or f.leaves_open]
    seen = [f for ran, f in stopping if ran] or [f for _, f in stopping]
    place = {f.fingerprint: index for index, f in enumerate(ranked(seen))}
    return sorted(
        told_once(seen),
        key=lambda f: (not f.blocks, SEVERITIES.index(f.severity), f.rule != THE_RUN, place[f.fingerprint]),
    )


def told_once(findings: Iterable[Finding]) -> list[Finding]:
    """Leave out what is said again of a criterion that it stands for, and of nothing else."""
    kept = list(findings)
    said = {(f.rule, f.outcome, str(f.location), f.message) for f in kept if f.criterion}
    return [f for f in kept if f.criterion or (f.rule, f.outcome, str(f.location), f.message) not in said]


def first_cause(report: Report) -> str:
    """Return the first cause of the verdict in one line."""
    causes = deciding(report)
    if causes:
        first = causes[0]
        parts = [
            first.rule,
            first.criterion or "",
            f"{first.location}:" if first.location else "",
            first.message,
        ]
        return " ".join(part for part in parts if part)
    if report.verdict.reasons:
        return report.verdict.reasons[0]
    return nothing_wrong(report.every_finding)


def nothing_wrong(findings: Iterable[Finding]) -> str:
    """Return what to say where nothing stands in the way, what is waived not left out."""
    names = sorted({finding.criterion or finding.rule for finding in findings if finding.waived})
    save = f", save for what is waived of {', '.join(names)}" if names else ""
    return f"every required check was seen to pass{save}"


def next_step(report: Report) -> tuple[str, str]:
    """Return the next command, and what it is for."""
    task = report.task.id
    for finding in deciding(report):
        if finding.command:
            return finding.command, finding.remediation
        return f"gates explain {task} {finding.criterion or finding.rule}", finding.remediation
    return f"gates explain {task}", "to see what the verdict rests on"


def actions(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    """Return what must be done before a pass, each action once: where, and what."""
    places: dict[str, list[str]] = {}
    for finding in ranked(findings):
        if (finding.blocks or finding.leaves_open) and finding.remediation:
            where = str(finding.location) if finding.location else finding.rule
            known = places.setdefault(finding.remediation, [])
            if where not in known:
                known.append(where)
    return [(", ".join(where), what) for what, where in places.items()]


def unchecked(report: Report) -> list[tuple[str, str]]:
    """Return what was not seen, and why: gates that did not run, then every unknown and all that was not judged."""
    rows = [(gate.title, gate.not_run_because) for gate in report.gates if not gate.ran]
    for gate in report.gates:
        if gate.ran:
            unknown = [f for f in told_once(ranked(gate.findings)) if f.outcome is Outcome.UNKNOWN and not f.waived]
            unknown += [f for f in gate.findings if _was_not_judged(f)]
            rows += [(" ".join(filter(None, [f.rule, f.criterion])), f.message) for f in unknown]
    own = [f for f in ranked(report.findings) if f.outcome is Outcome.UNKNOWN]
    return [*rows, *((" ".join(filter(None, [f.rule, f.criterion])), f.message) for f in own)]


def _was_not_judged(finding: Finding) -> bool:
    """Return whether a finding, good or of no weight, says that something was not judged, and why."""
    partly = finding.outcome is Outcome.PASSED and " was not judged: " in finding.message
    return partly or (finding.outcome is Outcome.NOT_APPLICABLE and finding.actual == "not judged")


def severities(findings: Iterable[Finding]) -> list[tuple[str, int, int]]:
    """Count the findings that failed, and those that are unknown, by severity."""
    counts = Counter((finding.severity, finding.outcome) for finding in told_once(findings) if not finding.waived)
    return [
        (s.value, counts[s, Outcome.FAILED], counts[s, Outcome.UNKNOWN]) for s in SEVERITIES if s is not Severity.INFO
    ]


def quality(gates: Iterable[GateReport]) -> list[tuple[str, str, str, str]]:
    """Return the quality gates: what was checked, what was asked, what was seen, how it ended; worst finding each."""
    rows = []
    for gate in gates:
        by_check = {check.id: check for check in gate.checks}
        worst = _worst(gate)
        for check_id, check in by_check.items():
            if check_id in worst:
                finding = worst[check_id]
                level = "" if check.level is Level.MUST else f" ({check.level.value})"
                seen = finding.actual if gate.ran else "not run"
                rows.append((check.title + level, finding.expected or "-", seen or "-", _ended(finding)))
    return rows


def checks(gate: GateReport) -> list[tuple[str, ...]]:
    """Return the quality gates of one gate, each with its points; what has no share of the score has 0 of 0."""
    lines = list(gate.score.lines)
    scored: dict[str, tuple[str, str]] = {}
    for check in gate.checks:
        if lines and lines[0].title == check.title:
            line = lines.pop(0)
            scored[check.id] = (str(line.got), str(line.of))
    told = [check.id for check in {check.id: check for check in gate.checks}.values() if check.id in _worst(gate)]
    return [
        (title, asked, ended, *scored.get(check_id, ("0", "0")), seen)
        for check_id, (title, asked, seen, ended) in zip(told, quality([gate]), strict=True)
    ]


def advised(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    """Return what is worth doing although a pass does not need it: only what a finding stands behind."""
    places: dict[str, list[str]] = {}
    for finding in ranked(findings):
        open_ = finding.outcome in {Outcome.FAILED, Outcome.UNKNOWN} and not finding.waived
        if open_ and not (finding.blocks or finding.leaves_open) and finding.remediation:
            where = f"{finding.location or finding.rule}: {finding.message}"
            known = places.setdefault(finding.remediation, [])
            if where not in known:
                known.append(where)
    return [("; ".join(where), what) for what, where in places.items()]


def _worst(gate: GateReport) -> dict[str, Finding]:
    """Return the finding that speaks for each check."""
    worst: dict[str, Finding] = {}
    for finding in sorted(ranked(gate.findings), key=_rank_of_waived):
        worst.setdefault(finding.check, finding)
    return worst


def _ended(finding: Finding) -> str:
    return "WAIVED" if finding.waived else word(finding.outcome)


def endings(gate: GateReport) -> str:
    """Return how many checks of a gate ended how, worst first."""
    worst_of = _worst(gate)
    counts = Counter(_ended(worst_of[c]) for c in dict.fromkeys(check.id for check in gate.checks) if c in worst_of)
    return ", ".join(f"{counts[end]} {said}" for end, said in ENDINGS.items() if counts[end])


def kinds(gate: GateReport) -> list[tuple[str, str, str, str]]:
    """Return the quality gates folded by kind: how many checks there are, how many passed, and the worst ending."""
    rows = []
    ends: dict[str, list[Finding]] = {title: [] for title in KINDS.values()}
    worst_of = _worst(gate)
    for check in dict.fromkeys(check.id for check in gate.checks):
        title = next((title for start, title in KINDS.items() if check.startswith(start)), None)
        if title is not None and check in worst_of:
            ends[title].append(worst_of[check])
    for title, found in ends.items():
        counted = [ended for finding in found if (ended := _ended(finding)) != "N/A"]
        if not counted:
            continue
        asked, seen = f"{len(counted)} of {len(counted)}", f"{counted.count('PASS')} of {len(counted)}"
        if title == KINDS["coverage"] and found[0].expected:
            asked, seen = found[0].expected, found[0].actual
        rows.append((title, asked, seen, min(counted, key=WORST.index)))
    return rows


def gaps(report: Report) -> list[tuple[str, str, str, str, str, str]]:
    """Return what each criterion that is not verified lacks: where it is implemented, the gap, and what mends it."""
    rows = []
    for criterion in report.criteria:
        about = [f for f in ranked(report.every_finding) if f.criterion == criterion.id and not f.waived]
        lacking = [f for f in about if f.outcome in {Outcome.FAILED, Outcome.UNKNOWN}]
        if criterion.status in {Status.PASS, Status.WAIVED} or not lacking:
            continue
        there = [t.location for t in criterion.code if t.location and t.location.path != report.task.path]
        places = list(dict.fromkeys(map(str, there)))
        first = list({f.message: f for f in lacking}.values())[:GAPS]
        more = f" (and {len(lacking) - len(first)} more)" if len(lacking) > len(first) else ""
        fixes = dict.fromkeys(f.remediation for f in first if f.remediation)
        rows.append((
            criterion.id, criterion.text, criterion.status.value, ", ".join(places[:GAPS]) or "none",
            "; ".join(f.message.rstrip(".") for f in first) + more, " ".join(fixes) or "-",
        ))  # fmt: skip
    return rows


def standing(report: Report, gate: GateReport) -> list[tuple[str, str, str]]:
    """Return the criteria that a gate found failed or open, each with its status and the first of what it found."""
    rows = []
    for criterion in report.criteria:
        about = (f for f in ranked(gate.findings) if f.criterion == criterion.id and not f.waived)
        first = next((f for f in about if f.outcome in {Outcome.FAILED, Outcome.UNKNOWN}), None)
        if first is not None and criterion.status not in {Status.PASS, Status.WAIVED}:
            rows.append((criterion.id, criterion.status.value, reason(first).replace(f" {criterion.id} ", " ", 1)))
    return rows


def tallied(traces: Iterable[Trace]) -> str:
    """Count tests, and beside them what else was run for a criterion, each with how many of it passed."""
    kinds: dict[str, list[Trace]] = {}
    for trace in traces:
        kinds.setdefault(trace.kind or "test", []).append(trace)
    return "; ".join(
        f"{counted(len(each), kind, 'properties' if kind == 'property' else '')}, "
        f"{sum(trace.outcome is Outcome.PASSED for trace in each)} passed"
        for kind, each in kinds.items()
    )


def _rank_of_waived(finding: Finding) -> int:
    """Put what is open before what is waived, and both before what passed: the worst of a check speaks for it."""
    if finding.waived:
        return 1
    return 0 if finding.outcome in {Outcome.FAILED, Outcome.UNKNOWN} else 2


def word(outcome: Outcome) -> str:
    """Return an outcome as reports print it."""
    return {
        Outcome.PASSED: "PASS",
        Outcome.FAILED: "FAIL",
        Outcome.UNKNOWN: "UNKNOWN",
        Outcome.NOT_APPLICABLE: "N/A",
    }[outcome]


OFFERED = (  # to templates
    headline, deciding, first_cause, next_step, actions, unchecked, severities, quality,
    nothing_wrong, standing, kinds, gaps, checks, advised, endings, tallied,
)  # fmt: skip
