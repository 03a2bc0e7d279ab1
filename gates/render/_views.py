"""What a reader asks of a report first; templates may call what has no underscore in front."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gates.model import SEVERITIES, Finding, Outcome, Planned, Status
from gates.report import LACKING, QUANTITY, CriterionReport, GateReport, Report, ScoreLine, Trace, ranked, speaking
from gates.words import counted, first_of, grouped, in_order, joined

THE_RUN = "EX001"  # a test run that cannot be believed explains what its tests left open
PLACES = 5
UNSEEN = "Whether the change lowers what judges it was not seen: "
GAPS = 3
SHORT = 9  # words; a longer sentence stands on a page once
ROWS = 6  # of what keeps a task from a pass
CRITERIA = 12  # on the summary
SETTLED = {Status.PASS, Status.WAIVED}
WORST = ("FAIL", "UNKNOWN", "WAIVED", "PASS")
ENDINGS = {"FAIL": "failed", "UNKNOWN": "unknown", "PASS": "passed", "WAIVED": "waived", "N/A": "not applicable"}
LIGHT = {"FAIL": " (none blocks)", "UNKNOWN": " (none required)"}  # where nothing keeps a gate from its pass


class Cause(NamedTuple):
    """What keeps something from holding: the findings that it explains, the worst first."""

    findings: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        """Return the finding that speaks for all of them."""
        return self.findings[0]

    @property
    def criteria(self) -> tuple[str, ...]:
        """Return the criteria that it concerns, in order."""
        return tuple(in_order({f.criterion for f in self.findings if f.criterion}))

    @property
    def rules(self) -> tuple[str, ...]:
        """Return the rules that found it, in order."""
        return tuple(sorted({f.rule for f in self.findings}))

    @property
    def where(self) -> str:
        """Return the first places that it was found at, those of a file together, and how many more there are."""
        places = list(dict.fromkeys(str(f.location) for f in self.findings if f.location))
        files: dict[str, list[str]] = {}
        for path, _, lines in (place.partition(":") for place in places[:PLACES]):
            files.setdefault(path, []).extend(filter(None, [lines]))
        shown = (f"{path}:{','.join(lines)}" if lines else path for path, lines in files.items())
        return ", ".join(shown) + (f" and {len(places) - PLACES} more" if len(places) > PLACES else "")

    @property
    def others(self) -> list[str]:
        """Return what the other findings say, where that is something else than what the first says."""
        return [*dict.fromkeys(f.message for f in self.findings)][1:]

    @property
    def title(self) -> str:
        """Return it in one line, with the number of findings that say something else of the same."""
        return f"{self.first.message}{_more(self.findings)}"


def _more(findings: Sequence[Finding]) -> str:
    """Return how many findings say something else than the first of some, and of how many each stands."""
    more = sum({finding.message: finding.alike for finding in findings}.values()) - findings[0].alike
    return f" (and {more} more like it)" if more else ""


def causes(findings: Iterable[Finding]) -> list[Cause]:
    """Group findings by what explains them: a place that failed, or one thing to do; the worst first."""
    found = [Cause(tuple(group)) for group in grouped(ranked(findings), _key).values()]
    return sorted(found, key=lambda c: (not c.first.blocks, SEVERITIES.index(c.first.severity)))


def deciding(report: Report) -> list[Cause]:
    """Return the causes that keep this from being a pass, failures first, without what only follows from others."""
    stopping = [(gate.ran, f) for gate in report.gates for f in gate.findings if f.blocks or f.leaves_open]
    stopping += [(True, f) for f in report.findings if f.blocks or f.leaves_open]
    seen = [f for ran, f in stopping if ran] or [f for _, f in stopping]
    found = causes([f for f in seen if not f.follows] or seen)
    return sorted(found, key=lambda c: (not c.first.blocks, THE_RUN not in c.rules))


def weak(findings: Iterable[Finding]) -> list[Cause]:
    """Return the causes of what failed and stops nothing: the worst of each rule, then the others."""
    failed = [f for f in findings if f.outcome is Outcome.FAILED]
    told = {f.message for f in failed if f.blocks}
    found = causes(f for f in failed if not (f.waived or f.follows or f.message in told))
    return sorted(found, key=lambda cause: cause is not next(each for each in found if each.rules == cause.rules))


def _key(finding: Finding) -> tuple[object, ...]:
    """Return what findings of one cause share: a line that failed, or one thing to do of one file of evidence."""
    outcome, place = finding.outcome, finding.location
    code = place is not None and place.line is not None and not place.path.endswith((".yaml", ".yml"))
    if outcome is Outcome.FAILED and code:
        return outcome, str(place)
    if finding.cause:
        return outcome, finding.cause
    if finding.remediation:
        return outcome, finding.remediation, finding.evidence or finding.rule
    return outcome, finding.rule, str(place), finding.message


def firsts(told: Sequence[Cause]) -> dict[str, int]:
    """Return which of some causes, counted from 1, is the first with each impact and each fix; short ones have none."""
    said = [(text, i) for i, cause in enumerate(told, 1) for text in (cause.first.impact, cause.first.remediation)]
    return {text: i for text, i in reversed(said) if len(text.split()) > SHORT}


def told_once(findings: Iterable[Finding]) -> list[Finding]:
    """Leave out what is said again of a criterion that it stands for, and of nothing else."""
    kept = list(findings)
    said = {(f.rule, f.outcome, str(f.location), f.message) for f in kept if f.criterion}
    return [f for f in kept if f.criterion or (f.rule, f.outcome, str(f.location), f.message) not in said]


def folded(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    """Return what findings say, those of one rule in one line: the first of them, and how many more there are."""
    rows = []
    for rule, found in grouped(ranked(findings), lambda finding: finding.rule).items():
        names = in_order({f.criterion for f in found if f.criterion})
        rows.append((" ".join([rule, ", ".join(names)]).strip(), f"{found[0].message}{_more(found)}"))
    return rows


def in_prose(report: Report) -> str:
    """Return in a few sentences what failed, how many criteria are verified, and what is missing."""
    causes_ = deciding(report)
    failing = {criterion.id for criterion in report.criteria if criterion.status is Status.FAIL}
    failed, left = ([cause for cause in causes_ if cause.first.blocks is blocks] for blocks in (True, False))
    missing = [cause for cause in left if not (cause.criteria and failing.issuperset(cause.criteria))]
    said = [_of_failures(failed, report)]
    verified = sum(criterion.status is Status.PASS for criterion in report.criteria)
    said.append(f"{verified} of {counted(len(report.criteria), 'criterion', 'criteria')} {_are(verified)} verified.")
    said += [f"{reason}." for reason in report.verdict.reasons[:1] if not causes_]
    for cause in missing[:2]:
        names = cause.criteria[:GAPS] + ((f"{len(cause.criteria) - GAPS} more",) if len(cause.criteria) > GAPS else ())
        about = f"{joined(names)} {_are(len(names))} inconclusive" if names else joined(cause.rules)
        said.append(f"{about}: {_shortly(cause, causes_)}")
    said += [f"{counted(len(missing) - 2, 'more cause')} to settle."] if len(missing) > 2 else []
    return " ".join(said)


def _of_failures(failed: Sequence[Cause], report: Report) -> str:
    if failed:
        begun = "One cause blocks" if len(failed) == 1 else f"{len(failed)} causes block; the first"
        return f"{begun}: {', '.join(failed[0].criteria) or failed[0].first.rule}: {_shortly(failed[0], failed)}"
    save = f", save for what is waived of {', '.join(report.waived)}" if report.waived else ""
    return "Nothing that blocks failed." if weak(report.every_finding) else f"Nothing failed{save}."


def _shortly(cause: Cause, rows: Sequence[Cause]) -> str:
    """Return what a cause says; where that is long, what was asked and seen, or the row that says it."""
    first, row = cause.first, rows.index(cause) + 1
    if len(first.message.split()) <= SHORT or row > ROWS:
        return _sentence(first.message)
    pair = f"{first.actual} (expected `{first.expected}`)." if first.expected and first.actual else ""
    return pair if 0 < len(pair.split()) <= 2 * SHORT else f"see row {row} below."


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def gate_in_prose(report: Report, gate: GateReport) -> str:
    """Return in two sentences how the checks of a gate ended, and which criteria or rules keep it from a pass."""
    if not gate.ran:
        return f"This gate did not run: {_sentence(gate.not_run_because)}"
    status = {criterion.id: f"{criterion.id} ({criterion.status.value})" for criterion in report.criteria}
    stopping = [f for f in gate.findings if f.blocks or f.leaves_open]
    stopping = [f for f in stopping if not f.follows] or stopping
    names = [status.get(each, each) for each in in_order({f.criterion or f.rule for f in stopping})]
    why = f"{gate.decision.value} because of {first_of(names, CRITERIA)}" if names else nothing_wrong(gate.findings)
    return f"Of {counted(gate.planned, 'check')}: {endings(gate)}. {_sentence(why[0].upper() + why[1:])}"


def facts(report: Report) -> str:
    """Return in one line of what this run speaks: revision, machine, time, and exit code."""
    revision, world = report.revision, report.environment
    state = {True: " (uncommitted changes)", False: " (clean)", None: ""}[revision.dirty]
    parts = [
        f"commit {revision.commit[:12]}{state}" if revision.commit else "no commit that git could read",
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
    everything = ranked(report.every_finding)
    found = [("Not of the commit", strays(report))] if report.revision.dirty and strays(report) else []
    moved = [f for f in everything if f.rule == "BL011" and f.outcome is Outcome.FAILED]
    found += [("Policy changes", f"{sum(f.alike for f in moved)}; the first: {moved[0].message}")] if moved else []
    bars = [f for gate in report.gates if gate.ran for f in gate.findings if f.rule == "BL011" and not f.subject]
    unseen = (f.message.removeprefix(UNSEEN) for f in bars if f.outcome is Outcome.UNKNOWN)
    found += [("Policy changes", f"not compared: {why}") for why in unseen]
    waivers = [*dict.fromkeys(f.message for f in everything if f.rule == "BL012")]
    found += [("Waiver", how) for how in waivers[:GAPS]]
    found += [("Waiver", f"{len(waivers) - GAPS} more: see business-logic.md")] if len(waivers) > GAPS else []
    return found + ([("Since the last run", report.since)] if report.since else [])


def strays(report: Report) -> str:
    """Return the files that ran and that the commit does not have."""
    return f"{first_of(ran, PLACES)} ran and {_are(len(ran))} not in it" if (ran := report.revision.strays) else ""


def seconds(duration_s: float) -> str:
    """Return a duration as people read it."""
    return f"{duration_s:.1f} s" if duration_s < 60 else f"{int(duration_s // 60)} min {int(duration_s % 60)} s"


def shown_criteria(report: Report) -> list[CriterionReport]:
    """Return the criteria that the summary shows: all, or where they are many those first that are not verified."""
    return sorted(report.criteria, key=lambda c: len(report.criteria) > CRITERIA and c.status in SETTLED)[:CRITERIA]


def evidence_for(report: Report, criterion: CriterionReport, told: Sequence[Cause] = ()) -> str:
    """Return what a criterion rests on with its numbers; where it is not verified, first what it lacks.

    Of what the page has `told` in rows, it names the rows.
    """
    about = (f for f in report.every_finding if f.criterion == criterion.id and not f.waived)
    why = next(iter(criterion.reasons if criterion.status is not Status.PASS else ()), None)
    said = next((f.message for f in about if str(f) == why), why)
    rows = [str(i) for i, c in enumerate(told, 1) if said and (criterion.id in c.criteria or c.first.message == said)]
    if said and not rows:
        return f"{said} (and {len(criterion.reasons) - 1} more)" if len(criterion.reasons) > 1 else said
    lacking = [said] if said and not any(said == f.message for cause in told for f in cause.findings) else []
    lacking += [f"see row{'s' if len(rows) > 1 else ''} {joined(rows)} above"] if rows else []
    measured = [f"{trace.name}: {trace.detail}" for trace in criterion.measures if trace.outcome is Outcome.PASSED]
    shown = measured[:2] + ([counted(len(measured) - 2, "more measure")] if len(measured) > 2 else [])
    tests = [tallied(criterion.tests)] if criterion.tests else []
    code = [f"code in {counted(len({t.location.path for t in criterion.code if t.location}), 'file')}"]
    return "; ".join([*lacking, *shown, *tests, *(code if criterion.code else [])])


def nothing_wrong(findings: Iterable[Finding]) -> str:
    """Return what to say where nothing stands in the way, what is waived not left out."""
    names = in_order({finding.criterion or finding.rule for finding in findings if finding.waived})
    save = f", save for what is waived of {', '.join(names)}" if names else ""
    return f"every required check was seen to pass{save}"


def next_step(report: Report) -> tuple[str, str]:
    """Return the next command, and what it is for."""
    about, purpose = "", "to see what the verdict rests on"
    if cause := next(iter(deciding(report)), None):
        if settling := next((f.command for f in cause.findings if f.command), ""):
            return settling, cause.first.remediation
        about, purpose = f" {cause.first.criterion or cause.first.rule}", cause.first.remediation
    return f"gates explain {report.task.id}{about}{report.found_by}", purpose


def unchecked(report: Report, told: Iterable[Cause] = ()) -> list[tuple[str, str]]:
    """Return what was not seen, and why, without what the causes explain that a page has `told`."""
    known = {finding for cause in told for finding in cause.findings}
    rows, unknown = [(gate.title, gate.not_run_because) for gate in report.gates if not gate.ran], list[Finding]()
    for found in [gate.findings for gate in report.gates if gate.ran]:
        unknown += [f for f in told_once(found) if f.outcome is Outcome.UNKNOWN and not f.waived]
        unknown += [f for f in found if f.unseen]
    unknown += [f for f in report.findings if f.outcome is Outcome.UNKNOWN]
    unknown = [f for f in unknown if not (known and (f in known or f.follows))]
    bare = [c.id for c in report.criteria if c.status is Status.PASS and not c.measures and QUANTITY.search(c.text)]
    rows += [(", ".join(bare), "the text names a quantity or a device, and nothing is measured")] if bare else []
    return [*rows, *folded(unknown)]


def checks(gate: GateReport) -> list[tuple[Planned, Finding, ScoreLine | None]]:
    """Return each check with its points and the finding that speaks for it: what is open, then waived, then passed."""
    spoken, lines = speaking(gate.findings), {line.check: line for line in gate.score.lines}
    planned = {check.id: check for check in gate.checks if check.id in spoken}
    return [(check, spoken[name], lines.get(name)) for name, check in planned.items()]


def kinds(gate: GateReport) -> list[tuple[str, str, str, int, int]]:
    """Return the checks of a gate by what they are about: the worst ending, how many passed, points got of how many."""
    asked = [(check.kind or check.title, word(f), line) for check, f, line in checks(gate) if word(f) != "N/A"]
    rows = []
    for kind, each in grouped(asked, lambda row: row[0]).items():
        ends, lines = [end for _, end, _ in each], [line for *_, line in each if line]
        passed, got, of = ends.count("PASS"), sum(line.got for line in lines), sum(line.of for line in lines)
        rows.append((min(ends, key=WORST.index), kind, f"{passed} of {len(ends)}", got, of))
    return rows


def word(finding: Finding) -> str:
    """Return how a finding ended as reports print it."""
    return "WAIVED" if finding.waived else next(end for end in ENDINGS if ENDINGS[end] == finding.outcome.words)


def endings(gate: GateReport) -> str:
    """Return how many checks of a gate ended how, worst first."""
    counts = Counter(word(finding) for _, finding, _ in checks(gate))
    light = {} if any(f.blocks or f.leaves_open for f in gate.findings) else LIGHT
    return ", ".join(f"{counts[end]} {said}{light.get(end, '')}" for end, said in ENDINGS.items() if counts[end])


def gaps(report: Report) -> list[tuple[str, str, str, str]]:
    """Return what keeps criteria from being verified, cause by cause: these, its ending, what it is, what fixes it."""
    unsettled = {c.id for c in report.criteria if c.status not in SETTLED}
    lacking = (f for f in report.every_finding if f.outcome in LACKING and not f.waived and f.criterion in unsettled)
    return [(", ".join(c.criteria), word(c.first), c.title, c.first.remediation or "-") for c in causes(lacking)]


def tallied(traces: Iterable[Trace]) -> str:
    """Count tests, and beside them what else was run for a criterion, each with how many of it passed."""
    counts = []
    for kind, each in grouped(traces, lambda trace: trace.kind or "test").items():
        passed = sum(trace.outcome is Outcome.PASSED for trace in each)
        counts.append(f"{'' if passed == len(each) else f'{passed} of '}{counted(len(each), kind)} passed")
    return "; ".join(counts)
