"""Claims of a task's reports, each with what arithmetic and the project's files say of it."""

import hashlib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import ClassVar, Self

from gates.check import Evidence
from gates.claims import tests
from gates.claims.arithmetic import arithmetic
from gates.claims.claim import Answer, Claim, Standing, answer
from gates.claims.page import Line, Page, parse
from gates.claims.places import places
from gates.claims.sources import Sources
from gates.context import Context
from gates.errors import EvidenceUnavailable
from gates.model import Location, Model
from gates.task.task import Task
from gates.words import printable

MAX_BYTES = 2 * 1024 * 1024
MAX_CLAIMS = 5000
MAX_TEXT = 200


class ClaimsSource(Model):
    """One report: what it claims and where its numbers stand (line and column), or why it cannot be read."""

    path: str
    sha256: str = ""
    claims: tuple[Claim, ...] = ()
    numbers: tuple[tuple[int, int], ...] = ()
    problem: str = ""

    def not_understood(self, answers: Sequence[Answer]) -> list[int]:
        """Return the line of every number that no settled claim states."""
        known: dict[int, list[tuple[int, int]]] = {}
        for claim, found in zip(self.claims, answers, strict=True):
            for span in claim.covers if found.standing is not Standing.UNSUPPORTED else ():
                known.setdefault(span.line, []).append((span.start, span.end))
        return [line for line, at in self.numbers if not any(a <= at < b for a, b in known.get(line, ()))]


class Claims(Evidence):
    """What every report of a task claims, looked up in the project's files."""

    lasting: ClassVar[bool] = False
    sources: tuple[ClaimsSource, ...]

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Read every report, and the lines that it speaks of."""
        if not task.claims:
            raise EvidenceUnavailable(f"{task.path} names no 'claims'")
        files = Sources(context.root)
        found = (read(context.root / path, path, files) for path in task.claims)
        return cls(how="the reports, and the lines of the project that they name", sources=tuple(found))

    def of(self, path: str) -> ClaimsSource | None:
        """Return what was read of a file."""
        return next((source for source in self.sources if source.path == path), None)


def read(path: Path, shown_as: str, files: Sources) -> ClaimsSource:
    """Read one Markdown report."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            return ClaimsSource(path=shown_as, problem=f"it has {size} bytes, more than {MAX_BYTES}")
        raw = path.read_bytes()
        text = printable(raw.decode("utf-8-sig"))
    except OSError as error:
        return ClaimsSource(path=shown_as, problem=f"it cannot be read: {error.strerror or error}")
    except UnicodeDecodeError:
        return ClaimsSource(path=shown_as, problem="it is not UTF-8")
    return claims_of(text, shown_as, files, sha256=hashlib.sha256(raw).hexdigest())


def claims_of(text: str, path: str, files: Sources, *, sha256: str = "") -> ClaimsSource:
    """Return the claims and numbers of a Markdown page; what an audit in it retells of another page is not its own."""
    page = parse(text)
    own = Page(tuple(line for line in page.lines if not _is_retold(line)), page.blocks)
    claims = sorted(_claims(own, path, files), key=lambda claim: claim.at.line or 0)[:MAX_CLAIMS]
    return ClaimsSource(path=path, sha256=sha256, claims=tuple(claims), numbers=tuple(own.numbers()))


def _is_retold(line: Line) -> bool:
    title = line.heads[0][1] if line.heads else ""
    return title.startswith(("Audit of ", "Claims Verification")) or line.heading.startswith("Claims of ")


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
