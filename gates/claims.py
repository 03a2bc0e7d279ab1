"""Claims of a report: sums, shares, quotes and counts, done again or looked up, by patterns with bounded repetition."""

import bisect
import html
import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import cache, cached_property
from itertools import accumulate, takewhile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from gates.errors import UsageError
from gates.project.files import files_of
from gates.task.yaml_source import text_of

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
    """What a line of a page is; a fence, and a line without words, is text."""

    HEADING = "heading"
    ITEM = "item"
    ROW = "row"
    CODE = "code"
    TEXT = "text"


class Line(NamedTuple):
    """One line: its number, the very text, the text without markup, and the headings above it with their levels."""

    number: int
    raw: str
    text: str
    form: Form
    heads: tuple[tuple[int, str], ...]


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
    agrees, seen = answer
    standing = Standing.CONFIRMED if agrees else Standing.UNSUPPORTED if agrees is None else Standing.CONTRADICTED
    text = line.raw if len(line.raw) <= 200 else f"{line.raw[:200]} [...]"
    return Claim(line.number, text, claimed, standing, seen, covers)


def lines_of(text: str) -> list[Line]:
    """Split a page into its lines; a fence that nothing closes goes on to the end."""
    lines: list[Line] = []
    heads: tuple[tuple[int, str], ...] = ()
    fence = ""
    for number, raw in enumerate(text.splitlines(), 1):
        body = " ".join(raw[:MAX_LINE].split())
        opened, said, form = FENCE.match(body), raw[:MAX_LINE], Form.CODE
        if not fence and not opened:
            said, form = _read(body)
            if form is Form.HEADING:
                level = len(body) - len(body.lstrip("#"))
                heads = (*(one for one in heads if one[0] < level), (level, said))
        elif not fence or (body.startswith(fence) and not body.strip(fence[0])):
            fence, said, form = opened[1] if opened and not fence else "", "", Form.TEXT
        lines.append(Line(number, raw[:MAX_LINE].strip(), said, form, heads))
    return lines


def _read(body: str) -> tuple[str, Form]:
    if head := HEADING.fullmatch(body):
        return _plain(head[2]), Form.HEADING
    if body.startswith("|"):
        cells = [_plain(cell) for cell in re.split(r"(?<!\\)\|", body.removeprefix("|").removesuffix("|"))]
        return BETWEEN.join(cells) if "".join(cells).strip(" :-") else "", Form.ROW
    bullet = BULLET.match(body)
    return _plain(body[bullet.end() if bullet else 0 :]), Form.ITEM if bullet else Form.TEXT


def _plain(text: str) -> str:
    return EMOJI.sub("", html.unescape(ESCAPED.sub(r"\1", MARKUP.sub("", text))).strip()).strip()


NUM = r"\d{1,9}(?:\.\d{1,6})?"
UNIT = r"(?: ?(%|[A-Za-z\u00d7]{1,8}\b))?"
EQUATION = re.compile(
    rf"(?<![\w.,`/])({NUM}){UNIT}((?:(?: ?[+*/\u00d7\u00f7] ?| [-\u2212] ){NUM}{UNIT}){{1,40}}) ?= ?({NUM}){UNIT}"
    r"(?! ?[+*\u00d7\u00f7]| - |,?\d)"
)
STEP = re.compile(rf"([-+*/\u00d7\u00f7\u2212]) ?({NUM}){UNIT}")
DIVIDED, TIMES, SIGNS = "/\u00f7", "*\u00d7", frozenset("+-*/^\u00d7\u00f7\u2212")
OUT_OF = rf"({NUM}) ?(?:/|of|out of) ?({NUM})"
NOUN = r"(?: [a-z]{2,20}){0,3}"
SHARE = re.compile(
    rf"(?<![\w./-]){OUT_OF}(?![\w/]|\.\d){NOUN} ?\(({NUM}) ?%(?= ?(?:[),;.|]|$))|"
    rf"(?<![\w.])({NUM}) ?% ?\({OUT_OF}{NOUN}[);]",
    re.IGNORECASE,
)


Steps = Sequence[tuple[str, str, str]]  # each with its operator, number and unit


