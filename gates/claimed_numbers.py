"""Numbers that a page claims: sums, shares and totals done again, and counts of tests beside the records of a run."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from gates.check import EvidenceSet
from gates.claims import BETWEEN, BLOCKS, Answer, Claim, Form, Line, Span, claim
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import Out, TestOutcome, function_of

NUM = r"\d{1,9}(?:\.\d{1,6})?"
UNIT = r"(?: ?(%|[A-Za-z\u00d7]{1,8}\b))?"
EQUATION = re.compile(
    rf"(?<![\w.,`/])({NUM}){UNIT}((?:(?: ?[+*/\u00d7\u00f7] ?| [-\u2212] ){NUM}{UNIT}){{1,40}}) ?= ?({NUM}){UNIT}"
    r"(?! ?[+*\u00d7\u00f7]| - |,?\d)"
)
STEP = re.compile(rf"([-+*/\u00d7\u00f7\u2212]) ?({NUM}){UNIT}")
DIVIDED, TIMES, SIGNS = "/\u00f7", "*\u00d7", frozenset("+-*/^\u00d7\u00f7\u2212")
OUT_OF = rf"(?P<count>{NUM}) ?(?:/|of|out of) ?(?P<whole>{NUM})"
NOUN = r"(?: [a-z]{2,20}){0,3}"
SHARES = (
    rf"(?<![\w./-]){OUT_OF}(?![\w/]|\.\d){NOUN} ?\((?P<percent>{NUM}) ?%(?= ?(?:[),;.|]|$))",
    rf"(?<![\w.])(?P<percent>{NUM}) ?% ?\({OUT_OF}{NOUN}[);]",
)
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
    """A part of a total: its value, the points possible, and where it stands."""

    value: float
    of: float | None
    span: Span


def sums(lines: Sequence[Line]) -> Iterator[Claim]:
    """Yield what a page computes, or could have."""
    yield from _scores(lines)
    yield from _tables(lines)
    for line in [line for line in lines if line.form not in BLOCKS]:
        for match in EQUATION.finditer(line.text):
            if line.text[: match.start()].rstrip()[-1:] not in SIGNS:  # else it is a part of a longer one
                steps = [("+", match[1], match[2] or ""), *STEP.findall(match[3])]
                yield from _computed(line, match, steps, match[5], match[6] or "")
        for match in (match for share in SHARES for match in re.finditer(share, line.text, re.IGNORECASE)):
            steps = [("+", match["count"], ""), ("/", match["whole"], "")]
            yield from _computed(line, match, steps, match["percent"], "%")


def _computed(
    line: Line, match: re.Match[str], steps: Sequence[tuple[str, str, str]], result: str, unit: str
) -> Iterator[Claim]:
    """Yield what a line computes; of several units, it is not understood. Results are rounded, or cut."""
    ops, texts, units = zip(*steps, strict=True)
    divided, numbers = not {*DIVIDED}.isdisjoint(ops), [float(text) for text in texts]
    exact = _value(ops, numbers)
    if len({*units, "" if divided else unit} - {""}) > 1 or exact is None:
        return
    scale = 0.01 if divided and "%" not in units and unit == "%" else 1.0
    slack = 0.0
    for i, text in enumerate(texts):  # numbers with decimals are rounded ones
        nudged = numbers[i] + 0.5 * 0.1 ** _decimals(text) * ("." in text)
        slack += abs((_value(ops, [*numbers[:i], nudged, *numbers[i + 1 :]]) or exact) - exact)
    if divided or slack or "." in result:
        slack += scale * 0.1 ** _decimals(result)
    off = abs(exact - float(result) * scale)
    answer = off <= 1e-9 or off < slack - 1e-9, f"it is {exact / scale:.6g}{' %' if scale < 1 else ''}"
    claimed = match[0] + ")" * (match[0].count("(") - match[0].count(")"))
    yield claim(line, answer, claimed, Span(line.number, *match.span()))


def _decimals(text: str) -> int:
    return len(text.partition(".")[2])


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


def _total(line: Line, title: str, parts: Sequence[Part], total: Part) -> Claim:
    """Claim that parts add up; parts that are all deductions are taken from the points possible."""
    values = [part.value for part in parts]
    whole = sum(values) + (total.of if total.of is not None and max(values) <= 0 else 0)
    slack = 0.0 if all(value == int(value) for value in (*values, total.value)) else 0.006 * (len(values) + 1)
    seen = f"{'+'.join(f'{value:g}' for value in values).replace('+-', '-')} = {whole:g}"
    good, possible = abs(whole - total.value) <= slack, [part.of for part in parts if part.of is not None]
    if good and total.of is not None and len(possible) == len(parts) and sum(possible) != total.of:
        good, seen = False, f"the parts are out of {sum(possible):g}"
    spans = (part.span for part in (*parts, total))
    return claim(line, (good, seen), f"the {title} adds up to {total.value:g}", *spans)


def _part(value: str, of: str | None, span: Span) -> Part:
    return Part(float(value.replace("\u2212", "-")), float(of) if of else None, span)


def _scores(lines: Sequence[Line]) -> Iterator[Claim]:
    """Yield each list of points with the total in or right under it."""
    parts: list[Part] = []
    rest, weighted = 0, False
    for line in lines:
        total, points = TOTAL.match(line.text), POINTS.match(line.text)
        if total and len(parts) > 1 and line.form is not Form.ROW:
            if not weighted and _is_breakdown(line, parts, float(total[2])):
                yield _total(line, "score", parts, _part(total[1], total[2], Span(line.number, 0, total.end())))
            parts = []
        elif line.form is Form.ITEM and points and not total and (points[3] or points[2][0] in "+-\u2212"):
            weighted = bool(WEIGHT.search(points[1])) or (weighted and bool(parts))
            parts.append(_part(points[2], points[3], Span(line.number, 0, points.end())))
            rest = 0
        elif line.form is not Form.BLANK:
            rest += 1
            parts = [] if line.form is Form.HEADING or rest > MAX_REST else parts


def _is_breakdown(line: Line, parts: Sequence[Part], of: float) -> bool:
    """Return whether points are parts of the total under them, and not of an average or of something else."""
    possible = [part.of for part in parts if part.of is not None]
    if len(possible) > 1 and set(possible) == {of}:
        return False
    return not possible or sum(possible) == of or bool(POINTS_HEADING.search(line.heading))


def _tables(lines: Sequence[Line]) -> Iterator[Claim]:
    """Yield each column of a table that ends in a row of totals."""
    for form, found in groupby(lines, key=lambda line: line.form):
        head, *rows = found
        if form is not Form.ROW or len(rows) < 4 or rows[0].text or "weight" in head.text.lower():
            continue
        if not TOTAL_WORD.match(rows[-1].text.partition(BETWEEN)[0]) or any(MORE.search(r.text) for r in rows[1:-1]):
            continue
        for index, name in enumerate(head.text.split(BETWEEN)):
            parts = [part for row in rows[1:] for part in _cell(index, row)]
            alike = len(parts) == len(rows) - 1 and len({part.of is None for part in parts}) == 1
            if alike and not NOT_SUMMED.search(name):
                yield _total(rows[-1], f"column {name!r}", parts[:-1], parts[-1])


def _cell(index: int, row: Line) -> Iterator[Part]:
    cells = row.text.split(BETWEEN)
    if index < len(cells) and (cell := CELL.fullmatch(cells[index])):
        start = len(BETWEEN.join([*cells[:index], ""]))
        yield _part(cell[1], cell[2], Span(row.number, start, start + len(cells[index])))


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
WHOLE = re.compile(  # words of a statement about the whole run
    r"an?|all|and|are|as|at|by|code|complete[ds]?|conclusion|counts|details|end(ed|s)|errors?|everything|execution|"
    r"executive|exit|failed|final|findings?|finished|for|from|full|gate|got|ha(s|ve)|in|is|it|of|on|our|out|"
    r"outcomes?|output|overall|pass(ed|es|ing)?|pytest|quality|report(ed)?|results?|run(ning|s)?|s|score|skipped|stage|"
    r"status|successful(ly)?|suites?|summary|tests?|testing|that|the|their|there|these|this|to|total|verdict|"
    r"verification|warnings?|was|we|were|which|whole|with|xfailed|xpassed|deselected"
)


def counts(lines: Sequence[Line], evidence: EvidenceSet) -> Iterator[Claim]:
    """Yield what a page says of its test run, each statement beside that run and beside the earlier ones."""
    run, earlier = evidence.get(PytestRun), dict[str, tuple[int, int]]()
    why = f"no test run was seen: {evidence.why_missing(PytestRun)}"
    why = f"the test run cannot be believed ({run.process.ended})" if run else why

    def asked(answer: Callable[..., Answer], *about: object) -> Answer:
        believed = run and run.complete and not run.disagreements
        return answer(run, *about) if believed else (None, why)

    for line in lines:
        about = f"{' '.join(title for _, title in line.heads)} {line.text}"
        if line.form in {*BLOCKS, Form.BLANK} or not ABOUT_TESTS.search(about):
            continue
        if end := END.match(line.text):
            said, span = f"{end[1]} {_outcome(end[2])}", Span(line.number, 0, end.end())
            yield claim(line, asked(_test_end, end), said, span)
        elif code := EXIT.match(line.text):
            answer, span = asked(_exit, int(code[1]), _others(line, line.text)), Span(line.number, 0, code.end())
            yield claim(line, answer, f"exit code {code[1]}", span)
        else:
            for counted, every, text, span in _statements(line):
                others = _others(line, text)
                answer = asked(_agrees, counted, others, every)
                false = "" if others else _contradiction(counted, earlier, line.number)
                words = [*(f"{count} {name}" for name, count in counted.items()), *["every test passed"] * every]
                yield claim(line, (False, false) if false and answer[0] is None else answer, ", ".join(words), span)


def _outcome(word: str) -> str:
    return OUTCOMES[word[:3].lower()]


def _statements(line: Line) -> Iterator[tuple[dict[str, int], bool, str, Span]]:
    """Yield what is counted together, whether all tests are said to have passed, the words of that, and its place."""
    if label := LABEL.fullmatch(line.text):
        yield {_outcome(label[1]): int(label[2])}, False, "", Span(line.number)
    for sentence in SENTENCE.finditer(line.text) if not label and line.form is not Form.ROW else ():
        text = sentence[0]
        whole, every, counts = OF_TOTAL.search(text), ALL.search(text), [*COUNT.finditer(text)]
        said = {"passed": int(whole[1]), "total": int(whole[2])} if whole else {}
        at_once = all(said.setdefault(_outcome(match[2]), int(match[1])) == int(match[1]) for match in counts)
        if every and every[1]:
            said.setdefault("passed", int(every[1]))
        found = [match for match in (whole, every, *counts) if match]
        if found and at_once:  # else several things are counted here
            start, end = min(match.start() for match in found), max(match.end() for match in found)
            yield said, bool(every), text, Span(line.number, sentence.start() + start, sentence.start() + end)


def _others(line: Line, text: str) -> str:
    """Return the words of a statement and its heading that make it one about something else than the whole run."""
    words = PLAIN_WORD.findall(f"{line.heading} {ASIDE.sub(' ', text)}".lower())
    return " ".join(word for word in words if not WHOLE.fullmatch(word.strip("/.-")))


def _contradiction(said: Mapping[str, int], earlier: dict[str, tuple[int, int]], line: int) -> str:
    """Return why counts of the whole run cannot be true: more parts than tests, or others in an earlier line."""
    ended = sum(count for name, count in said.items() if name not in {"deselected", "total"})
    if ended > said.get("total", ended):
        return f"more tests ended than the {said['total']} that there are"
    for name, count in said.items():
        there, at = earlier.setdefault(name, (count, line))
        if there != count:
            return f"{count} {name} here, {there} {name} there (line {at})"
    return ""


def _agrees(run: PytestRun, said: Mapping[str, int], others: str, every: bool) -> Answer:
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


def _exit(run: PytestRun, code: int, others: str) -> Answer:
    return run.process.exit_code == code or (None if others else False), f"this run: {run.process.ended}"


def _test_end(run: PytestRun, end: re.Match[str]) -> Answer:
    name, outcome = end[1], _outcome(end[2])
    found = [test for test in run.tests if f"/{function_of(test.id)}".endswith((f"::{name}", f"/{name}"))]
    outcomes = sorted({test.outcome.value for test in found})
    if not found or (len(outcomes) > 1 and outcome in outcomes):
        return None, f"{len(found)} tests of this run have this name"
    return outcomes == [outcome], f"{' and '.join(outcomes)} in this run"
