"""Claims of a report: sums, shares and quoted lines, each done again or looked up.

The page is somebody else's text: lines are cut, blanks are folded, and every pattern runs over one such line, with
bounded repetition.
"""

import bisect
import html
import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from gates.project.files import files_of

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

    `language` is that of a line of code.
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


class Claim(NamedTuple):
    """One claim: its line and text, what it comes to, how that stands, what was seen, and where its numbers stand."""

    at: int
    text: str
    claimed: str
    standing: Standing
    seen: str
    covers: tuple[Span, ...]


def claim(line: Line, good: bool | None, claimed: str, seen: str, *covers: Span) -> Claim:
    """Say of a claim whether what was seen agrees with it, or (`None`) does not settle it."""
    text = line.raw if len(line.raw) <= 200 else f"{line.raw[:200]} [...]"
    return Claim(line.number, text, claimed, STANDINGS[good], seen, covers)


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
            lines.append(_line(number, raw[:MAX_LINE].strip(), heads))
            heads = lines[-1].heads
    return lines


def _line(number: int, raw: str, heads: tuple[tuple[int, str], ...]) -> Line:
    body = " ".join(raw.split())
    if head := HEADING.fullmatch(body):
        level, title = len(head[1]), _plain(head[2])
        return Line(number, raw, title, Form.HEADING, (*(one for one in heads if one[0] < level), (level, title)))
    if body.startswith("|"):
        cells = tuple(_plain(cell) for cell in re.split(r"(?<!\\)\|", body.removeprefix("|").removesuffix("|")))
        is_rule = not "".join(cells).strip(" :-")
        return Line(number, raw, "" if is_rule else BETWEEN.join(cells), Form.ROW, heads, () if is_rule else cells)
    bullet = BULLET.match(body)
    form = Form.ITEM if bullet else Form.TEXT if body else Form.BLANK
    return Line(number, raw, _plain(body[bullet.end() if bullet else 0 :]), form, heads)


def _plain(text: str) -> str:
    """Return text without emphasis, escapes and signs; inline code keeps its backticks, and is otherwise left alone."""
    parts = text.strip().replace("\\`", "'").split("`")
    for i in range(0, len(parts), 2):
        parts[i] = ESCAPED.sub(r"\1", html.unescape(MARKS.sub("", parts[i])))
    return SIGNS.sub("", "`".join(parts).strip()).strip()


SUFFIXES = "py|pyi|ya?ml|toml|cfg|ini|md|rst|txt|json|sh|c|h|cc|cpp|cu|rs|go|java|js|ts|tsx|j2|html|css|sql"
FILE = rf"(?<![\w/.:@-])(/?(?:[\w.@+-]{{1,80}}/){{0,12}}[\w.@+-]{{0,80}}\w\.(?:{SUFFIXES}))"
SPAN = r"\d{1,7}(?: ?[-\u2013] ?\d{1,7})?"
REFERENCE = re.compile(rf"{FILE}:({SPAN}(?: ?(?:,|and|&) ?{SPAN}){{0,12}})(?![\w:]|\.\d)")
SPAN_PART = re.compile(r"(\d{1,7})(?: ?[-\u2013] ?(\d{1,7}))?")
NOT_AS_IT_IS = re.compile(
    r"\b(fix|should|expected|required|recommend\w*|proposed|missing|suggest\w*|instead|after|before|previous\w*|old|"
    r"was|remediation|example|wanted|trace|traceback|output)\b",
    re.IGNORECASE,
)
WRONG_CODE = re.compile(r"#.{0,40}\b(should be|KeyError|fails?|crash\w*)\b")
GAP = re.compile(r"\.\.\.|\u2026")
COMMENT = re.compile(r"(?:^|\s)#[^'\"]*$")
LOOSE_COMMA = re.compile(r",(?=[)\]}])")
LANGUAGES = {"", "python", "py", "yaml", "toml", "text"}
MAX_BYTES, MAX_QUOTE, MAX_HITS, MAX_CANDIDATES = 2 * 1024 * 1024, 60, 50, 5
SPREAD = 4000  # characters that may lie between the pieces of a quote
Spans = Sequence[tuple[int, int]]


def quotes(lines: Sequence[Line], files: "Sources") -> Iterator[Claim]:
    """Yield each reference to lines of a file, with the code that stands in a block right below it."""
    for at, line in enumerate(lines):
        found = REFERENCE.finditer(line.text) if line.form is not Form.CODE else ()
        references = [match for match in found if _spans(match[2])]
        block = _block(line, lines[at + 1 : at + 3 + MAX_QUOTE]) if len(references) == 1 else []
        for match in references:
            if "://" not in line.text[max(0, match.start() - 60) : match.end()]:
                code, where = [each.text for each in block], match[2].replace("\u2013", "-")
                claimed = f"{match[1]}:{where}" + (f" holds {code[0].strip()!r:.80}" if code else "")
                good, seen = files.hold(match[1], _spans(match[2]), code)
                covers = (Span(line.number, *match.span()), *(Span(each.number) for each in block))
                yield claim(line, good, claimed, seen, *covers)