def sums(lines: Sequence[Line]) -> Iterator[Claim]:
    """Yield what a page computes, or could have."""
    yield from _totals(lines)
    for line in [line for line in lines if line.form is not Form.CODE]:
        for found in EQUATION.finditer(line.text):
            if line.text[: found.start()].rstrip()[-1:] not in SIGNS:  # else it is a part of a longer one
                steps, result = [("+", found[1], found[2] or ""), *STEP.findall(found[3])], (found[5], found[6] or "")
                yield from _computed(line, steps, result, found[0], Span(line.number, *found.span()))
        for match in SHARE.finditer(line.text):
            count, whole, percent = match[1] or match[5], match[2] or match[6], match[3] or match[4]
            said = match[0] + ")" * (match[0].count("(") - match[0].count(")"))
            steps = [("+", count, ""), ("/", whole, "")]
            yield from _computed(line, steps, (percent, "%"), said, Span(line.number, *match.span()))


def _computed(line: Line, steps: Steps, result: tuple[str, str], claimed: str, *covers: Span) -> Iterator[Claim]:
    """Yield what a line computes; of several units, it is not understood. Results are rounded, or cut."""
    (ops, texts, units), (said, unit) = zip(*steps, strict=True), result
    divided, numbers = not {*DIVIDED}.isdisjoint(ops), [float(text) for text in texts]
    exact = _value(ops, numbers)
    if len({*units, "" if divided else unit} - {""}) > 1 or exact is None:
        return
    scale = 0.01 if divided and "%" not in units and unit == "%" else 1.0
    slack = 0.0
    for i, text in enumerate(texts):  # numbers with decimals are rounded ones
        nudged = numbers[i] + 0.5 * 0.1 ** _decimals(text) * ("." in text)
        slack += abs((_value(ops, [*numbers[:i], nudged, *numbers[i + 1 :]]) or exact) - exact)
    if divided or slack or "." in said:
        slack += scale * 0.1 ** _decimals(said)
    off = abs(exact - float(said) * scale)
    answer = off <= 1e-9 or off < slack - 1e-9, f"it is {exact / scale:.6g}{' %' if scale < 1 else ''}"
    yield claim(line, answer, claimed, *covers)


def _decimals(text: str) -> int:
    return len(text.partition(".")[2])


def _value(ops: Sequence[str], numbers: Sequence[float]) -> float | None:
    """Return the value of an expression, products before sums; `None` for a division by zero."""
    terms = [0.0]
    for op, number in zip(ops, numbers, strict=True):
        if op in DIVIDED and not number:
            return None
        if op in DIVIDED or op in TIMES:
            terms[-1] *= 1 / number if op in DIVIDED else number
        else:
            terms.append(number if op == "+" else -number)
    return sum(terms)


TOTAL = re.compile(r"(?:grand |final |overall |total )?(?:sub-?)?(?:total|sum|score|points)s?\W{0,2}", re.IGNORECASE)
NOT_SUMMED = re.compile(
    r"%|\b(average|avg|mean|median|max\w*|min\w*|rate|ratio|share|percent\w*|coverage|cover|weight\w*|threshold|id|no|"
    r"line\w*|version|date|p\d+|interval|limit)\b",
    re.IGNORECASE,
)
POINTS = re.compile(rf"`?([-+\u2212]?{NUM})(?: ?/ ?({NUM}))?(?![\d.,]*\d)(?! ?[-+*/%=\w])")
MORE = re.compile(r"\.\.\.|\u2026|\b(more|others|etc|omitted|truncated|remaining|among|selected|top)\b", re.IGNORECASE)


def _totals(lines: Sequence[Line]) -> Iterator[Claim]:
    """Yield each column of a table, and each list of points, that ends in a total."""
    titles, rows = list[str](), list[Line]()
    for line in lines:
        cells, is_row = _cells(line), line.form is Form.ROW
        if line.form is Form.HEADING:
            rows = []
        elif is_row and not line.text:  # the rule below the head of a table
            titles, rows = _cells(rows[-1]) if rows and "weight" not in rows[-1].text.lower() else [], []
        elif len(rows) > 1 and TOTAL.fullmatch(next(filter(None, cells), "")) and is_row == (rows[0].form is Form.ROW):
            for i, title in enumerate(titles if is_row else ["", "score"]):
                yield from _total(i, title, rows, line)
            rows = []
        elif len(cells) > 1 and (is_row or line.form is Form.ITEM):
            rows = rows if rows and rows[0].form is line.form else []
            rows.append(line)


