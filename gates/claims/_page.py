"""A Markdown page as lines that know what they are: heading, list entry, table row, code or text.

The page is somebody else's text: lines are cut, blanks are folded, and every pattern of the package runs over one such
line, with bounded repetition.
"""

import html
import re
from dataclasses import dataclass
from enum import StrEnum

MAX_LINE = 1000
MARKS = re.compile(r"\*\*|__(?=\W|$)|(?<!\w)__")
ESCAPED = re.compile(r"\\([\\`*_|~$\]\[#>+.()=-])")
BULLET = re.compile(r"(?:[-*+]|\d{1,4}[.)])(?: |$)(?:\[[ xX]\] )?")
FENCE = re.compile(r"(`{3,20}|~{3,20})[ ]?([\w+-]{0,20})")
RULE_ROW = re.compile(r"\|?[ :|-]*-[ :|-]*")
SIGNS = re.compile(r"^[^\w\s`\[(\"'<>=+-]{1,8} ")


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
    def above(self) -> str:
        """Return the headings above, in lower case."""
        return " / ".join(title for _, title in self.heads).lower()

    @property
    def sections(self) -> str:
        """Return the headings above without the title of the page, in lower case."""
        return " / ".join(title for level, title in self.heads if level > 1).lower()


@dataclass(frozen=True)
class Block:
    """A fenced block: the number of its first line of code, its language, its lines."""

    number: int
    language: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """A whole page."""

    path: str
    lines: tuple[Line, ...]
    blocks: tuple[Block, ...]

    @property
    def prose(self) -> list[Line]:
        """Return the lines that say something: neither blank nor code."""
        return [line for line in self.lines if line.form not in {Form.BLANK, Form.CODE}]

    def block_below(self, number: int) -> Block | None:
        """Return the block that begins right below a line, one blank line between them allowed."""
        return next((block for block in self.blocks if 2 <= block.number - number <= 3), None)


def parse(text: str, path: str) -> Page:
    """Split a page into its lines; a fence that nothing closes goes on to the end."""
    lines: list[Line] = []
    blocks: list[Block] = []
    heads: tuple[tuple[int, str], ...] = ()
    fence, language, start, held = "", "", 0, list[str]()
    for number, raw in enumerate(text.splitlines(), 1):
        body = raw[: 2 * MAX_LINE].strip()
        opened = FENCE.match(body)
        if fence:
            if opened and body.startswith(fence) and not body.strip(fence[0]):
                blocks.append(Block(start, language, tuple(held)))
                fence = ""
            else:
                held.append(raw[:MAX_LINE])
            lines.append(Line(number, raw[:MAX_LINE], "", Form.CODE))
            continue
        if opened and "`" not in body[len(opened[1]) :]:
            fence, language, start, held = opened[1], opened[2].lower(), number + 1, []
            lines.append(Line(number, raw[:MAX_LINE], "", Form.CODE))
            continue
        line = _line(number, raw, heads)
        if line.form is Form.HEADING:
            heads = line.heads
        lines.append(line)
    if fence:
        blocks.append(Block(start, language, tuple(held)))
    return Page(path, tuple(lines), tuple(blocks))


def _line(number: int, raw: str, heads: tuple[tuple[int, str], ...]) -> Line:
    body = " ".join(raw[:MAX_LINE].split())
    indent = len(raw[:40].expandtabs(4)) - len(raw[:40].expandtabs(4).lstrip())
    kept = raw[:MAX_LINE].strip()
    if not body:
        return Line(number, "", "", Form.BLANK, heads)
    level = len(body) - len(body.lstrip("#"))
    if 0 < level <= 6 and body[level : level + 1] == " ":
        title = plain(body[level:])
        below = (*(head for head in heads if head[0] < level), (level, title))
        return Line(number, kept, title, Form.HEADING, below, indent)
    if body.startswith("|"):
        cells = tuple(plain(cell) for cell in re.split(r"(?<!\\)\|", body.removeprefix("|").removesuffix("|")))
        if RULE_ROW.fullmatch(body):
            return Line(number, kept, "", Form.ROW, heads, indent, ())
        return Line(number, kept, " | ".join(cells), Form.ROW, heads, indent, cells)
    bullet = BULLET.match(body)
    if bullet:
        numbered = body[0].isdigit()
        return Line(number, kept, plain(body[bullet.end() :]), Form.ITEM, heads, indent, (), numbered)
    return Line(number, kept, plain(body), Form.TEXT, heads, indent)


def plain(text: str) -> str:
    """Return text without emphasis, escapes and signs; inline code keeps its backticks, and is otherwise left alone."""
    parts = text.strip().replace("\\`", "'").split("`")
    for i in range(0, len(parts), 2):
        parts[i] = ESCAPED.sub(r"\1", html.unescape(MARKS.sub("", parts[i])))
    joined = "`".join(parts).strip()
    return SIGNS.sub("", joined).strip()
