"""A Markdown page as lines that know what they are, and what is claimed in them.

The page is somebody else's text: lines are cut, blanks are folded, and every pattern of the package runs over one such
line, with bounded repetition.
"""

import html
import re
from enum import StrEnum
from typing import NamedTuple

from gates.model import Location, Model

MAX_LINE = 1000
MARKS = re.compile(r"\*\*|__(?=\W|$)|(?<!\w)__")
ESCAPED = re.compile(r"\\([\\`*_|~$\]\[#>+.()=-])")
BULLET = re.compile(r"(?:[-*+]|\d{1,4}[.)])(?: |$)(?:\[[ xX]\] )?")
HEADING = re.compile(r"(#{1,6}) (?:\d{1,3}[.)] )?(.*)")
FENCE = re.compile(r"(`{3,20}|~{3,20}) ?([\w+-]{0,20})[^`]*$")
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


class Line(NamedTuple):
    """One line: its number, the very text, the text without markup, the headings above it, the cells of a row.

    `heading` is the nearest heading above that is not the title of the page. `language` is that of a line of code.
    """

    number: int
    raw: str
    text: str
    form: Form
    heads: tuple[tuple[int, str], ...] = ()
    cells: tuple[str, ...] = ()
    language: str = ""

    @property
    def title(self) -> str:
        """Return the title of the page."""
        return self.heads[0][1] if self.heads else ""

    @property
    def heading(self) -> str:
        """Return the nearest heading above that is not the title of the page."""
        return self.heads[-1][1] if self.heads and self.heads[-1][0] > 1 else ""


class Span(NamedTuple):
    """Columns of a line whose numbers a claim states."""

    line: int
    start: int = 0
    end: int = 10**9


class Standing(StrEnum):
    """What was seen says to a claim: it agrees, cannot be if the claim is true, or does not settle it."""

    CONFIRMED = "confirmed"
    CONTRADICTED = "contradicted"
    UNSUPPORTED = "unsupported"


STANDINGS = {True: Standing.CONFIRMED, False: Standing.CONTRADICTED, None: Standing.UNSUPPORTED}


class Claim(Model):
    """One claim: its line and text, what it comes to, how that stands, what was seen, and where its numbers stand."""

    at: int
    text: str
    claimed: str
    standing: Standing
    seen: str
    where: Location | None = None
    covers: tuple[Span, ...] = ()


def claim(
    line: Line, good: bool | None, claimed: str, seen: str, covers: tuple[Span, ...], where: Location | None = None
) -> Claim:
    """Say of a claim whether what was seen agrees with it, or (`None`) does not settle it."""
    text = line.raw if len(line.raw) <= 200 else f"{line.raw[:200]} [...]"
    return Claim(
        at=line.number, text=text, claimed=claimed, standing=STANDINGS[good], seen=seen, where=where, covers=covers
    )


def lines_of(text: str) -> list[Line]:
    """Split a page into its lines; a fence that nothing closes goes on to the end."""
    lines: list[Line] = []
    heads: tuple[tuple[int, str], ...] = ()
    fence, language = "", ""
    for number, raw in enumerate(text.splitlines(), 1):
        body = raw[: 2 * MAX_LINE].strip()
        opened = FENCE.match(body)
        if fence and not (body.startswith(fence) and not body.strip(fence[0])):
            lines.append(Line(number, raw[:MAX_LINE], raw[:MAX_LINE], Form.CODE, heads, (), language))
        elif fence or opened:
            fence, language = ("", "") if fence or not opened else (opened[1], opened[2].lower())
            lines.append(Line(number, raw[:MAX_LINE], "", Form.BLANK, heads))
        else:
            lines.append(_line(number, raw, heads))
            heads = lines[-1].heads
    return lines


def _line(number: int, raw: str, heads: tuple[tuple[int, str], ...]) -> Line:
    body, kept = " ".join(raw[:MAX_LINE].split()), raw[:MAX_LINE].strip()
    if not body:
        return Line(number, "", "", Form.BLANK, heads)
    if head := HEADING.fullmatch(body):
        level, title = len(head[1]), plain(head[2])
        return Line(number, kept, title, Form.HEADING, (*(one for one in heads if one[0] < level), (level, title)))
    if body.startswith("|"):
        cells = tuple(plain(cell) for cell in re.split(r"(?<!\\)\|", body.removeprefix("|").removesuffix("|")))
        is_rule = not "".join(cells).strip(" :-")
        return Line(number, kept, "" if is_rule else BETWEEN.join(cells), Form.ROW, heads, () if is_rule else cells)
    bullet = BULLET.match(body)
    form, start = (Form.ITEM, bullet.end()) if bullet else (Form.TEXT, 0)
    return Line(number, kept, plain(body[start:]), form, heads)


def plain(text: str) -> str:
    """Return text without emphasis, escapes and signs; inline code keeps its backticks, and is otherwise left alone."""
    parts = text.strip().replace("\\`", "'").split("`")
    for i in range(0, len(parts), 2):
        parts[i] = ESCAPED.sub(r"\1", html.unescape(MARKS.sub("", parts[i])))
    return SIGNS.sub("", "`".join(parts).strip()).strip()
