"""Arithmetic of a page: equations, shares, totals of scores and tables, numbers of entries; all done again."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gates.claims.page import Answer, Form, Line, Page, Span, answer

NUM = r"\d{1,9}(?:\.\d{1,6})?"
ABOUT = r"(~|\u2248|about )?"
UNIT = r"(?: ?(%|[A-Za-z\u00d7]{1,8}\b))?"
OPERATOR = r"(?: ?[+*/\u00d7\u00f7] ?| [-\u2212] )"
EQUATION = re.compile(
    rf"(?<![\w.,`/])({NUM}){UNIT}((?:{OPERATOR}{NUM}{UNIT}){{1,40}}) ?(?:=|\u2248) ?{ABOUT}({NUM}){UNIT}"
    r"(?! ?[+*\u00d7\u00f7]| - |,?\d)"
)
SIGNS = frozenset("+-*/^\u00d7\u00f7\u2212")
DIVIDED, TIMES = "/\u00f7", "*\u00d7"
STEP = re.compile(rf"([-+*/\u00d7\u00f7\u2212]) ?({NUM}){UNIT}")
OUT_OF = rf"({NUM}) ?(?:/|of|out of) ?({NUM})"
NOUN = r"(?: [a-z]{2,20}){0,3}"
SHARE = re.compile(rf"(?<![\w./-]){OUT_OF}(?![\w/]|\.\d){NOUN} ?\({ABOUT}({NUM}) ?%(?= ?(?:[),;.|]|$))", re.IGNORECASE)
SHARE_BACK = re.compile(rf"(?<![\w.]){ABOUT}({NUM}) ?% ?\({OUT_OF}{NOUN}[);]", re.IGNORECASE)
POINTS = re.compile(rf"^([^:|]{{2,80}}): ?`?([-+\u2212]?{NUM})(?: ?/ ?({NUM}))?(?! ?[%\w])")
TOTAL = re.compile(
    rf"^(?:final |total |overall )?(?:score|total|points)\W{{0,4}}?:? ?`?({NUM}) ?/ ?({NUM})\b", re.IGNORECASE
)
TOTAL_WORD = re.compile(r"^(?:grand )?(?:sub-?)?(?:total|sum)s?\W{0,2}$|^(?:final|total|overall) score$", re.IGNORECASE)
NOT_SUMMED = re.compile(
    r"%|\b(average|avg|mean|median|max\w*|min\w*|rate|ratio|share|percent\w*|coverage|cover|weight\w*|threshold|id|no|"
    r"line\w*|version|date|p\d+|interval|limit)\b",
    re.IGNORECASE,
)
CELL = re.compile(rf"([-+\u2212]?{NUM})(?: ?/ ?({NUM}))?")
MORE = re.compile(r"\.\.\.|\u2026|\b(more|others|etc|omitted|truncated|remaining|among|selected|top)\b", re.IGNORECASE)
POINTS_HEADING = re.compile(r"\bscor(?:e|es|ing)\b|breakdown|points|rating")
WEIGHT = re.compile(r"%|\bweight", re.IGNORECASE)
MAX_REST = 3  # lines that may stand between the parts of a score and its total
ROUGHLY = 0.02  # of a number that says it is no exact one


class Found(NamedTuple):
    """What was computed again: the line that states it, the answer, and where its numbers stand."""

    line: Line
    answer: Answer
    covers: tuple[Span, ...]


class Part(NamedTuple):
    """A part of a total: its title, its value, the points possible, and where it stands."""

    title: str
    value: float
    of: float | None
    span: Span


def arithmetic(page: Page) -> Iterator[Found]:
    """Yield what a page computes, or could have."""
    yield from _scores(page)
    yield from _tables(page)
    for line in page.prose:
        for match in EQUATION.finditer(line.text):
            yield from _equation(line, match)
        for match in SHARE.finditer(line.text):
            count, whole, about, percent = match.groups()
            yield from _quotient(line, match, (count, whole), percent, about)
        for match in SHARE_BACK.finditer(line.text):
            about, percent, count, whole = match.groups()
            yield from _quotient(line, match, (count, whole), percent, about)


def digits(text: str) -> int:
    """Return how many decimals a number is written with."""
    return len(text.partition(".")[2])


def _found(line: Line, match: re.Match[str], good: bool | None, expected: str, seen: str) -> Found:
    span = Span(line=line.number, start=match.start(), end=match.end())
    return Found(line, answer(good, expected, seen), (span,))


def _equation(line: Line, match: re.Match[str]) -> Iterator[Found]:
    """Yield an equation; one of several units, or inside of a longer one, is not understood."""
    first = ("+", match[1], match[2] or "")
    ops, texts, units = zip(*[first, *STEP.findall(match[3])], strict=True)
    divided = not {*DIVIDED}.isdisjoint(ops)
    named = {*units, "" if divided else match[7] or ""} - {""}
    if len(named) > 1 or line.text[: match.start()].rstrip()[-1:] in SIGNS:
        return
    numbers = [float(text) for text in texts]
    exact = _value(ops, numbers)
    if exact is None:
        return
    unit = 0.01 if divided and "%" not in units and match[7] == "%" else 1.0
    slack = ROUGHLY * abs(exact) if match[5] or "\u2248" in match[0] else 0.0
    for i, text in enumerate(texts):  # numbers with decimals are rounded ones
        nudged = numbers[i] + 0.5 * 10.0 ** -digits(text) * ("." in text)
        slack += abs((_value(ops, [*numbers[:i], nudged, *numbers[i + 1 :]]) or exact) - exact)
    if divided or slack or "." in match[6]:
        slack += unit * (10.0 ** -digits(match[6]) if "." in match[6] else 0.5)
    good = abs(exact - float(match[6]) * unit) <= slack + 1e-9
    yield _found(line, match, good, match[0], f"it is {exact / unit:.6g}")


def _value(ops: Sequence[str], numbers: Sequence[float]) -> float | None:
    """Return the value of an expression, products before sums; `None` for a division by zero."""
    total, sign, term = 0.0, 1, numbers[0]
    for op, number in zip(ops[1:], numbers[1:], strict=True):
        if op in DIVIDED and not number:
            return None
        if op in DIVIDED or op in TIMES:
            term = term / number if op in DIVIDED else term * number
        else:
            total, sign, term = total + sign * term, 1 if op == "+" else -1, number
    return total + sign * term


def _quotient(
    line: Line, match: re.Match[str], parts: tuple[str, str], percent: str, about: str | None
) -> Iterator[Found]:
    if float(parts[1]) > 0:
        yield _percentage(
            line,
            match,
            100 * float(parts[0]) / float(parts[1]),
            percent,
            f"{parts[0]}/{parts[1]}",
            100 * ROUGHLY if about else 0,
        )


def _percentage(line: Line, match: re.Match[str], exact: float, stated: str, of: str, slack: float) -> Found:
    good = abs(exact - float(stated)) < 10.0 ** -digits(stated) + slack + 1e-9
    return _found(line, match, good, f"{of} is {stated} %", f"it is {exact:.{digits(stated) + 1}f} %")


def _total(title: str, parts: Sequence[Part], total: float, of: float | None) -> Answer:
    """Answer whether parts add up; parts that are all deductions are taken from the points possible."""
    values = [part.value for part in parts]
    whole = sum(values) + (of if of is not None and all(value <= 0 for value in values) else 0)
    slack = 0.0 if all(value == int(value) for value in (*values, total)) else 0.006 * (len(values) + 1)
    text = " ".join(f"{value:+g}" for value in values).removeprefix("+") + f" = {whole:g}"
    expected = f"the {title} adds up to {total:g}"
    if abs(whole - total) > slack:
        return answer(False, expected, text)
    possible = [part.of for part in parts if part.of is not None]
    if of is not None and len(possible) == len(parts) and sum(possible) != of:
        return answer(False, f"{expected} of {of:g}", f"the parts are out of {sum(possible):g}")
    return answer(True, expected, text)


def _scores(page: Page) -> Iterator[Found]:
    """Yield each list of points with the total in or right under it."""
    parts: list[Part] = []
    rest = 0
    for line in page.lines:
        total, points = TOTAL.match(line.text), POINTS.match(line.text)
        span = Span(line=line.number, end=points.end() if points else 0)
        if total and len(parts) > 1 and line.form is not Form.ROW:
            if _is_breakdown(line, parts, float(total[2])):
                known = _total("score", parts, float(total[1]), float(total[2]))
                yield Found(line, known, (*(part.span for part in parts), Span(line=line.number, end=total.end())))
            parts = []
        elif line.form is Form.ITEM and points and not total and (points[3] or points[2][0] in "+-\u2212"):
            of = float(points[3]) if points[3] else None
            parts.append(Part(points[1], float(points[2].replace("\u2212", "-")), of, span))
            rest = 0
        elif line.form is not Form.BLANK:
            rest += 1
            parts = [] if line.form is Form.HEADING or rest > MAX_REST else parts


def _is_breakdown(line: Line, parts: Sequence[Part], of: float) -> bool:
    """Return whether points are parts of the total under them, and not of an average or of something else."""
    possible = [part.of for part in parts if part.of is not None]
    if any(WEIGHT.search(part.title) for part in parts) or (len(possible) > 1 and set(possible) == {of}):
        return False
    return not possible or sum(possible) == of or bool(POINTS_HEADING.search(line.sections))


def _tables(page: Page) -> Iterator[Found]:
    """Yield each column of a table that ends in a row of totals."""
    rows: list[Line] = []
    for line in page.lines:
        if line.form is Form.ROW:
            rows.append(line)
            continue
        table, rows = rows, []
        if len(table) < 5 or table[1].cells or not TOTAL_WORD.match(next(filter(None, table[-1].cells), "")):
            continue
        if any(MORE.search(row.text) for row in table[2:-1]) or any(
            "weight" in cell.lower() for cell in table[0].cells
        ):
            continue
        for index, name in enumerate(table[0].cells[1:], 1):
            if not NOT_SUMMED.search(name):
                yield from _column(name, index, table[2:])


def _column(name: str, index: int, rows: list[Line]) -> Iterator[Found]:
    cells = [CELL.fullmatch(row.cells[index]) if index < len(row.cells) else None for row in rows]
    parts = [
        Part(name, float(cell[1].replace("\u2212", "-")), float(cell[2]) if cell[2] else None, _cell(row, index))
        for cell, row in zip(cells, rows, strict=True)
        if cell
    ]
    if len(parts) == len(rows) and len({part.of is None for part in parts}) == 1:
        known = _total(f"column {name!r}", parts[:-1], parts[-1].value, parts[-1].of)
        yield Found(rows[-1], known, tuple(part.span for part in parts))


def _cell(row: Line, index: int) -> Span:
    line, start, end = row.cell_span(index)
    return Span(line=line, start=start, end=end)
