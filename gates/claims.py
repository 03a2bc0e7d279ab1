"""Claims of a report: sums, shares and quoted lines, each done again or looked up.

The page is somebody else's text: lines are cut, blanks are folded, and every pattern runs over one such line, with
bounded repetition.
"""

import bisect
import html
import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import accumulate, dropwhile, takewhile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from gates.project.files import files_of

MAX_LINE = 1000
MARKUP = re.compile(r"\*\*|__(?=\W|$)|(?<!\w)__")
ESCAPED = re.compile(r"\\([\\`*_|~$\]\[#>+.()=-])")
BULLET = re.compile(r"(?:[-*+]|\d{1,4}[.)])(?: |$)(?:\[[ xX]\] )?")
HEADING = re.compile(r"(#{1,6}) (?:\d{1,3}[.)] )?(.*)")
FENCE = re.compile(r"(`{3,20}|~{3,20}) ?([\w+-]{0,20})[^`]*$")
EMOJI = re.compile(r"^[^\w\s`\[(\"'<>=+-]{1,8} ")
BETWEEN = " | "  # cells of a row
LANGUAGES = {"", "python", "py", "yaml", "toml", "text"}


class Form(StrEnum):
    """What a line of a page is; `OTHER` is a block in a language that no file is quoted in."""

    HEADING = "heading"
    ITEM = "item"
    ROW = "row"
    CODE = "code"
    OTHER = "other"
    TEXT = "text"
    BLANK = "blank"


BLOCKS = {Form.CODE, Form.OTHER}


class Line(NamedTuple):
    """One line: its number, the very text, the text without markup, and the headings above it with their levels."""

    number: int
    raw: str
    text: str
    form: Form
    heads: tuple[tuple[int, str], ...]

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


Answer = tuple[bool | None, str]  # whether what was seen agrees, if it settles that, and what was seen


def claim(line: Line, answer: Answer, claimed: str, *covers: Span) -> Claim:
    """Return a claim with what was seen of it."""
    text = line.raw if len(line.raw) <= 200 else f"{line.raw[:200]} [...]"
    return Claim(line.number, text, claimed, STANDINGS[answer[0]], answer[1], covers)


def lines_of(text: str) -> list[Line]:
    """Split a page into its lines; a fence that nothing closes goes on to the end."""
    lines: list[Line] = []
    heads: tuple[tuple[int, str], ...] = ()
    fence, form = "", Form.CODE
    for number, raw in enumerate(text.splitlines(), 1):
        body = " ".join(raw[:MAX_LINE].split())
        opened = FENCE.match(body)
        if fence and not (body.startswith(fence) and not body.strip(fence[0])):
            lines.append(Line(number, raw[:MAX_LINE], raw[:MAX_LINE], form, heads))
        elif fence or opened:
            fence = opened[1] if opened and not fence else ""
            form = Form.CODE if opened and opened[2].lower() in LANGUAGES else Form.OTHER
            lines.append(Line(number, raw[:MAX_LINE], "", Form.BLANK, heads))
        else:
            if head := HEADING.fullmatch(body):
                heads = (*(one for one in heads if one[0] < len(head[1])), (len(head[1]), _plain(head[2])))
            lines.append(Line(number, raw[:MAX_LINE].strip(), *_read(body), heads))
    return lines


def _read(body: str) -> tuple[str, Form]:
    """Return the text of a line without its markup, and what it is."""
    if head := HEADING.fullmatch(body):
        return _plain(head[2]), Form.HEADING
    if body.startswith("|"):
        cells = [_plain(cell) for cell in re.split(r"(?<!\\)\|", body.removeprefix("|").removesuffix("|"))]
        return BETWEEN.join(cells) if "".join(cells).strip(" :-") else "", Form.ROW
    bullet = BULLET.match(body)
    form = Form.ITEM if bullet else Form.TEXT if body else Form.BLANK
    return _plain(body[bullet.end() if bullet else 0 :]), form


def _plain(text: str) -> str:
    """Return text without emphasis, escapes, and signs at its begin."""
    return EMOJI.sub("", html.unescape(ESCAPED.sub(r"\1", MARKUP.sub("", text))).strip()).strip()


SUFFIXES = "py|pyi|ya?ml|toml|cfg|ini|md|rst|txt|json|sh|c|h|cc|cpp|cu|rs|go|java|js|ts|tsx|j2|html|css|sql"
FILE = rf"(?<![\w/.:@-])(/?(?:[\w.@+-]{{1,80}}/){{0,12}}[\w.@+-]{{0,80}}\w\.(?:{SUFFIXES}))"
RANGE = r"\d{1,7}(?: ?[-\u2013] ?\d{1,7})?"
REFERENCE = re.compile(rf"{FILE}:({RANGE}(?: ?(?:,|and|&) ?{RANGE}){{0,12}})(?![\w:]|\.\d)")
RANGE_PARTS = re.compile(r"(\d{1,7})(?: ?[-\u2013] ?(\d{1,7}))?")
NOT_AS_IT_IS = re.compile(
    r"\b(fix|should|expected|required|recommend\w*|proposed|missing|suggest\w*|instead|after|before|previous\w*|old|"
    r"was|remediation|example|wanted|trace|traceback|output)\b",
    re.IGNORECASE,
)
WRONG_CODE = re.compile(r"#.{0,40}\b(should be|KeyError|fails?|crash\w*)\b")
GAP = re.compile(r"\.\.\.|\u2026")
COMMENT = re.compile(r"(?:^|\s)#[^'\"]*$")
MAX_BYTES, MAX_QUOTE, MAX_PLACES, MAX_CANDIDATES = 2 * 1024 * 1024, 60, 50, 5
Ranges = Sequence[tuple[int, int]]


