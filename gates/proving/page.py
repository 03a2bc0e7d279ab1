"""A proof as text for a terminal and as a Markdown page."""

from collections.abc import Iterator

from gates.project.permalinks import Web
from gates.proving.proof import CriterionProof, End, Proof, Standing, TriedFault
from gates.render.escape import block, cell, inline, link
from gates.render.escape import markdown as flow
from gates.words import counted, visible

HEADLINES = {0: "PROVED", 1: "NOT PROVED", 3: "UNPROVED"}
PASSED_BY = "its tests run none of its code: they would pass whatever it does"
LISTED = 10


def text(proof: Proof) -> str:
    """Return a proof for a terminal: a line a criterion, and the survivors."""
    lines = [f"{proof.task}  {HEADLINES[proof.exit_code]}  ({proof.duration_s:g} s)"]
    lines += [_line(criterion) for criterion in proof.criteria]
    for criterion in proof.criteria:
        shown = criterion.survivors[:LISTED]
        lines += [f"{criterion.id} survived: {fault.location}: {fault.title}" for fault in shown]
        if more := len(criterion.survivors) - len(shown):
            lines.append(f"{criterion.id} survived: ... and {more} more (see proof.md)")
    lines += [f"{criterion.id} {how}" for criterion in proof.criteria if (how := criterion.going_on(proof.task))]
    lines += [f"note: {note}" for note in proof.notes]
    return "\n".join(visible(line) for line in lines) + "\n"


def markdown(proof: Proof, web: Web | None) -> str:
    """Return a proof as a Markdown page; `web` is where the files of this revision can be read."""
    lines = [
        f"# Proof of {inline(proof.task)}: {inline(proof.title)}", "",
        f"**{HEADLINES[proof.exit_code]}**: {_headline(proof)}", "",
        f"- begun {proof.started_at}, {proof.duration_s:g} s, of which {proof.budget_s:g} s at most for trying faults",
        f"- commit {inline(proof.commit or 'none')}, files {inline(proof.digest[:16])}",
        *(f"- {flow(note)}" for note in proof.notes), "",
        "Faults were put into a copy of the project, one at a time; the tests of the criterion had to notice.", "",
        "## Criteria", "",
        "| Criterion | Requirement | Level | Standing | Noticed | Rate | Asked | Not counted |",
        "|---|---|---|---|---|---|---|---|",
        *(_row(criterion) for criterion in proof.criteria), "",
    ]  # fmt: skip
    for criterion in proof.criteria:
        lines += _criterion(criterion, proof.task, web)
    return "\n".join(lines).rstrip("\n") + "\n"


def _headline(proof: Proof) -> str:
    counts = {standing: sum(c.standing is standing for c in proof.criteria) for standing in Standing}
    return ", ".join(f"{count} {standing.value}" for standing, count in counts.items() if count)


def _line(criterion: CriterionProof) -> str:
    head = f"  {criterion.id:<6} {criterion.level.value:<9} {criterion.standing.value:<22}"
    if criterion.problem or criterion.passed_by:
        return f"{head} {criterion.problem or PASSED_BY}"
    off = _off(criterion)
    return f"{head} {_noticed(criterion)}{f'  ({off})' if off else ''}"


def _row(criterion: CriterionProof) -> str:
    rate = "-" if criterion.rate is None else f"{criterion.rate:.0%}"
    cells = [
        criterion.id,
        criterion.text,
        criterion.level.value,
        criterion.standing.value,
        _noticed(criterion, short=True),
        rate,
        f"{criterion.killed_at_least:.0%}",
        _off(criterion) or "-",
    ]
    return f"| {' | '.join(str(inline(each)) for each in cells)} |"


def _noticed(criterion: CriterionProof, *, short: bool = False) -> str:
    if criterion.rate is None:
        return "-"
    seen = f"{len(criterion.noticed)} of {len(criterion.counted)}"
    return seen if short else f"{seen} faults noticed, {criterion.rate:.0%}"


def _off(criterion: CriterionProof) -> str:
    ends = (End.TIMEOUT, End.BROKEN, End.UNSTEADY, End.NOT_TRIED)
    counts = [f"{count} {end.value}" for end in ends if (count := criterion.count(end)) and end is not End.TIMEOUT]
    counts += [f"{criterion.sampled} left out by the sample"] if criterion.sampled else []
    return ", ".join(counts)


def _criterion(criterion: CriterionProof, task: str, web: Web | None) -> Iterator[str]:
    yield from (f"## {inline(criterion.id)}: {inline(criterion.text)}", "")
    yield from (f"{criterion.standing.value}; evidence: {counted(criterion.tests, 'test')}.", "")
    if why := criterion.problem or criterion.going_on(task) or (PASSED_BY if criterion.passed_by else ""):
        yield from (str(flow(why)), "")
    yield from (f"- {flow(note)}" for note in criterion.notes)
    if criterion.notes:
        yield ""
    if criterion.faults:
        yield from ("| Fault | Where | End | By |", "|---|---|---|---|")
        yield from (
            f"| {cell(f.title)} | {link(f.location, web)} | {f.end.value} | {inline(f.by or '-')} |"
            for f in criterion.faults
        )
        yield ""
    for fault in criterion.survivors:
        yield from _survivor(fault, web)


def _survivor(fault: TriedFault, web: Web | None) -> Iterator[str]:
    yield from (f"### Survivor {link(fault.location, web)}", "", str(block(fault.diff)), "")
    asked = [*fault.tests[:LISTED], *([f"{len(fault.tests) - LISTED} more"] if len(fault.tests) > LISTED else [])]
    yield from (f"Noticed by nothing. Asked: {', '.join(str(cell(each)) for each in asked) or 'nothing'}.", "")
