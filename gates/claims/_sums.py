"""Arithmetic of a page: scores and totals of tables, percentages of counts, changes, numbers of entries."""

import re
from collections.abc import Iterator

from gates.claims._page import Form, Line, Page
from gates.claims.claim import Change, Share, Sum, Tally

NUM = r"\d{1,9}(?:\.\d{1,6})?"
OUT_OF = rf"(?<![\w./-])({NUM}) ?(?:/|of|out of) ?({NUM})(?![\w/]|\.\d)"
NOUN = r"(?: [a-z]{2,20}){0,3}"
PERCENT = rf"(~|\u2248|about )?({NUM}) ?%"
SHARE = re.compile(rf"{OUT_OF}{NOUN} ?[(=] ?{PERCENT}(?= ?(?:[),;.|]|$))", re.IGNORECASE)
SHARE_BACK = re.compile(rf"(?<![\w.]){PERCENT} ?\({OUT_OF}{NOUN}\)", re.IGNORECASE)
POINTS = re.compile(rf"^([^:|]{{2,80}}): ?`?({NUM}) ?/ ?({NUM})\b")
DEDUCTION = re.compile(rf"^([^:|]{{2,80}}): ?`?([-+\u2212]{NUM})\b(?! ?[%\w])")
TOTAL = re.compile(
    rf"^(?:final |total |overall )?(?:score|total|points)\W{{0,4}}?:? ?`?({NUM}) ?/ ?({NUM})\b", re.IGNORECASE
)
TOTAL_WORD = re.compile(r"^(?:grand )?(?:sub-?)?(?:total|sum)s?\W{0,2}$|^(?:final|total|overall) score$", re.IGNORECASE)
NOT_SUMMED = re.compile(
    r"%|\b(average|avg|mean|median|max\w*|min\w*|rate|ratio|share|percent\w*|"
    r"coverage|cover|weight\w*|threshold|id|no|line\w*|version|date|p\d+|interval|"
    r"limit)\b",
    re.IGNORECASE,
)
PLAIN = re.compile(rf"[-+\u2212]?{NUM}")
CELL_POINTS = re.compile(rf"({NUM}) ?/ ?({NUM})")
AMOUNT = rf"~?({NUM}) ?(GB|GiB|MB|MiB|KB|KiB|B|s|ms|us|ns|min)"
CHANGE = re.compile(
    rf"(?<![\w.]){AMOUNT} ?(?:->|=>|\u2192|to) ?{AMOUNT}\b[^%\d]{{1,40}}{PERCENT}(?: (?:less|"
    r"reduction|lower|saved|smaller))?",
    re.IGNORECASE,
)
HEADING_COUNT = re.compile(r"^([^(:|]{3,60}?) ?\((\d{1,5})(?: items?| tests?| total| entries)?\) ?:?$")
PLURAL = re.compile(r"[a-z]{2}(?<!s)s\b|\bcriteria\b", re.IGNORECASE)
MORE = re.compile(r"\.\.\.|\u2026|\b(more|others|etc|omitted|truncated|remaining|among|selected|top)\b", re.IGNORECASE)
SCALE = {"gb": 1e9, "gib": 2**30, "mb": 1e6, "mib": 2**20, "kb": 1e3, "kib": 2**10, "b": 1.0,
         "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0}  # fmt: skip
YEARS = range(1900, 2101)
WEIGHTED = re.compile(r"%|\bweight", re.IGNORECASE)
POINTS_HEADING = re.compile(r"\bscor(?:e|es|ing)\b|breakdown|points|rating")
NAMED_ENTRY = re.compile(r"`|[\w./-]{1,120}(?:::|_|/|\.py)")
GROUP = re.compile(
    r"\d tests?\b|\d cases?\b|\(\d{1,4}\)|\b\d{1,4} (?:passed|failed|items)\b|[x\u00d7] ?\d", re.IGNORECASE
)
MAX_LISTED = 2000
SHORT = 60  # characters of an entry that says there are more
MAX_REST = 3  # lines that may stand between the parts of a score and its total
Found = tuple[Line, Sum | Share | Change | Tally]


def sums(page: Page) -> Iterator[Found]:
    """Yield what a page computes, or could have."""
    yield from _scores(page)
    yield from _tables(page)
    yield from _tallies(page)
    for line in page.prose:
        for match in SHARE.finditer(line.text):
            yield from _share(line, match[1], match[2], match[4], roughly=bool(match[3]))
        for match in SHARE_BACK.finditer(line.text):
            yield from _share(line, match[3], match[4], match[2], roughly=bool(match[1]))
        for match in CHANGE.finditer(line.text):
            yield from _change(line, match)


def digits(text: str) -> int:
    """Return how many decimals a number is written with."""
    return len(text.partition(".")[2])


def _share(line: Line, count: str, whole: str, percent: str, *, roughly: bool) -> Iterator[Found]:
    if float(whole) > 0:
        yield line, Share(count=float(count), whole=float(whole), percent=float(percent), digits=digits(percent),
                          roughly=roughly)  # fmt: skip


def _change(line: Line, match: re.Match[str]) -> Iterator[Found]:
    before, unit, after, other, roughly, percent = match.groups()
    one, two = float(before) * SCALE[unit.lower()], float(after) * SCALE[other.lower()]
    if one > two > 0 and match[0].rstrip().lower().endswith(("less", "reduction", "lower", "saved", "smaller")):
        yield line, Change(before=one, after=two, percent=float(percent), digits=digits(percent),
                           roughly="~" in match[0] or bool(roughly))  # fmt: skip


def _scores(page: Page) -> Iterator[Found]:
    """Yield each list of points with the total in or right under it."""
    parts: list[tuple[str, float, float | None]] = []
    rest = 0
    for line in page.lines:
        total = TOTAL.match(line.text)
        if total and len(parts) > 1 and line.form is not Form.ROW:
            if _is_breakdown(line, parts, float(total[2])):
                yield line, _sum("score", parts, float(total[1]), float(total[2]))
            parts = []
            continue
        points, less = POINTS.match(line.text), DEDUCTION.match(line.text)
        if line.form is Form.ITEM and points and not total:
            parts.append((points[1], float(points[2]), float(points[3])))
        elif line.form is Form.ITEM and less:
            parts.append((less[1], float(less[2].replace("\u2212", "-")), None))
        elif line.form is not Form.BLANK:
            rest += 1
            if line.form is Form.HEADING or rest > MAX_REST:
                parts = []
            continue
        else:
            continue
        rest = 0


def _is_breakdown(line: Line, parts: list[tuple[str, float, float | None]], of: float) -> bool:
    """Return whether points are parts of the total under them, and not of an average or of something else."""
    possible = [of_part for _, _, of_part in parts if of_part is not None]
    if any(WEIGHTED.search(title) for title, _, _ in parts) or (len(possible) > 1 and set(possible) == {of}):
        return False
    return not possible or sum(possible) == of or bool(POINTS_HEADING.search(line.sections))


def _sum(title: str, parts: list[tuple[str, float, float | None]], total: float, of: float | None) -> Sum:
    possible = [of_part for _, _, of_part in parts if of_part is not None]
    return Sum(title=title, parts=tuple(got for _, got, _ in parts), total=total, of_parts=tuple(possible), of_total=of)


def _tables(page: Page) -> Iterator[Found]:
    """Yield each column of a table that ends in a row of totals."""
    for head, rows in _grids(page):
        last = rows[-1]
        if len(rows) < 3 or not last.cells or not TOTAL_WORD.match(last.cells[0]):
            continue
        if any(MORE.search(row.text) for row in rows[:-1]) or any("weight" in cell.lower() for cell in head.cells):
            continue
        for i, name in enumerate(head.cells[1:], 1):
            column = [row.cells[i] if i < len(row.cells) else "" for row in rows]
            yield from _column(name, column, last)


def _column(name: str, column: list[str], last: Line) -> Iterator[Found]:
    if NOT_SUMMED.search(name):
        return
    points = [CELL_POINTS.fullmatch(cell) for cell in column]
    if all(points):
        pairs = [(name, float(p[1]), float(p[2])) for p in points if p]
        yield last, _sum(f"column {name!r}", list(pairs[:-1]), pairs[-1][1], pairs[-1][2])
    elif all(PLAIN.fullmatch(cell) for cell in column):
        numbers = [float(cell.replace("\u2212", "-")) for cell in column]
        yield last, Sum(title=f"column {name!r}", parts=tuple(numbers[:-1]), total=numbers[-1])


def _grids(page: Page) -> Iterator[tuple[Line, list[Line]]]:
    """Yield each table as its head and its rows."""
    rows: list[Line] = []
    for line in (*page.lines, None):
        if line is not None and line.form is Form.ROW:
            rows.append(line)
            continue
        if len(rows) > 2 and not rows[1].cells:
            yield rows[0], rows[2:]
        rows = []


def _tallies(page: Page) -> Iterator[Found]:
    """Yield each heading or label with a number, and how many entries stand right under it."""
    for i, line in enumerate(page.lines):
        match = HEADING_COUNT.match(line.text)
        if not match or line.form not in {Form.HEADING, Form.TEXT} or not PLURAL.search(match[1]):
            continue
        listed = _listed(page.lines[i + 1 : i + MAX_LISTED])
        if listed and int(match[2]) not in YEARS:
            yield line, Tally(title=match[1].strip(), said=int(match[2]), listed=listed)


def _listed(lines: tuple[Line, ...]) -> int:
    """Count the entries of the list or table that begins right here; 0 where there is none, or not all of it."""
    after = (line for line in lines if line.form is not Form.BLANK)
    first = next(after, None)
    if first is None or first.form not in {Form.ITEM, Form.ROW}:
        return 0
    entries = [first]
    for line in after:
        if line.form is not first.form and line.indent <= first.indent:
            if line.form is Form.TEXT and MORE.search(line.text):
                return 0
            break
        if MORE.search(line.text) and len(line.text) < SHORT:
            return 0
        entries.append(line)
    like_first = [line for line in entries if line.form is first.form and line.indent == first.indent
                  and line.numbered is first.numbered]  # fmt: skip
    if first.form is Form.ROW:
        return _rows(like_first)
    one_by_one = first.numbered or all(NAMED_ENTRY.match(line.text) for line in like_first)
    return len(like_first) if one_by_one and not any(GROUP.search(line.text) for line in like_first) else 0


def _rows(lines: list[Line]) -> int:
    """Count the rows of a table; 0 where a column counts, for then a row may stand for several."""
    if len(lines) < 3 or lines[1].cells:  # head, rule, and a row
        return 0
    columns = zip(*(line.cells for line in lines[2:]), strict=False)
    return 0 if any(all(cell.isdigit() for cell in column) for column in columns) else len(lines) - 2