def quotes(lines: Sequence[Line], files: "Sources") -> Iterator[Claim]:
    """Yield each reference to lines of a file, with the code that stands in a block right below it."""
    for at, line in enumerate(lines):
        found = REFERENCE.finditer(line.text) if line.form not in BLOCKS else ()
        references = [match for match in found if _ranges(match[2])]
        block = _block(line, lines[at + 1 : at + 3 + MAX_QUOTE]) if len(references) == 1 else []
        for match in references:
            if "://" not in line.text[max(0, match.start() - 60) : match.end()]:
                code, where = [each.text for each in block], match[2].replace("\u2013", "-")
                claimed = f"{match[1]}:{where}" + (f" holds {code[0].strip()!r:.80}" if code else "")
                covers = (Span(line.number, *match.span()), *(Span(each.number) for each in block))
                yield claim(line, files.hold(match[1], _ranges(match[2]), code), claimed, *covers)


def _ranges(text: str) -> list[tuple[int, int]]:
    """Return the ranges of lines in `5`, `5-9` or `5-9, 12`; a range that runs backwards is left out."""
    found = [(int(part[1]), int(part[2] or part[1])) for part in RANGE_PARTS.finditer(text)]
    return [(first, last) for first, last in found if 0 < first <= last]


def _block(line: Line, below: Sequence[Line]) -> list[Line]:
    """Return the code right below a line that presents it as what stands there."""
    near = [*dropwhile(lambda each: each.form is Form.BLANK, below)]  # the fence, and a line without a text
    code = [*takewhile(lambda each: each.form is Form.CODE, near)] if len(below) - len(near) <= 2 else []
    presents = line.text.rstrip("*_ ")[-1:] in {":", "`", ")", "]"} or line.text[-1:].isdigit()
    as_it_is = not NOT_AS_IT_IS.search(line.text) and not any(WRONG_CODE.search(each.text) for each in code)
    return code if presents and as_it_is else []


class Sources:
    """The files of a project, each read once; every question gets its answer."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._read: dict[str, list[str] | str] = {}

    @cached_property
    def _tree(self) -> list[str]:
        return [path.relative_to(self._root).as_posix() for path in files_of((".",), self._root)]

    def hold(self, name: str, ranges: Ranges, code: Sequence[str]) -> Answer:
        """Return whether lines are there and hold some code, and what is; of several files one that fits is enough."""
        own = PurePosixPath(name).as_posix().removeprefix("/")
        inside = (self._root / own).resolve().is_relative_to(self._root)
        named = [own] if inside and (self._root / own).is_file() else []
        named = named or sorted((path for path in self._tree if f"/{path}".endswith(f"/{own}")), key=len)
        found = [self._in_file(path, ranges, code) for path in named[:MAX_CANDIDATES]]  # of an environment lie deeper
        return next((each for each in found if each[0]), found[0] if found else (False, f"there is no file {name!r}"))

    def _in_file(self, path: str, ranges: Ranges, code: Sequence[str]) -> Answer:
        if path not in self._read:
            self._read[path] = _text(self._root / path)
        lines = self._read[path]
        if isinstance(lines, str):
            return None, f"{path} was not read: {lines}"
        if max(last for _, last in ranges) > len(lines):
            return False, f"{path} has {len(lines)} lines"
        if not code:
            return None, "the lines are there; what words say of them was not checked"
        found, missing = find_quote(lines, code)
        if missing or not found:
            return False, f"{missing!r:.80} stands nowhere in {path}"
        at = [place for place in found if any(place[0] <= last and first <= place[1] for first, last in ranges)]
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
    """Return the ranges of lines that hold the begin of a quote, up to `...`, and the piece of it that is nowhere.

    Code is compared without blanks, comments, kinds of quotes and commas.
    """
    bare = [_bare(line) for line in lines]
    text, starts = "".join(bare), [*accumulate(map(len, bare), initial=0)]
    shown = "\n".join(COMMENT.sub("", line) for line in quote)
    pieces = [piece for part in GAP.split(shown) if (piece := "".join(map(_bare, part.splitlines())))]
    absent = next((piece for piece in pieces if piece not in text), "")
    places: list[tuple[int, int]] = []
    at = text.find(pieces[0]) if pieces else -1
    while at >= 0 and len(places) < MAX_PLACES:
        places.append((bisect.bisect(starts, at), bisect.bisect(starts, at + len(pieces[0]) - 1)))
        at = text.find(pieces[0], at + 1)
    return places, absent


def _bare(line: str) -> str:
    return "".join(COMMENT.sub("", line).split()).replace("'", '"').replace(",", "")