def _spans(text: str) -> list[tuple[int, int]]:
    """Return the ranges of lines in `5`, `5-9` or `5-9, 12`; a range that runs backwards is left out."""
    found = [(int(part[1]), int(part[2] or part[1])) for part in SPAN_PART.finditer(text)]
    return [(first, last) for first, last in found if 0 < first <= last]


def _block(line: Line, below: Sequence[Line]) -> list[Line]:
    """Return the code right below a line that presents it as what stands there."""
    first = next((i for i, each in enumerate(below) if each.form is Form.CODE), len(below))
    end = next((i for i in range(first, len(below)) if below[i].form is not Form.CODE), len(below))
    code = below[first:end]
    near = first <= 2 and all(each.form is Form.BLANK for each in below[:first])
    presents = line.text.rstrip("*_ ")[-1:] in {":", "`", ")", "]"} or line.text[-1:].isdigit()
    as_it_is = presents and not NOT_AS_IT_IS.search(line.text) and not any(WRONG_CODE.search(c.text) for c in code)
    return [*code] if near and as_it_is and code and code[0].language in LANGUAGES else []


class Sources:
    """The files of a project, each read once; every question gets its answer."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._read: dict[str, list[str] | str] = {}
        self._tree: list[str] | None = None

    def hold(self, name: str, spans: Spans, code: Sequence[str]) -> tuple[bool | None, str]:
        """Return whether lines are there and hold some code, and what is; of several files one that fits is enough."""
        found = [self._in_file(path, spans, code) for path in self._named(name)]
        return next((each for each in found if each[0]), found[0] if found else (False, f"there is no file {name!r}"))

    def _named(self, name: str) -> list[str]:
        """Return the files of a name: the path itself, or else those whose path ends so."""
        own = PurePosixPath(name).as_posix().removeprefix("/")
        inside = (self._root / own).resolve().is_relative_to(self._root)
        if inside and (self._root / own).is_file():
            return [own]
        if self._tree is None:
            self._tree = [path.relative_to(self._root).as_posix() for path in files_of((".",), self._root)]
        named = [path for path in self._tree if f"/{path}".endswith(f"/{own}")]
        return sorted(named, key=len)[:MAX_CANDIDATES]  # files of an environment in the project lie deeper

    def _in_file(self, path: str, spans: Spans, code: Sequence[str]) -> tuple[bool | None, str]:
        if path not in self._read:
            self._read[path] = _text(self._root / path)
        lines = self._read[path]
        if isinstance(lines, str):
            return None, f"{path} was not read: {lines}"
        if max(last for _, last in spans) > len(lines):
            return False, f"{path} has {len(lines)} lines"
        if not code:
            return None, "the lines are there; what words say of them was not checked"
        found, missing = find_quote(lines, code)
        if not found:
            return False, f"{missing!r:.80} stands nowhere in {path}"
        at = [hit for hit in found if any(hit[0] <= last and first <= hit[1] for first, last in spans)]
        first, last = (at or found)[0]
        return bool(at), f"it stands in line {first}{f'-{last}' if last > first else ''} of {path}"


def _text(file: Path) -> list[str] | str:
    """Return the lines of a file, or why they cannot be read."""
    try:
        size = file.stat().st_size
        return file.read_text(encoding="utf-8").splitlines() if size <= MAX_BYTES else f"{size} bytes, too many"
    except (OSError, UnicodeDecodeError) as error:
        return getattr(error, "strerror", None) or "not UTF-8"


def find_quote(lines: Sequence[str], quote: Sequence[str]) -> tuple[list[tuple[int, int]], str]:
    """Return the ranges of lines that hold a quote, without what `...` leaves out, or the piece that is nowhere.

    Code is compared without blanks, comments, kinds of quotes and commas that end a list.
    """
    text, starts = _joined(lines)
    pieces = [piece for part in GAP.split("\n".join(map(_bare, quote))) if (piece := _joined([part])[0])]
    absent = next((piece for piece in pieces if piece not in text), "")
    if absent or not pieces:
        return [], absent
    hits: list[tuple[int, int]] = []
    at, tried = text.find(pieces[0]), 0
    while at >= 0 and tried < MAX_HITS:
        end, tried = at + len(pieces[0]), tried + 1
        for piece in pieces[1:]:
            begin = text.find(piece, end, end + SPREAD) if end >= 0 else -1
            end = begin + len(piece) if begin >= 0 else -1
        if end >= 0:
            hits.append((max(bisect.bisect_right(starts, at), 1), max(bisect.bisect_right(starts, end - 1), 1)))
        at = text.find(pieces[0], at + 1)
    return hits, "" if hits else pieces[-1]


def _bare(line: str) -> str:
    return COMMENT.sub("", line)


def _joined(lines: Sequence[str]) -> tuple[str, list[int]]:
    """Return the code of some lines without blanks in one string, and where each line begins in it."""
    starts: list[int] = []
    parts: list[str] = []
    at = 0
    for line in lines:
        part = LOOSE_COMMA.sub("", "".join(_bare(line).split()).replace("'", '"'))
        if part[:1] in {")", "]", "}"} and parts and parts[-1].endswith(","):
            parts[-1] = parts[-1][:-1]
            at -= 1
        starts.append(at)
        parts.append(part)
        at += len(part)
    return "".join(parts), starts
