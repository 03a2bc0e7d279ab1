"""The part of the performance gate on evidence from elsewhere: is each bundle as it was written, and does it fit?"""

from collections.abc import Iterator

from gates.check import EvidenceSet
from gates.checks.measures.answers import Answer, speaks_to, targets_of, told_by
from gates.evidence.bundles import Bundles, HandedIn, Standing
from gates.model import Finding, Level, Outcome, Planned, RuleText
from gates.report import Section
from gates.task.task import Criterion, Measure, Task
from gates.words import in_shell

RULES = (
    RuleText(
        id="PF008",
        title="Evidence from elsewhere is intact and current",
        meaning="A bundle that was altered, unsigned where asked, or of another task is refused: no pass. "
        "One whose files, measurement or limits changed is stale, and answers nothing.",
    ),
)


def plan(task: Task) -> Iterator[Planned]:
    """Plan one check for each bundle that was handed in."""
    for path in task.bundles:
        yield Planned(id=f"bundle:{path}", title=f"Evidence from elsewhere: {path}", scored=False)


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Say of each bundle whether it is taken, and if not why."""
    bundles = evidence.get(Bundles)
    known = {one.path: one for one in bundles.handed_in} if bundles else {}
    for path in task.bundles:
        one = known.get(path)
        if one is None:
            why = evidence.why_missing(Bundles) if bundles is None else "it was not looked at"
            yield _finding(task, path, Outcome.UNKNOWN, f"was not looked at: {why}", Level.MUST)
        elif one.standing is Standing.REFUSED:
            yield _finding(task, path, Outcome.UNKNOWN, f"is refused: {one.why}", Level.MUST)
        elif reason := _stale(task, one):
            yield _finding(task, path, Outcome.UNKNOWN, f"is stale: {reason}", Level.ADVISORY, one)
        else:
            yield _finding(task, path, Outcome.PASSED, f"fits{_in_part(one)}, {_from(one)}", Level.MUST, one)


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell of each bundle where it comes from and what it is worth here, and what it says to each measure."""
    bundles = evidence.get(Bundles)
    if bundles is None:
        return
    yield Section(
        title="Evidence from elsewhere",
        text="Measured on other machines. A measure passes where some machine's interval meets its target, with the "
        "error shared among the runs, and none misses it; samples of two runs are never put together.",
        columns=("Bundle", "Made", "By", "Revision", "Device", "Standing"),
        rows=tuple(_row(task, one) for one in bundles.handed_in),
    )
    rows = [row for one in bundles.handed_in for c, _, m in targets_of(task) for row in _said(one, c, m)]
    if rows:
        columns = ("Criterion", "Measure", "Bundle", "Measured", "Interval", "n", "Device", "Outcome")
        yield Section(title="What bundles say", columns=columns, rows=tuple(rows))
    for one in bundles.handed_in:
        if one.origin:
            yield Section(title=f"Bundle {one.path}", facts=tuple(_facts(one)))


def _finding(task: Task, path: str, outcome: Outcome, said: str, level: Level, one: HandedIn | None = None) -> Finding:
    passed, advisory = outcome is Outcome.PASSED, level is Level.ADVISORY
    again = "Make it again on such a machine." if advisory else "Take the file as `gates measure` wrote it."
    return Finding(
        rule="PF008", check=f"bundle:{path}", outcome=outcome, level=level, subject=path,
        message=f"The bundle {path} {said}.", expected="as it was written, of the files as they are here",
        actual="fits" if passed else "stale" if advisory else "refused",
        impact="" if passed else "It answers no criterion.", remediation="" if passed else again,
        command=_again(task, one) if advisory else "",
        evidence=one.runs[0].run.raw if one and one.runs else None,
    )  # fmt: skip


def _again(task: Task, one: HandedIn | None) -> str:
    """Return the command that makes a bundle again; nothing of it comes from the bundle but a device's kind."""
    kinds = {run.run.samples.device.type for run in one.runs if run.run.samples} if one else set()
    asked = sorted(kinds & {measure.on for _, _, measure in targets_of(task)})
    return f"gates measure {task.id}{f' --on {asked[0]}' if len(kinds) == len(asked) == 1 else ''}"


def _stale(task: Task, one: HandedIn) -> str:
    """Return why a bundle answers no measure of the task, or nothing where it does."""
    if one.standing is Standing.STALE:
        return f"{one.why}, since it was made" if one.runs else one.why
    measures = [measure for _, _, measure in targets_of(task)]
    if not one.runs or any(speaks_to(run, measure) for run in one.runs for measure in measures):
        return ""
    return "no measure asks for what it holds; those that it was made for were changed or are not asked for"


def _in_part(one: HandedIn) -> str:
    if not one.runs:
        return f" ({one.why})"
    return f" in part ({one.why}, since it was made)" if one.why else ""


def _from(one: HandedIn) -> str:
    signed = f", signed by {one.signer}" if one.signer else ""
    return f"made {one.origin.at} at {one.origin.revision}{signed}" if one.origin else "from nowhere"


def _row(task: Task, one: HandedIn) -> tuple[str, ...]:
    devices = dict.fromkeys(f"{s.device.type}: {s.device.name}" for run in one.runs if (s := run.run.samples))
    reason = _stale(task, one)
    standing = f"stale: {reason}" if reason and one.standing is not Standing.REFUSED else f"{one.standing}"
    if one.standing is Standing.REFUSED or (one.why and not reason):
        standing += f": {one.why}"
    if one.origin is None:
        return one.path, "-", "-", "-", "-", standing
    by = f"{one.origin.by}{' (signed)' if one.signer else ' (not signed)'}"
    return one.path, one.origin.at, by, one.origin.revision, ", ".join(devices) or "-", standing


def _said(one: HandedIn, criterion: Criterion, measure: Measure) -> Iterator[tuple[str, ...]]:
    for run in one.runs if one.standing is Standing.FITS else ():
        if speaks_to(run, measure):
            got: Answer = told_by(run.run, measure)
            value, interval = "-", "-"
            if got.seen:
                value, interval = f"{got.seen.value:.4g}", f"[{got.seen.low:.4g}, {got.seen.high:.4g}]"
            device = run.run.samples.device.name if run.run.samples else "-"
            count = str(got.seen.n) if got.seen else "-"
            yield criterion.id, measure.name, one.path, value, interval, count, device, got.outcome.value


def _facts(one: HandedIn) -> Iterator[tuple[str, str]]:
    assert one.origin is not None
    yield "Command", in_shell(one.origin.command)
    yield "Digest", one.digest
    yield "Signed by", one.signer or "nobody whose signature was asked for: the digest tells alterations, not lies"
    for name, value in sorted(one.origin.environment.items()):
        yield f"Environment: {name}", value
    for run in one.runs:
        for name, value in sorted(run.run.samples.environment.items() if run.run.samples else ()):
            yield f"{run.run.id} on {run.run.device}: {name}", value
