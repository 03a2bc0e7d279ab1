"""A Markdown page as lines that know what they are, the numbers that stand in them, and what is claimed there.

The page is somebody else's text: lines are cut, blanks are folded, and every pattern of the package runs over one such
line, with bounded repetition.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from pydantic import Field

from gates.model import Location, Model

MAX_LINE = 1000
MARKS = re.compile(r"\*\*|__(?=\W|$)|(?<!\w)__")
ESCAPED = re.compile(r"\\([\\`*_|~$\]\[#>+.()=-])")
BULLET = re.compile(r"(?:[-*+]|\d{1,4}[.)])(?: |$)(?:\[[ xX]\] )?")
HEADING = re.compile(r"(#{1,6}) (?:\d{1,3}[.)] )?(.*)")
FENCE = re.compile(r"(`{3,20}|~{3,20})[ ]?([\w+-]{0,20})")
RULE_ROW = re.compile(r"\|?[ :|-]*-[ :|-]*")
SIGNS = re.compile(r"^[^\w\s`\[(\"'<>=+-]{1,8} ")
NUMBER = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ][\d:.]{1,20}Z?)?|(?<![\w.])\d{1,40}(?:\.\d{1,40}){0,9}(?:e[+-]?\d{1,4})?(?!\w{0,80}\d)"
)
BETWEEN = " | "  # cells of a row


class Form(StrEnum):
    """What a line of a page is."""

    HEADING = "heading"
    ITEM = "item"
    ROW = "row"
    CODE = "code"
    TEXT = "text"
    BLANK = "blank"


@dataclass(frozen=True)
class Line:
    """One line: its number, the very text, the text without markup, the headings above it (outermost first)."""

    number: int
    raw: str
    text: str
    form: Form
    heads: tuple[tuple[int, str], ...] = ()
    indent: int = 0
    cells: tuple[str, ...] = ()
    numbered: bool = False

    @property
    def sections(self) -> str:
        """Return the headings above without the title of the page, in lower case."""
        return " / ".join(title for level, title in self.heads if level > 1).lower()

    @property
    def heading(self) -> str:
        """Return the nearest heading above that is not the title of the page."""
        return self.heads[-1][1] if self.heads and self.heads[-1][0] > 1 else ""

    def cell_span(self, index: int) -> tuple[int, int, int]:
        """Return the line and columns of a cell."""
        start = sum(len(cell) + len(BETWEEN) for cell in self.cells[:index])
        return self.number, start, start + len(self.cells[index])


@dataclass(frozen=True)
class Block:
    """A fenced block: the number of its first line of code, its language, its lines."""

    number: int
    language: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """A whole page."""

    lines: tuple[Line, ...]
    blocks: dict[int, Block]

    @property
    def prose(self) -> list[Line]:
        """Return the lines that say something: neither blank nor code."""
        return [line for line in self.lines if line.form not in {Form.BLANK, Form.CODE}]

    def block_below(self, number: int) -> Block | None:
        """Return the block that begins right below a line, one blank line between them allowed."""
        return self.blocks.get(number + 2) or self.blocks.get(number + 3)

    def numbers(self) -> Iterator[tuple[int, int]]:
        """Yield the line and column of every number, but those that count headings and entries."""
        for line in self.lines:
            for match in NUMBER.finditer(line.text):
                yield line.number, match.start()


def parse(text: str) -> Page:
    """Split a page into its lines; a fence that nothing closes goes on to the end."""
    lines: list[Line] = []
    blocks: dict[int, Block] = {}
    heads: tuple[tuple[int, str], ...] = ()
    fence, language, held = "", "", list[str]()
    for number, raw in enumerate([*text.splitlines(), ""], 1):
        body = raw[: 2 * MAX_LINE].strip()
        opened = FENCE.match(body)
        closes = bool(fence and opened and body.startswith(fence) and not body.strip(fence[0]))
        if fence and not closes:
            held.append(raw[:MAX_LINE])
            lines.append(Line(number, raw[:MAX_LINE], raw[:MAX_LINE], Form.CODE))
        elif fence or (opened and "`" not in body[len(opened[1]) :]):
            if closes:
                blocks[number - len(held)] = Block(number - len(held), language, tuple(held))
            fence, language, held = ("", "", []) if closes or not opened else (opened[1], opened[2].lower(), [])
            lines.append(Line(number, raw[:MAX_LINE], "", Form.CODE))
        else:
            lines.append(_line(number, raw, heads))
            heads = lines[-1].heads
    return Page(tuple(lines), blocks)


def _line(number: int, raw: str, heads: tuple[tuple[int, str], ...]) -> Line:
    body = " ".join(raw[:MAX_LINE].split())
    indent = len(raw[:40].expandtabs(4)) - len(raw[:40].expandtabs(4).lstrip())
    kept = raw[:MAX_LINE].strip()
    if not body:
        return Line(number, "", "", Form.BLANK, heads)
    head = HEADING.fullmatch(body)
    if head:
        title = plain(head[2])
        below = (*(above for above in heads if above[0] < len(head[1])), (len(head[1]), title))
        return Line(number, kept, title, Form.HEADING, below, indent)
    if RULE_ROW.fullmatch(body) and body.startswith("|"):
        return Line(number, kept, "", Form.ROW, heads, indent)
    if body.startswith("|"):
        cells = tuple(plain(cell) for cell in re.split(r"(?<!\\)\|", body.removeprefix("|").removesuffix("|")))
        return Line(number, kept, BETWEEN.join(cells), Form.ROW, heads, indent, cells)
    bullet = BULLET.match(body)
    if bullet:
        return Line(number, kept, plain(body[bullet.end() :]), Form.ITEM, heads, indent, (), body[0].isdigit())
    return Line(number, kept, plain(body), Form.TEXT, heads, indent)


def plain(text: str) -> str:
    """Return text without emphasis, escapes and signs; inline code keeps its backticks, and is otherwise left alone."""
    parts = text.strip().replace("\\`", "'").split("`")
    for i in range(0, len(parts), 2):
        parts[i] = ESCAPED.sub(r"\1", html.unescape(MARKS.sub("", parts[i])))
    return SIGNS.sub("", "`".join(parts).strip()).strip()


class Standing(StrEnum):
    """What the evidence says to a claim."""

    CONFIRMED = "confirmed"
    CONTRADICTED = "contradicted"
    UNSUPPORTED = "unsupported"


class Answer(Model):
    """How a claim stands, what it says, and what was seen instead."""

    standing: Standing
    expected: str
    seen: str
    where: Location | None = None


def answer(good: bool | None, expected: str, seen: str, where: Location | None = None) -> Answer:
    """Say that what was seen agrees with a claim, cannot be if it is true, or (`None`) does not settle it."""
    standing = {True: Standing.CONFIRMED, False: Standing.CONTRADICTED, None: Standing.UNSUPPORTED}[good]
    return Answer(standing=standing, expected=expected, seen=seen, where=where)


class Said(Model):
    """What a statement says of a test run; `part` are words that make it one about tests that no run knows.

    `counts` are outcomes and how many tests ended so, `total` all tests; `test` is one test and `outcome` its end.
    """

    counts: dict[str, int] = Field(default_factory=dict)
    all_passed: bool = False
    test: str = ""
    outcome: str = ""
    exit_code: int | None = None
    part: str = ""


class Span(Model):
    """Columns of a line of a report whose numbers a claim states."""

    line: int
    start: int = 0
    end: int = 10**9


class Claim(Model):
    """One claim: where it stands, the very text, and where its numbers stand.

    `known` is the answer of files and arithmetic; without one `said` asks the test run.
    """

    at: Location
    text: str
    known: Answer | None = None
    said: Said | None = None
    covers: tuple[Span, ...] = ()
