"""Numbers that a page claims: sums, shares and totals done again, and counts of tests beside the records of a run."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

from gates.check import EvidenceSet
from gates.claims import BETWEEN, Claim, Form, Line, Span, Standing, claim
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import Out, TestOutcome, function_of

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
    yield claim(line, good, match[0], f"it is {exact / unit:.6g}", Span(line.number, *match.span()))


def _value(ops: Sequence[str], numbers: Sequence[float]) -> float | None:
    """Return the value of an expression, products before sums; `None` for a division by zero."""
    terms = [numbers[0]]
    for op, number in zip(ops[1:], numbers[1:], strict=True):
        if op in DIVIDED and not number:
            return None
        if op in DIVIDED or op in TIMES:
            terms[-1] *= 1 / number if op in DIVIDED else number
        else:
            terms.append(number if op == "+" else -number)
    return sum(terms)


def _share(line: Line, match: re.Match[str], count: str, whole: str, percent: str) -> Iterator[Claim]:
    if float(whole) > 0:
        exact, digits = 100 * float(count) / float(whole), _decimals(percent)
        good = abs(exact - float(percent)) < 10.0**-digits + 1e-9
        seen = f"it is {exact:.{digits + 1}f} %"
        yield claim(line, good, f"{count}/{whole} is {percent} %", seen, Span(line.number, *match.span()))


def _total(line: Line, title: str, parts: Sequence[Part], total: Part) -> Claim:
    """Claim that parts add up; parts that are all deductions are taken from the points possible."""
    values = [part.value for part in parts]
    whole = sum(values) + (total.of if total.of is not None and max(values) <= 0 else 0)
    slack = 0.0 if all(value == int(value) for value in (*values, total.value)) else 0.006 * (len(values) + 1)
    seen = f"{'+'.join(f'{value:g}' for value in values).replace('+-', '-')} = {whole:g}"
    good, possible = abs(whole - total.value) <= slack, [part.of for part in parts if part.of is not None]
    if good and total.of is not None and len(possible) == len(parts) and sum(possible) != total.of:
        good, seen = False, f"the parts are out of {sum(possible):g}"
    return claim(line, good, f"the {title} adds up to {total.value:g}", seen, *(part.span for part in (*parts, total)))


def _part(title: str, value: str, of: str | None, span: Span) -> Part:
    return Part(title, float(value.replace("\u2212", "-")), float(of) if of else None, span)


def _scores(lines: Sequence[Line]) -> Iterator[Claim]:
    """Yield each list of points with the total in or right under it."""
    parts: list[Part] = []
    rest = 0
    for line in lines:
        total, points = TOTAL.match(line.text), POINTS.match(line.text)
        if total and len(parts) > 1 and line.form is not Form.ROW:
            if _is_breakdown(line, parts, float(total[2])):
                yield _total(line, "score", parts, _part("", total[1], total[2], Span(line.number, 0, total.end())))
            parts = []
        elif line.form is Form.ITEM and points and not total and (points[3] or points[2][0] in "+-\u2212"):
            parts.append(_part(points[1], points[2], points[3], Span(line.number, 0, points.end())))
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
    for is_table, found in groupby(lines, key=lambda line: line.form is Form.ROW):
        table = [*found]
        if not is_table or len(table) < 5 or table[1].cells or not _has_total(table[-1]):
            continue
        cut = any(MORE.search(row.text) for row in table[2:-1])
        if not cut and not any("weight" in cell.lower() for cell in table[0].cells):
            for index, name in enumerate(table[0].cells[1:], 1):
                parts = [part for row in table[2:] for part in _cell(name, index, row)]
                alike = len(parts) == len(table) - 2 and len({part.of is None for part in parts}) == 1
                if alike and not NOT_SUMMED.search(name):
                    yield _total(table[-1], f"column {name!r}", parts[:-1], parts[-1])


def _has_total(row: Line) -> bool:
    return bool(TOTAL_WORD.match(next(filter(None, row.cells), "")))


def _cell(name: str, index: int, row: Line) -> Iterator[Part]:
    cell = CELL.fullmatch(row.cells[index]) if index < len(row.cells) else None
    if cell:
        start = sum(len(each) + len(BETWEEN) for each in row.cells[:index])
        yield _part(name, cell[1], cell[2], Span(row.number, start, start + len(row.cells[index])))


NAMES = ("error", "passed", "failed", "skipped", "xfailed", "xpassed", "deselected", "total")
OUTCOMES = {name[:3]: name for name in NAMES}
N = r"(?<![\w.:/-])(\d{1,7})"
WORDS = "passed|failed|skipped|errors?|xfailed|xpassed|deselected"
COUNT = re.compile(rf"(?<!of ){N} (?:tests? )?({WORDS})\b(?! ?[=:]| tests?\b)", re.IGNORECASE)
OF_TOTAL = re.compile(rf"{N} ?(?:/|of|out of) ?(\d{{1,7}})(?: tests?)? ?pass(?:ed|ing|es)?\b", re.IGNORECASE)
LABEL = re.compile(
    rf"(?:tests? )?({WORDS}|total)(?: tests?)?(?: ?: ?| \| )(\d{{1,7}})(?![\w.%/])(?! \| )", re.IGNORECASE
)
ALL = re.compile(r"\ball (?:(\d{1,7}) )?(?:of the )?tests (?:have )?pass(?:ed|es|ing)?\b", re.IGNORECASE)
END = re.compile(
    r"((?:[\w./-]{1,120}\.py::)?(?:Test\w{0,80}::)?(?:test_)\w{1,120})(?:\[[^\]]{0,80}\])? ?[-:|\u2013\u2014]? ?"
    r"(PASS|FAIL|SKIP|ERR|XFAIL|XPASS)(?:ED|PED|OR)?\b"
)
EXIT = re.compile(r"(?:pytest |test )?exit (?:code|status) ?:? ?`?(-?\d{1,4})\b", re.IGNORECASE)
ABOUT_TESTS = re.compile(r"\btest|suite|pytest|execution", re.IGNORECASE)
ASIDE = re.compile(r"\([^()]{0,300}\)|`[^`]{0,300}`")
PLAIN_WORD = re.compile(r"[a-z][a-z0-9_./-]{0,80}")
SENTENCE = re.compile(r"[^.;!?]+(?:[.;!?](?! )[^.;!?]*)*[.;!?]? ?")
WHOLE = frozenset(
    re.findall(
        r"\S+",
        """
        a all an and are as at by code complete completed completes conclusion counts details ended ends error errors
    everything execution executive exit failed final finding findings finished for from full gate got has have in is
    it of on our out outcome outcomes output overall pass passed passes passing pytest quality report reported
    result results run running runs s score skipped stage status successful successfully suite suites summary test
    testing tests that the their there these this to total verdict verification warning warnings was we were which
    whole with xfailed xpassed deselected
        """,
    )
)
Answer = tuple[bool | None, str]
Earlier = dict[str, tuple[int, int]]


def counts(lines: Sequence[Line], evidence: EvidenceSet) -> Iterator[Claim]:
    """Yield what a page says of its test run, each statement beside that run and beside the earlier ones."""
    earlier: Earlier = {}
    for line in lines:
        about = ABOUT_TESTS.search(f"{' '.join(title for _, title in line.heads)} {line.text}")
        if line.form in {Form.CODE, Form.BLANK} or not about:
            continue
        if end := END.match(line.text):
            said, span = f"{end[1]} {OUTCOMES[end[2][:3].lower()]}", Span(line.number, 0, end.end())
            yield _answered(line, evidence, said, partial(_test_end, end), span)
        elif code := EXIT.match(line.text):
            asked, span = partial(_exit, int(code[1]), _others(line, line.text)), Span(line.number, 0, code.end())
            yield _answered(line, evidence, f"exit code {code[1]}", asked, span)
        elif label := LABEL.fullmatch(line.text):
            yield _counted(line, evidence, {OUTCOMES[label[1][:3].lower()]: int(label[2])}, earlier, Span(line.number))
        elif line.form is not Form.ROW:
            for sentence in SENTENCE.finditer(line.text):
                yield from _of_sentence(line, sentence, evidence, earlier)


def _of_sentence(line: Line, sentence: re.Match[str], evidence: EvidenceSet, earlier: Earlier) -> Iterator[Claim]:
    text = sentence[0]
    whole, every = OF_TOTAL.search(text), ALL.search(text)
    said = {"passed": int(whole[1]), "total": int(whole[2])} if whole else {}
    found = [match for match in (whole, every, *COUNT.finditer(text)) if match]
    for match in COUNT.finditer(text):
        if said.setdefault(OUTCOMES[match[2][:3].lower()], int(match[1])) != int(match[1]):
            return  # several things are counted here
    if every and every[1]:
        said.setdefault("passed", int(every[1]))
    if found:
        start, end = min(match.start() for match in found), max(match.end() for match in found)
        span = Span(line.number, sentence.start() + start, sentence.start() + end)
        yield _counted(line, evidence, said, earlier, span, text=text, every=bool(every))


def _others(line: Line, text: str) -> str:
    """Return the words of a statement and its heading that make it one about something else than the whole run."""
    words = PLAIN_WORD.findall(f"{line.heading} {ASIDE.sub(' ', text)}".lower())
    return " ".join(word for word in words if word.strip("/.-") not in WHOLE)


def _counted(
    line: Line,
    evidence: EvidenceSet,
    said: Mapping[str, int],
    earlier: Earlier,
    span: Span,
    *,
    text: str = "",
    every: bool = False,
) -> Claim:
    others = _others(line, text)
    words = ", ".join([*(f"{count} {name}" for name, count in said.items()), *["every test passed"] * every])
    found = _answered(line, evidence, words, partial(_agrees, said, others, every=every), span)
    why = "" if others else _contradiction(said, earlier, line.number)
    return claim(line, False, words, why, span) if why and found.standing is Standing.UNSUPPORTED else found


def _contradiction(said: Mapping[str, int], earlier: Earlier, line: int) -> str:
    """Return why counts of the whole run cannot be true: more parts than tests, or others in an earlier line."""
    ended = sum(count for name, count in said.items() if name not in {"deselected", "total"})
    if ended > said.get("total", ended):
        return f"more tests ended than the {said['total']} that there are"
    for name, count in said.items():
        there, at = earlier.setdefault(name, (count, line))
        if there != count:
            return f"{count} {name} here, {there} {name} there (line {at})"
    return ""


def _answered(line: Line, evidence: EvidenceSet, said: str, asked: Callable[[PytestRun], Answer], span: Span) -> Claim:
    """Answer a statement by the run; without one, or from one that cannot be believed, it is unsupported."""
    run = evidence.get(PytestRun)
    if run is None:
        return claim(line, None, said, f"no test run was seen: {evidence.why_missing(PytestRun)}", span)
    if not run.complete or run.disagreements:
        return claim(line, None, said, f"the test run cannot be believed ({run.process.ended})", span)
    good, seen = asked(run)
    return claim(line, good, said, seen, span)


def _agrees(said: Mapping[str, int], others: str, run: PytestRun, *, every: bool) -> Answer:
    seen = {name: sum(test.outcome.value == name for test in run.tests) for name in said}
    seen |= {"total": len(run.tests), "deselected": len(run.out(Out.DESELECTED))}
    left = [test for test in run.tests if every and not test.passed]
    bad = [test for test in left if test.outcome in {TestOutcome.FAILED, TestOutcome.ERROR}]
    good = False if bad or any(seen[name] != count for name, count in said.items()) else None if left else True
    if others and good is not True:
        return None, f"it speaks of a part ({others:.40}) that this run does not know"
    first = (bad or left)[:1]
    why = [f"{len(bad or left)} did not pass, first {test.id}: {test.ended}" for test in first]
    return good, ", ".join([*(f"{seen[n]} {n}" for n in said if n != "total"), f"{len(run.tests)} tests in all", *why])


def _exit(code: int, others: str, run: PytestRun) -> Answer:
    return run.process.exit_code == code or (None if others else False), f"this run: {run.process.ended}"


def _test_end(end: re.Match[str], run: PytestRun) -> Answer:
    name, outcome = end[1], OUTCOMES[end[2][:3].lower()]
    found = [test for test in run.tests if f"/{function_of(test.id)}".endswith((f"::{name}", f"/{name}"))]
    outcomes = sorted({test.outcome.value for test in found})
    if not found or (len(outcomes) > 1 and outcome in outcomes):
        return None, f"{len(found)} tests of this run have this name"
    return outcomes == [outcome], f"{' and '.join(outcomes)} in this run"
