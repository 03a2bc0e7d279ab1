"""Claims of a Markdown report, each with what arithmetic, the project's files and a test run say of it."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from gates.check import EvidenceSet
from gates.claims import tests
from gates.claims.arithmetic import arithmetic
from gates.claims.page import Answer, Claim, Line, Page, Standing, answer, parse
from gates.claims.places import Sources, places
from gates.errors import UsageError
from gates.model import Location, Model
from gates.words import printable

MAX_BYTES = 2 * 1024 * 1024
MAX_CLAIMS = 5000
MAX_TEXT = 200
LISTED = 60  # lines with numbers that were not understood
NOTHING = answer(None, "a statement", "nothing in it can be checked")


class ClaimsSource(Model):
    """One report: what it claims, and where its numbers stand (line and column)."""

    path: str
    claims: tuple[Claim, ...] = ()
    numbers: tuple[tuple[int, int], ...] = ()

    def not_understood(self, answers: Sequence[Answer]) -> list[int]:
        """Return the line of every number that no settled claim states."""
        known: dict[int, list[tuple[int, int]]] = {}
        for claim, found in zip(self.claims, answers, strict=True):
            for span in claim.covers if found.standing is not Standing.UNSUPPORTED else ():
                known.setdefault(span.line, []).append((span.start, span.end))
        return [line for line, at in self.numbers if not any(a <= at < b for a, b in known.get(line, ()))]


class Ruling(NamedTuple):
    """A claim, and what came of it."""

    claim: Claim
    answer: Answer


def read(path: Path, shown_as: str, files: Sources) -> ClaimsSource:
    """Read one Markdown report; raise `UsageError` with the reason for one that cannot be read."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise UsageError(f"{shown_as}: it has {size} bytes, more than {MAX_BYTES}")
        return claims_of(printable(path.read_bytes().decode("utf-8-sig")), shown_as, files)
    except OSError as error:
        raise UsageError(f"{shown_as}: it cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{shown_as}: it is not UTF-8") from error


def claims_of(text: str, path: str, files: Sources) -> ClaimsSource:
    """Return the claims and numbers of a Markdown page; what an audit in it retells of another page is not its own."""
    page = parse(text)
    own = Page(tuple(line for line in page.lines if not _is_retold(line)), page.blocks)
    claims = sorted(_claims(own, path, files), key=lambda claim: claim.at.line or 0)[:MAX_CLAIMS]
    return ClaimsSource(path=path, claims=tuple(claims), numbers=tuple(own.numbers()))


def _is_retold(line: Line) -> bool:
    title = line.heads[0][1] if line.heads else ""
    return title.startswith("Audit of ")


def _claims(page: Page, path: str, files: Sources) -> Iterator[Claim]:
    for found in (*islice(arithmetic(page), MAX_CLAIMS), *islice(places(page, files), MAX_CLAIMS)):
        yield Claim(at=_at(path, found.line), text=_cut(found.line.raw), known=found.answer, covers=found.covers)
    earlier: dict[str, tuple[int, int]] = {}
    for line, said, span in islice(tests.statements(page), MAX_CLAIMS):
        why = tests.contradiction(said, earlier, line.number)
        known = answer(False, "one of two statements", why) if why else None
        yield Claim(at=_at(path, line), text=_cut(line.raw), known=known, said=said, covers=(span,))


def _at(path: str, line: Line) -> Location:
    return Location(path=path, line=line.number)


def _cut(raw: str) -> str:
    return raw if len(raw) <= MAX_TEXT else f"{raw[:MAX_TEXT]} [...]"


def rulings(source: ClaimsSource, evidence: EvidenceSet) -> list[Ruling]:
    """Rule on each claim of a report: by the test run where that settles it, else by files and arithmetic."""
    return [Ruling(claim, _ruled(claim, evidence)) for claim in source.claims]


def _ruled(claim: Claim, evidence: EvidenceSet) -> Answer:
    ran = tests.rule(claim.said, evidence) if claim.said else None
    return ran if ran and (ran.standing is not Standing.UNSUPPORTED or claim.known is None) else claim.known or NOTHING


def row(ruling: Ruling) -> tuple[str, ...]:
    """Return a ruling as a row of a table."""
    claim, found = ruling
    seen = f"{found.seen} ({found.where})" if found.where else found.seen
    return str(claim.at), claim.text, found.expected, found.standing.value, seen


def summary(source: ClaimsSource, found: Sequence[Ruling]) -> str:
    """Return the counts in one line."""
    counts = {standing: sum(each.answer.standing is standing for each in found) for standing in Standing}
    return f"{len(found)} claims of {source.path}: " + ", ".join(f"{n} {name.value}" for name, n in counts.items())


def numbers_left(source: ClaimsSource, found: Sequence[Ruling]) -> str:
    """Return how many numbers of a report were not understood, and in which lines they stand."""
    left = source.not_understood([each.answer for each in found])
    lines = [*dict.fromkeys(left)]
    more = f" and {len(lines) - LISTED} more" if len(lines) > LISTED else ""
    where = f"; not understood: lines {', '.join(map(str, lines[:LISTED]))}{more}" if lines else ""
    return f"{len(source.numbers) - len(left)} of {len(source.numbers)} numbers were computed again or found{where}"
