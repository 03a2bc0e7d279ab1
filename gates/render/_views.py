"""What a reader asks of a report first: what failed and why, what to do, how each criterion stands."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from gates.model import Finding, Level, Outcome, Planned, Status
from gates.render import _causes
from gates.render._causes import folded, told_once
from gates.report import CriterionReport, GateReport, Report, Score, ScoreLine, Trace, ranked, reason
from gates.words import counted, in_order

GAPS = 3
CRITERIA = 12  # on the summary
LACKING = {Outcome.FAILED, Outcome.UNKNOWN}
SETTLED = {Status.PASS, Status.WAIVED}
WORST = ("FAIL", "UNKNOWN", "WAIVED", "PASS")
ENDINGS = {"FAIL": "failed", "UNKNOWN": "unknown", "PASS": "passed", "WAIVED": "waived", "N/A": "not applicable"}
WORDS = {
    Outcome.PASSED: "PASS",
    Outcome.FAILED: "FAIL",
    Outcome.UNKNOWN: "UNKNOWN",
    Outcome.NOT_APPLICABLE: "N/A",
}


def in_prose(report: Report) -> str:
    """Return in a few sentences what failed, how many criteria are verified, and what is missing."""
    causes = _causes.deciding(report)
    failed = [cause for cause in causes if cause.first.blocks]
    failing = {criterion.id for criterion in report.criteria if criterion.status is Status.FAIL}
    left = [cause for cause in causes if not cause.first.blocks]
    missing = [cause for cause in left if not (cause.criteria and failing.issuperset(cause.criteria))]
    said = [_of_failures(failed, report)]
    verified = sum(criterion.status is Status.PASS for criterion in report.criteria)
    are = "is" if verified == 1 else "are"
    said.append(f"{verified} of {counted(len(report.criteria), 'criterion', 'criteria')} {are} verified.")
    if not causes and report.verdict.reasons:
        said.append(f"{report.verdict.reasons[0]}.")
    said += [f"{_subject(cause)} inconclusive: {_sentence(cause.first.message)}" for cause in missing[:2]]
    if len(missing) > 2:
        said.append(f"{counted(len(missing) - 2, 'more cause')} to settle.")
    return " ".join(said)


def _of_failures(failed: Sequence[_causes.Cause], report: Report) -> str:
    if failed:
        first = failed[0]
        what = ", ".join(first.criteria) or first.first.rule
        begun = "One cause blocks" if len(failed) == 1 else f"{len(failed)} causes block; the first"
        return f"{begun}: {what}: {_sentence(first.first.message)}"
    if _causes.weak(report):
        return "Nothing that blocks failed."
    names = ", ".join(report.waived)
    return f"Nothing failed, save for what is waived of {names}." if names else "Nothing failed."


def _subject(cause: _causes.Cause) -> str:
    names = cause.criteria or cause.rules
    shown = names if len(names) <= GAPS else (*names[:GAPS], f"{len(names) - GAPS} more")
    return f"{' and '.join(filter(None, [', '.join(shown[:-1]), shown[-1]]))} {'is' if len(names) == 1 else 'are'}"


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def gate_in_prose(report: Report, gate: GateReport) -> str:
    """Return in a few sentences how the checks of a gate ended, and which criteria it found failed or open."""
    if not gate.ran:
        return f"This gate did not run: {_sentence(gate.not_run_because)}"
    said = [f"Of {counted(gate.planned, 'check')}: {endings(gate)}."]
    lacking = [*_lacking(report, gate.findings)]
    known = {gate.reasons[0].replace(f" {c.id} ", " ", 1) for c, _ in lacking if gate.reasons}  # at the head
    for criterion, found in lacking[:GAPS]:
        why = reason(found[0]).replace(f" {criterion.id} ", " ", 1)
        why = "see the first cause." if why in known else _sentence(why)
        said.append(f"{criterion.id} {criterion.status.value}: {why}")
    if len(lacking) > GAPS:
        said.append(f"{len(lacking) - GAPS} more criteria are not verified: see below.")
    return " ".join(said)


def facts(report: Report) -> str:
    """Return in one line of what this run speaks: revision, machine, time, and exit code."""
    revision, world = report.revision, report.environment
    commit = f"commit {revision.commit[:12]}" if revision.commit else "no commit that git could read"
    known = revision.commit and revision.dirty is not None
    state = ("uncommitted changes" if revision.dirty else "clean") if known else ""
    parts = [
        f"{commit}{f' ({state})' if state else ''}",
        f"task of {report.task.policy}" if report.task.policy else "",
        world.get("processor", ""),
        f"Python {world['python']}" if "python" in world else "",
        report.started_at,
        seconds(report.duration_s),
        f"exit code {report.verdict.exit_code}",
    ]
    return ", ".join(part for part in parts if part)


def notes(report: Report) -> list[tuple[str, str]]:
    """Return the lines that only some reports have at their head, each with its label."""
    found = []
    if budgets := report.environment.get("budgets"):
        found.append(("Budgets", budgets))
    if report.revision.dirty and (strays := _causes.strays(report)):
        found.append(("Not of the commit", strays))
    moved = _causes.goalposts(report)
    if moved:
        found.append(("Policy changes", f"{len(moved)}; the first: {moved[0].message}"))
    found += [("Policy changes", f"not compared: {why}") for why in _causes.uncompared(report)]
    standing_ = _causes.waivers(report)
    found += [("Waiver", how) for how in standing_[:GAPS]]
    if len(standing_) > GAPS:
        found.append(("Waiver", f"{len(standing_) - GAPS} more: see business-logic.md"))
    if report.since:
        found.append(("Since the last run", f"({report.since.at}, {report.since.decision.value}) {since(report)}"))
    return found


def since(report: Report) -> str:
    """Return what is another than in the run before."""
    before = report.since
    if before is None:
        return ""
    shown = [*before.criteria[:4], *before.numbers[:2], *before.times]
    left = len(before.criteria) + len(before.numbers) + len(before.times) - len(shown)
    return "; ".join(shown) + (f"; {left} more" if left else "") if shown else "no criterion or number changed"


def seconds(duration_s: float) -> str:
    """Return a duration as people read it."""
    if duration_s < 60:
        return f"{duration_s:.1f} s"
    return f"{int(duration_s // 60)} min {int(duration_s % 60)} s"


def shown_criteria(report: Report) -> list[CriterionReport]:
    """Return the criteria that the summary shows: all, or where they are many those first that are not verified."""
    everything = list(report.criteria)
    if len(everything) <= CRITERIA:
        return everything
    return sorted(everything, key=lambda criterion: criterion.status in SETTLED)[:CRITERIA]


def evidence_for(report: Report, criterion: CriterionReport) -> str:
    """Return what a criterion rests on with its numbers, or the first reason why it is not verified."""
    if criterion.status is not Status.PASS and criterion.reasons:
        more = f" (and {len(criterion.reasons) - 1} more)" if len(criterion.reasons) > 1 else ""
        return f"{_without_id(criterion, report)}{more}"
    measured = [f"{trace.name}: {trace.detail}" for trace in criterion.measures if trace.outcome is Outcome.PASSED]
    shown = measured[:2] + ([counted(len(measured) - 2, "more measure")] if len(measured) > 2 else [])
    tests = [tallied(criterion.tests)] if criterion.tests else []
    code = [f"code in {counted(len({t.location.path for t in criterion.code if t.location}), 'file')}"]
    return "; ".join([*shown, *tests, *(code if criterion.code else [])])


def _without_id(criterion: CriterionReport, report: Report) -> str:
    """Return the first reason of a criterion, without the rule and the place that its finding has."""
    about = (f for f in ranked(report.every_finding) if f.criterion == criterion.id and not f.waived)
    said = {reason(finding): finding.message for finding in about}
    return said.get(criterion.reasons[0], criterion.reasons[0])


def first_cause(report: Report) -> str:
    """Return the first cause of the verdict in one line."""
    causes = _causes.deciding(report)
    if causes:
        return reason(causes[0].first)
    return report.verdict.reasons[0] if report.verdict.reasons else nothing_wrong(report.every_finding)


def nothing_wrong(findings: Iterable[Finding]) -> str:
    """Return what to say where nothing stands in the way, what is waived not left out."""
    names = in_order({finding.criterion or finding.rule for finding in findings if finding.waived})
    save = f", save for what is waived of {', '.join(names)}" if names else ""
    return f"every required check was seen to pass{save}"


def next_step(report: Report) -> tuple[str, str]:
    """Return the next command, and what it is for."""
    task = report.task.id
    for cause in _causes.deciding(report):
        explained = f"gates explain {task} {cause.first.criterion or cause.first.rule}"
        return cause.command or explained, cause.first.remediation
    return f"gates explain {task}", "to see what the verdict rests on"


def unchecked(report: Report, told: Iterable[_causes.Cause] = ()) -> list[tuple[str, str]]:
    """Return what was not seen, and why: gates that did not run, numbers, then all that is unknown or not judged.

    What causes explain that a page has `told`, and what only follows from them, is left out.
    """
    known = {finding for cause in told for finding in cause.findings}
    rows = [(gate.title, gate.not_run_because) for gate in report.gates if not gate.ran]
    unknown: list[Finding] = []
    for gate in report.gates:
        if gate.ran:
            unknown += [f for f in told_once(gate.findings) if f.outcome is Outcome.UNKNOWN and not f.waived]
            unknown += [f for f in gate.findings if _was_not_judged(f)]
    unknown += [f for f in report.findings if f.outcome is Outcome.UNKNOWN]
    unknown = [f for f in unknown if not (known and (f in known or f.follows))]
    bare = [criterion.id for criterion in report.criteria if criterion.unmeasured]
    rows += [(", ".join(bare), "the text names a quantity or a device, and nothing is measured")] if bare else []
    return [*rows, *folded(unknown)]


def _was_not_judged(finding: Finding) -> bool:
    """Return whether a finding, good or of no weight, says that something was not judged, and why."""
    partly = finding.outcome is Outcome.PASSED and " was not judged: " in finding.message
    return partly or (finding.outcome is Outcome.NOT_APPLICABLE and finding.actual == "not judged")


def checks(gate: GateReport) -> list[tuple[str, ...]]:
    """Return each check of a gate: what was asked and seen, how it ended, and its points."""
    lines = list(gate.score.lines)
    rows: list[tuple[str, ...]] = []
    for check, finding in _decided(gate):
        line = lines.pop(0) if lines and lines[0].title == check.title else ScoreLine(title="", got=0, of=0)
        level = "" if check.level is Level.MUST else f" ({check.level.value})"
        seen = (finding.actual or "-") if gate.ran else "not run"
        title = check.title + level
        rows.append((title, finding.expected or "-", _ended(finding), str(line.got), str(line.of), seen))
    return rows


def score_by_kind(gate: GateReport) -> Score:
    """Return the points of a gate, those of the checks of one kind in one line."""
    kinds_ = {check.title: check.kind or check.title for check in gate.checks}
    points: dict[str, list[ScoreLine]] = {}
    for line in gate.score.lines:
        points.setdefault(kinds_.get(line.title, line.title), []).append(line)
    return Score(total=gate.score.total, of=gate.score.of, lines=tuple(_sum(*kind) for kind in points.items()))


def _sum(kind: str, each: Sequence[ScoreLine]) -> ScoreLine:
    got, of = sum(line.got for line in each), sum(line.of for line in each)
    return ScoreLine(title=kind, got=got, of=of, note=counted(len(each), "check"))


def advised(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    """Return what is worth doing although a pass does not need it: only what a finding stands behind."""
    open_ = (f for f in findings if f.outcome in LACKING and not f.waived and f.remediation)
    found = _causes.causes(f for f in open_ if not (f.blocks or f.leaves_open or f.follows))
    return [(f"{cause.where or cause.first.rule}: {cause.title}", cause.first.remediation) for cause in found]


def kinds(gate: GateReport) -> list[tuple[str, str, str]]:
    """Return the checks of a gate by what they are about: how many passed, and the worst ending."""
    ends: dict[str, list[str]] = {}
    for check, finding in _decided(gate):
        if (ended := _ended(finding)) != "N/A":
            ends.setdefault(check.kind or check.title, []).append(ended)
    return [
        (kind, f"{found.count('PASS')} of {len(found)}", min(found, key=WORST.index)) for kind, found in ends.items()
    ]


def _decided(gate: GateReport) -> list[tuple[Planned, Finding]]:
    """Return each check with the finding that speaks for it: what is open before what is waived, then what passed."""
    worst: dict[str, Finding] = {}
    for finding in sorted(ranked(gate.findings), key=lambda f: 1 if f.waived else 0 if f.outcome in LACKING else 2):
        worst.setdefault(finding.check, finding)
    checks_ = {check.id: check for check in gate.checks}.values()
    return [(check, worst[check.id]) for check in checks_ if check.id in worst]


def _ended(finding: Finding) -> str:
    return "WAIVED" if finding.waived else word(finding)


def word(finding: Finding) -> str:
    """Return how a finding ended as reports print it."""
    return WORDS[finding.outcome]


def endings(gate: GateReport) -> str:
    """Return how many checks of a gate ended how, worst first."""
    counts = Counter(_ended(finding) for _, finding in _decided(gate))
    return ", ".join(f"{counts[end]} {said}" for end, said in ENDINGS.items() if counts[end])


def gaps(report: Report) -> list[tuple[str, str, str, str, str, str]]:
    """Return what each criterion that is not verified lacks: where it is implemented, the gap, and what fixes it."""
    rows = []
    for criterion, lacking in _lacking(report, report.every_finding):
        there = [t.location for t in criterion.code if t.location and t.location.path != report.task.path]
        places = list(dict.fromkeys(map(str, there)))
        found = _causes.causes(lacking)
        more = f" (and {len(found) - GAPS} more)" if len(found) > GAPS else ""
        fixes = dict.fromkeys(cause.first.remediation for cause in found[:GAPS] if cause.first.remediation)
        said = "; ".join(cause.title.rstrip(".") for cause in found[:GAPS]) + more
        where, fix = ", ".join(places[:GAPS]) or "none", " ".join(fixes) or "-"
        rows.append((criterion.id, criterion.text, criterion.status.value, where, said, fix))
    return rows


def _lacking(report: Report, findings: Iterable[Finding]) -> Iterator[tuple[CriterionReport, list[Finding]]]:
    """Yield each criterion that is not settled, with what of some findings it lacks, the worst first."""
    found = [f for f in ranked(findings) if f.outcome in LACKING and not f.waived]
    for criterion in report.criteria:
        about = [f for f in found if f.criterion == criterion.id]
        if about and criterion.status not in SETTLED:
            yield criterion, about


def tallied(traces: Iterable[Trace]) -> str:
    """Count tests, and beside them what else was run for a criterion, each with how many of it passed."""
    kinds_: dict[str, list[Trace]] = {}
    for trace in traces:
        kinds_.setdefault(trace.kind or "test", []).append(trace)
    return "; ".join(_passed(kind, each) for kind, each in kinds_.items())


def _passed(kind: str, traces: Sequence[Trace]) -> str:
    passed = sum(trace.outcome is Outcome.PASSED for trace in traces)
    if passed == len(traces):
        return f"{counted(passed, kind)} passed"
    return f"{passed} of {counted(len(traces), kind)} passed"


FACTS = (in_prose, gate_in_prose, facts, notes, seconds, shown_criteria, evidence_for, first_cause, next_step)
LISTS = (unchecked, folded, nothing_wrong, kinds, gaps, checks, score_by_kind, advised)
OFFERED = (*FACTS, *LISTS, endings, tallied, word, *_causes.OFFERED)  # to templates
