"""Statements of one page that cannot both be true."""

import re
from collections.abc import Iterator, Sequence

from gates.claims._page import Form, Line, Page
from gates.claims._scope import is_general
from gates.claims.claim import Clash, Coverage, Number, Said, TestCounts, Verdict
from gates.model import Decision

Pair = tuple[Line, Said]
MET = re.compile(
    r"^(?:verified|met|satisfied|implemented|requirements met|criteria met|requirements verified)"
    r"\b[^:]{0,30}: ?(\d{1,3}(?:\.\d)?) ?/ ?(\d{1,3})\b",
    re.IGNORECASE,
)
SCORE = re.compile(r"^(?:final |overall |total )?score ?: ?(\d{1,3}(?:\.\d)?) ?/ ?100\b", re.IGNORECASE)
OF_ALL = re.compile(r"requirement|criteri|specification|acceptance|summary|overall|coverage|compliance")
HISTORY = re.compile(
    r"\b(before|after|previous\w*|baseline|version|history|earlier|prior|expected|v\d+|run \d+|comparison)\b",
    re.IGNORECASE,
)


def clashes(page: Page, found: Sequence[Pair]) -> list[tuple[Line, Said]]:
    """Return the contradictions between what a page says in two places; the later line is told with the earlier."""
    now = [(line, said) for line, said in found if not HISTORY.search(line.sections)]
    return [*_counts(now), *_totals(now), *_decisions(now), *_numbers(now), *_coverages(now), *_met(page),
            *_scores(page)]  # fmt: skip


def _clash(line: Line, other: Line, reason: str) -> tuple[Line, Said]:
    return line, Clash(other=other.raw[:200], other_line=other.number, reason=reason)


def _counts(found: Sequence[Pair]) -> Iterator[tuple[Line, Said]]:
    """Yield counts of one outcome, of the same tests, that differ."""
    counts = [(line, said) for line, said in found if isinstance(said, TestCounts)]
    scopes = {said.scope for _, said in counts if said.scope}
    first: dict[tuple[str, str], tuple[Line, int]] = {}
    for line, said in counts:
        scope = said.scope or (next(iter(scopes)) if len(scopes) == 1 else "")
        stated = {**said.counts, **({"total": said.total} if said.total is not None else {})}
        for name, count in stated.items():
            other = first.setdefault((scope, name), (line, count)) if not said.part else (line, count)
            if other[1] != count:
                yield _clash(line, other[0], f"{count} {name} here, {other[1]} {name} there")


def _totals(found: Sequence[Pair]) -> Iterator[tuple[Line, Said]]:
    """Yield totals that are smaller than their parts."""
    for line, said in found:
        if isinstance(said, TestCounts) and said.total is not None:
            parts = sum(count for name, count in said.counts.items() if name not in {"deselected", "total"})
            if parts > said.total:
                yield _clash(line, line, f"{parts} tests ended, of {said.total}")


def _decisions(found: Sequence[Pair]) -> Iterator[tuple[Line, Said]]:
    first: dict[str, tuple[Line, Decision]] = {}
    for line, said in found:
        if isinstance(said, Verdict) and said.decision:
            other = first.setdefault(said.gate, (line, said.decision))
            if other[1] is not said.decision:
                yield _clash(line, other[0], f"{said.decision} here, {other[1]} there")
                return


def _numbers(found: Sequence[Pair]) -> Iterator[tuple[Line, Said]]:
    """Yield two numbers for the whole that do not meet; numbers about a part or from our own tables name their own."""
    first: dict[tuple[str, str, str], tuple[Line, Number]] = {}
    for line, said in found:
        if not isinstance(said, Number) or said.part or said.of or said.guessed or not said.about:
            continue
        key = (said.what, said.about, said.on)
        other = first.setdefault(key, (line, said))
        if said.low > other[1].high or said.high < other[1].low:
            yield _clash(line, other[0], f"two numbers for the {said.about} {said.what}")


def _coverages(found: Sequence[Pair]) -> Iterator[tuple[Line, Said]]:
    said_first: tuple[Line, Coverage] | None = None
    for line, said in found:
        if isinstance(said, Coverage):
            if said_first is None:
                said_first = (line, said)
            elif abs(said.percent - said_first[1].percent) > 1:
                yield _clash(line, said_first[0], f"{said.percent:g} % here, {said_first[1].percent:g} % there")


def _scores(page: Page) -> Iterator[tuple[Line, Said]]:
    """Yield two scores of the whole report."""
    first: tuple[Line, str] | None = None
    for line in page.prose:
        match = SCORE.match(line.text)
        if match and line.form is not Form.ROW and is_general(line) and not HISTORY.search(line.sections):
            first = first or (line, match[1])
            if float(first[1]) != float(match[1]):
                yield _clash(line, first[0], f"a score of {match[1]} here, of {first[1]} there")


def _met(page: Page) -> Iterator[tuple[Line, Said]]:
    """Yield two counts of the criteria that are met, of the same number of criteria."""
    first: dict[str, tuple[Line, float]] = {}
    for line in page.prose:
        match = MET.match(line.text)
        if match and line.form is not Form.ROW and OF_ALL.search(line.sections) and not HISTORY.search(line.sections):
            other = first.setdefault(match[2], (line, float(match[1])))
            if other[1] != float(match[1]):
                yield _clash(line, other[0], f"{match[1]} of {match[2]} here, {other[1]:g} of {match[2]} there")