def _cells(line: Line) -> list[str]:
    return line.text.split(BETWEEN) if line.form is Form.ROW else line.text.split(": ", 1)


def _total(index: int, title: str, rows: Sequence[Line], line: Line) -> Iterator[Claim]:
    """Yield that the parts of a total add up, where all are of one kind; deductions are from the points possible."""
    *parts, total = [each for row in (*rows, line) for each in _points(row, index)] or [("", "", Span(0))]
    in_table, least = line.form is Form.ROW, min((float(value) for value, _, _ in parts), default=0.0)
    if in_table and (len(parts) < len(rows) or NOT_SUMMED.search(title) or any(MORE.search(row.text) for row in rows)):
        return
    possible = sum(float(of or 0) for _, of, _ in parts)
    if not parts or total[2].line != line.number or (possible and possible != float(total[1] or 0) and least >= 0):
        return  # parts of something else
    taken_off = all(float(value) <= 0 for value, _, _ in parts)
    steps = [("+", total[1] or "0", "")] * taken_off + [("+", value, "") for value, _, _ in parts]
    claimed = f"the {f'column {title!r}' if in_table else title} adds up to {total[0]}"
    yield from _computed(line, steps, (total[0], ""), claimed, *(span for _, _, span in (*parts, total)))


def _points(line: Line, index: int) -> Iterator[tuple[str, str, Span]]:
    """Yield the number in a cell, the points possible, and where they stand; a list has more numbers than points."""
    cells = _cells(line)
    found = POINTS.match(cells[index]) if index < len(cells) else None
    if found and (line.form is Form.ROW or found[2] or (found[1][0] in "+-\u2212" and "%" not in cells[0])):
        start = sum(len(cell) + len(BETWEEN if line.form is Form.ROW else ": ") for cell in cells[:index])
        yield found[1].replace("\u2212", "-"), found[2] or "", Span(line.number, start, start + found.end())


SUFFIXES = "py|pyi|ya?ml|toml|cfg|ini|md|rst|txt|json|sh|c|h|cc|cpp|cu|rs|go|java|js|ts|tsx|j2|html|css|sql"
FILE = rf"(?<![\w/.:@-])(/?(?:[\w.@+-]{{1,80}}/){{0,12}}[\w.@+-]{{0,80}}\w\.(?:{SUFFIXES}))"
RANGE = r"\d{1,7}(?: ?[-\u2013] ?\d{1,7})?"
REFERENCE = re.compile(rf"{FILE}:({RANGE}(?: ?(?:,|and|&) ?{RANGE}){{0,12}})(?![\w:]|\.\d)")
NOT_AS_IT_IS = re.compile(
    r"\b(fix|should|expected|required|recommend\w*|proposed|missing|suggest\w*|instead|after|before|previous\w*|old|"
    r"was|remediation|example|wanted|trace|traceback|output)\b",
    re.IGNORECASE,
)
WRONG_CODE = re.compile(r"#.{0,40}\b(should be|KeyError|fails?|crash\w*)\b")
GAP = re.compile(r"\.\.\.|\u2026")
COMMENT = re.compile(r"(?:^|\s)#[^'\"]*$")
MAX_BYTES, MAX_QUOTE, MAX_PLACES, MAX_CANDIDATES = 2 * 1024 * 1024, 60, 50, 5


