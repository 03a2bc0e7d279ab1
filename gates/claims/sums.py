"""Arithmetic of a page: equations, shares, totals of scores and tables; all done again."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gates.claims.page import BETWEEN, Claim, Form, Line, Span, claim

NUM = r"\d{1,9}(?:\.\d{1,6})?"
UNIT = r"(?: ?(%|[A-Za-z\u00d7]{1,8}\b))?"
EQUATION = re.compile(
    rf"(?<![\w.,`/])({NUM}){UNIT}((?:(?: ?[+*/\u00d7\u00f7] ?| [-\u2212] ){NUM}{UNIT}){{1,40}}) ?= ?({NUM}){UNIT}"
    r"(?! ?[+*\u00d7\u00f7]| - |,?\d)"
)
SIGNS = frozenset("+-*/^\u00d7\u00f7\u2212")
DIVIDED, TIMES = "/\u00f7", "*\u00d7"
STEP = re.compile(rf"([-+*/\u00d7\u00f7\u2212]) ?({NUM}){UNIT}")
OUT_OF = rf"({NUM}) ?(?:/|of|out of) ?({NUM})"
NOUN = r"(?: [a-z]{2,20}){0,3}"
SHARE = re.compile(rf"(?<![\w./-]){OUT_OF}(?![\w/]|\.\d){NOUN} ?\(({NUM}) ?%(?= ?(?:[),;.|]|$))", re.IGNORECASE)
SHARE_BACK = re.compile(rf"(?<![\w.])({NUM}) ?% ?\({OUT_OF}{NOUN}[);]", re.IGNORECASE)
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
POINTS_HEADING = re.compile(r"\bscor(?:e|es|ing)\b|breakdown|points|rating", re.IGNORECASE)
WEIGHT = re.compile(r"%|\bweight", re.IGNORECASE)
MAX_REST = 3  # lines that may stand between the parts of a score and its total


class Part(NamedTuple):
    """A part of a total: its title, its value, the points possible, and where it stands."""

    title: str
    value: float
    of: float | None
    span: Span


def sums(lines: Sequence[Line]) -> Iterator[Claim]:
    """Yield what a page computes, or could have."""
    yield from _scores(lines)
    yield from _tables(lines)
    for line in lines:
        if line.form is not Form.CODE:
            for match in EQUATION.finditer(line.text):
                yield from _equation(line, match)
            for match in SHARE.finditer(line.text):
                yield from _share(line, match, *match.groups())
            for match in SHARE_BACK.finditer(line.text):
                yield from _share(line, match, match[2], match[3], match[1])


def _decimals(text: str) -> int:
    return len(text.partition(".")[2])


def _equation(line: Line, match: re.Match[str]) -> Iterator[Claim]:
    """Yield an equation; one of several units, or inside of a longer one, is not understood."""
    ops, texts, units = zip(*[("+", match[1], match[2] or ""), *STEP.findall(match[3])], strict=True)
    divided = not {*DIVIDED}.isdisjoint(ops)
    named = {*units, "" if divided else match[6] or ""} - {""}
    numbers = [float(text) for text in texts]
    exact = _value(ops, numbers)
    if len(named) > 1 or line.text[: match.start()].rstrip()[-1:] in SIGNS or exact is None:
        return
    unit = 0.01 if divided and "%" not in units and match[6] == "%" else 1.0
    slack = 0.0
    for i, text in enumerate(texts):  # numbers with decimals are rounded ones
        nudged = numbers[i] + 0.5 * 10.0 ** -_decimals(text) * ("." in text)
        slack += abs((_value(ops, [*numbers[:i], nudged, *numbers[i + 1 :]]) or exact) - exact)
    if divided or slack or "." in match[5]:
        slack += unit * (10.0 ** -_decimals(match[5]) if "." in match[5] else 0.5)
    good = abs(exact - float(match[5]) * unit) <= slack + 1e-9
    yield claim(line, good, match[0], f"it is {exact / unit:.6g}", (Span(line.number, *match.span()),))


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


def _share(line: Line, match: re.Match[str], count: str, whole: str, percent: str) -> Iterator[Claim]:
    if float(whole) > 0:
        exact, digits = 100 * float(count) / float(whole), _decimals(percent)
        good = abs(exact - float(percent)) < 10.0**-digits + 1e-9
        seen = f"it is {exact:.{digits + 1}f} %"
        yield claim(line, good, f"{count}/{whole} is {percent} %", seen, (Span(line.number, *match.span()),))


def _total(line: Line, title: str, parts: Sequence[Part], total: Part) -> Claim:
    """Claim that parts add up; parts that are all deductions are taken from the points possible."""
    values = [part.value for part in parts]
    whole = sum(values) + (total.of if total.of is not None and all(value <= 0 for value in values) else 0)
    slack = 0.0 if all(value == int(value) for value in (*values, total.value)) else 0.006 * (len(values) + 1)
    seen = f"{'+'.join(f'{value:g}' for value in values).replace('+-', '-')} = {whole:g}"
    good, possible = abs(whole - total.value) <= slack, [part.of for part in parts if part.of is not None]
    if good and total.of is not None and len(possible) == len(parts) and sum(possible) != total.of:
        good, seen = False, f"the parts are out of {sum(possible):g}"
    covers = tuple(part.span for part in (*parts, total))
    return claim(line, good, f"the {title} adds up to {total.value:g}", seen, covers)


def _number(text: str) -> float:
    return float(text.replace("\u2212", "-"))


def _scores(lines: Sequence[Line]) -> Iterator[Claim]:
    """Yield each list of points with the total in or right under it."""
    parts: list[Part] = []
    rest = 0
    for line in lines:
        total, points = TOTAL.match(line.text), POINTS.match(line.text)
        if total and len(parts) > 1 and line.form is not Form.ROW:
            if _is_breakdown(line, parts, float(total[2])):
                span = Span(line.number, 0, total.end())
                yield _total(line, "score", parts, Part("", float(total[1]), float(total[2]), span))
            parts = []
        elif line.form is Form.ITEM and points and not total and (points[3] or points[2][0] in "+-\u2212"):
            of = float(points[3]) if points[3] else None
            parts.append(Part(points[1], _number(points[2]), of, Span(line.number, 0, points.end())))
            rest = 0
        elif line.form is not Form.BLANK:
            rest += 1
            parts = [] if line.form is Form.HEADING or rest > MAX_REST else parts


def _is_breakdown(line: Line, parts: Sequence[Part], of: float) -> bool:
    """Return whether points are parts of the total under them, and not of an average or of something else."""
    possible = [part.of for part in parts if part.of is not None]
    if any(WEIGHT.search(part.title) for part in parts) or (len(possible) > 1 and set(possible) == {of}):
        return False
    return not possible or sum(possible) == of or bool(POINTS_HEADING.search(line.heading))


def _tables(lines: Sequence[Line]) -> Iterator[Claim]:
    """Yield each column of a table that ends in a row of totals."""
    rows: list[Line] = []
    for line in (*lines, None):
        if line is not None and line.form is Form.ROW:
            rows.append(line)
            continue
        table, rows = rows, []
        if len(table) < 5 or table[1].cells or not TOTAL_WORD.match(next(filter(None, table[-1].cells), "")):
            continue
        cut = any(MORE.search(row.text) for row in table[2:-1])
        if not cut and not any("weight" in cell.lower() for cell in table[0].cells):
            for index, name in enumerate(table[0].cells[1:], 1):
                if not NOT_SUMMED.search(name):
                    yield from _column(name, index, table[2:])


def _column(name: str, index: int, rows: Sequence[Line]) -> Iterator[Claim]:
    parts = [part for row in rows if (part := _cell(name, index, row))]
    if len(parts) == len(rows) and len({part.of is None for part in parts}) == 1:
        yield _total(rows[-1], f"column {name!r}", parts[:-1], parts[-1])


def _cell(name: str, index: int, row: Line) -> Part | None:
    cell = CELL.fullmatch(row.cells[index]) if index < len(row.cells) else None
    start = sum(len(each) + len(BETWEEN) for each in row.cells[:index])
    span = Span(row.number, start, start + len(row.cells[index]) if cell else start)
    return Part(name, _number(cell[1]), float(cell[2]) if cell[2] else None, span) if cell else None
