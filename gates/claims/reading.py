"""Claims read from a page that somebody wrote for people: what cannot be understood is no claim."""

import re
from collections.abc import Iterator
from dataclasses import replace

from gates.claims import _numbers, _page, _places, _sums, _tests, _verdicts
from gates.claims._clashes import clashes
from gates.claims._page import Line
from gates.claims.claim import Claim, Said
from gates.model import Level, Location

RETOLD = re.compile(r"\bCL\d{3}\b")
MAX_CLAIMS = 5000
MAX_TEXT = 200
FINDERS = (_tests.tests, _numbers.numbers, _places.places, _sums.sums, _verdicts.verdicts)


def read(text: str, path: str, *, level: Level = Level.ADVISORY) -> tuple[Claim, ...]:
    """Return the claims of a Markdown page in the order of its lines, each with its place and the very text."""
    page = _page.parse(text, path)
    page = replace(page, lines=tuple(line for line in page.lines if not _retold(line)))
    found: list[tuple[Line, Said]] = []
    for finder in FINDERS:
        found += _bounded(finder(page))
    found.sort(key=lambda item: item[0].number)
    found += clashes(page, found[:MAX_CLAIMS])
    found.sort(key=lambda item: item[0].number)
    return tuple(
        Claim(at=Location(path=path, line=line.number), text=_cut(line.raw), said=said, level=level)
        for line, said in found[:MAX_CLAIMS]
    )


def _retold(line: Line) -> bool:
    """Return whether a line tells the claims of another report, as our own pages on claims do: they are not its own."""
    heading = line.heads[-1][1] if line.heads else ""
    title = line.heads[0][1] if line.heads else ""
    return (
        title.startswith("Audit of ")
        or heading.startswith("Claims of ")
        or bool(RETOLD.search(heading) or RETOLD.search(line.text))
    )


def _bounded(items: Iterator[tuple[Line, Said]]) -> list[tuple[Line, Said]]:
    return [item for item, _ in zip(items, range(MAX_CLAIMS), strict=False)]


def _cut(raw: str) -> str:
    return raw if len(raw) <= MAX_TEXT else f"{raw[:MAX_TEXT]} [...]"