def quotes(lines: Sequence[Line], files: "Sources") -> Iterator[Claim]:
    """Yield each reference to lines of a file, with the code that stands in a block right below it."""
    for at, line in enumerate(lines):
        found = [*REFERENCE.finditer(line.text)] if line.form is not Form.CODE else []
        block = _block(line, lines[at + 1 : at + 3 + MAX_QUOTE]) if len(found) == 1 else []
        for match in found:
            numbers = [int(number) for number in re.findall(r"\d+", match[2])]
            if "://" not in line.text[max(0, match.start() - 60) : match.end()] and min(numbers) > 0:
                code, where = [each.text for each in block], match[2].replace("\u2013", "-")
                claimed = f"{match[1]}:{where}" + (f" holds {code[0].strip()!r:.80}" if code else "")
                covers = (Span(line.number, *match.span()), *(Span(each.number) for each in block))
                yield claim(line, files.hold(match[1], min(numbers), max(numbers), code), claimed, *covers)


def _block(line: Line, below: Sequence[Line]) -> list[Line]:
    """Return the code right below a line that presents it as what stands there."""
    between = [*takewhile(lambda each: each.form is Form.TEXT and not each.text, below[:2])]
    opened = FENCE.match(between[-1].raw) if between else None
    quoted = opened and opened[2].lower() in LANGUAGES
    code = [*takewhile(lambda each: each.form is Form.CODE, below[len(between) :])] if quoted else []
    presents = line.text.rstrip("*_ ")[-1:] in {":", "`", ")", "]"} or line.text[-1:].isdigit()
    as_it_is = not NOT_AS_IT_IS.search(line.text) and not any(WRONG_CODE.search(each.text) for each in code)
    return code if presents and as_it_is else []


class Sources:
    """The files of a project, each read once; every question gets its answer."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._lines = cache(lambda path: text_of(self._root / path, path, MAX_BYTES).splitlines())

    @cached_property
    def _tree(self) -> list[str]:
        return [path.relative_to(self._root).as_posix() for path in files_of((".",), self._root)]

    def hold(self, name: str, first: int, last: int, code: Sequence[str]) -> Answer:
        """Return whether lines are there and hold some code, and what is; of several files one that fits is enough."""
        own = PurePosixPath(name).as_posix().removeprefix("/")
        inside = (self._root / own).resolve().is_relative_to(self._root)
        named = [own] if inside and (self._root / own).is_file() else []
        named = named or sorted((path for path in self._tree if f"/{path}".endswith(f"/{own}")), key=len)
        found = [self._in_file(path, first, last, code) for path in named[:MAX_CANDIDATES]]  # of an environment: deeper
        return next((each for each in found if each[0]), found[0] if found else (False, f"there is no file {name!r}"))

    def _in_file(self, path: str, first: int, last: int, code: Sequence[str]) -> Answer:
        try:
            lines = self._lines(path)
        except UsageError as error:
            return None, f"it was not read: {error}"
        if last > len(lines):
            return False, f"{path} has {len(lines)} lines"
        if not code:
            return None, "the lines are there; what words say of them was not checked"
        found, missing = find_quote(lines, code)
        if missing or not found:
            return False, f"{missing!r:.80} stands nowhere in {path}"
        at = [place for place in found if place[0] <= last and first <= place[1]]
        begin, end = (at or found)[0]
        return bool(at), f"it stands in line {begin}{f'-{end}' if end > begin else ''} of {path}"


def find_quote(lines: Sequence[str], quote: Sequence[str]) -> tuple[list[tuple[int, int]], str]:
    """Return the ranges of lines that hold the begin of a quote, up to `...`, and the piece of it that is nowhere."""
    bare = [_bare(line) for line in lines]
    text, starts = "".join(bare), [*accumulate(map(len, bare), initial=0)]
    shown = "\n".join(COMMENT.sub("", line) for line in quote)
    pieces = [piece for part in GAP.split(shown) if (piece := "".join(map(_bare, part.splitlines())))]
    places: list[tuple[int, int]] = []
    at = text.find(pieces[0]) if pieces else -1
    while at >= 0 and len(places) < MAX_PLACES:
        places.append((bisect.bisect(starts, at), bisect.bisect(starts, at + len(pieces[0]) - 1)))
        at = text.find(pieces[0], at + 1)
    return places, next((piece for piece in pieces if piece not in text), "")


def _bare(line: str) -> str:
    return "".join(COMMENT.sub("", line).split()).replace("'", '"').replace(",", "")
