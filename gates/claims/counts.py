"""What a page says of a test run: counts, ends of tests, an exit code; beside the records of the run."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from gates.check import EvidenceSet
from gates.claims.page import Claim, Form, Line, Span, Standing, claim
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import TestOutcome, TestRecord, function_of
from gates.model import Location

BAD = {TestOutcome.FAILED, TestOutcome.ERROR}
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
Told = tuple[bool | None, str, Location | None]
Asked = Callable[[PytestRun], Told]


def counts(lines: Sequence[Line], evidence: EvidenceSet) -> Iterator[Claim]:
    """Yield what a page says of its test run, each statement beside that run and beside the earlier ones."""
    earlier: dict[str, tuple[int, int]] = {}
    for line in lines:
        about = ABOUT_TESTS.search(f"{' '.join(title for _, title in line.heads)} {line.text}")
        if line.form in {Form.CODE, Form.BLANK} or not about:
            continue
        if end := END.match(line.text):
            said = f"{end[1]} {OUTCOMES[end[2][:3].lower()]}"
            yield _told(line, evidence, said, partial(_test_end, end), Span(line.number, 0, end.end()))
        elif code := EXIT.match(line.text):
            asked = partial(_exit, int(code[1]), whole=not _part(line, line.text))
            yield _told(line, evidence, f"exit code {code[1]}", asked, Span(line.number, 0, code.end()))
        elif label := LABEL.fullmatch(line.text):
            yield _counted(line, evidence, {OUTCOMES[label[1][:3].lower()]: int(label[2])}, earlier, Span(line.number))
        elif line.form is not Form.ROW:
            for sentence in SENTENCE.finditer(line.text):
                yield from _of_sentence(line, sentence, evidence, earlier)


def _of_sentence(
    line: Line, sentence: re.Match[str], evidence: EvidenceSet, earlier: dict[str, tuple[int, int]]
) -> Iterator[Claim]:
    text = sentence[0]
    whole, every = OF_TOTAL.search(text), ALL.search(text)
    told = {"passed": int(whole[1]), "total": int(whole[2])} if whole else {}
    found = [match for match in (whole, every, *COUNT.finditer(text)) if match]
    for match in COUNT.finditer(text):
        if told.setdefault(OUTCOMES[match[2][:3].lower()], int(match[1])) != int(match[1]):
            return  # several things are counted here
    if every and every[1]:
        told.setdefault("passed", int(every[1]))
    if found:
        start, end = min(match.start() for match in found), max(match.end() for match in found)
        span = Span(line.number, sentence.start() + start, sentence.start() + end)
        yield _counted(line, evidence, told, earlier, span, text=text, every=bool(every))


def _part(line: Line, text: str) -> str:
    """Return the words of a statement and its heading that make it one about something else than the whole run."""
    words = PLAIN_WORD.findall(f"{line.heading} {ASIDE.sub(' ', text)}".lower())
    return " ".join(word for word in words if word.strip("/.-") not in WHOLE)


def _counted(
    line: Line,
    evidence: EvidenceSet,
    told: Mapping[str, int],
    earlier: dict[str, tuple[int, int]],
    span: Span,
    *,
    text: str = "",
    every: bool = False,
) -> Claim:
    part = _part(line, text)
    said = ", ".join([*(f"{count} {name}" for name, count in told.items()), *["every test passed"] * every])
    found = _told(line, evidence, said, partial(_agrees, told, part=part, every=every), span)
    why = "" if part else _contradiction(told, earlier, line.number)
    return claim(line, False, said, why, (span,)) if why and found.standing is Standing.UNSUPPORTED else found


def _contradiction(told: Mapping[str, int], earlier: dict[str, tuple[int, int]], line: int) -> str:
    """Return why counts of the whole run cannot be true: more parts than tests, or others in an earlier line."""
    ended = sum(count for name, count in told.items() if name not in {"deselected", "total"})
    if ended > told.get("total", ended):
        return f"more tests ended than the {told['total']} that there are"
    for name, count in told.items():
        there, at = earlier.setdefault(name, (count, line))
        if there != count:
            return f"{count} {name} here, {there} {name} there (line {at})"
    return ""


def _told(line: Line, evidence: EvidenceSet, said: str, asked: Asked, span: Span) -> Claim:
    """Answer a statement by the run; without one, or from one that cannot be believed, it is unsupported."""
    run = evidence.get(PytestRun)
    if run is None:
        return claim(line, None, said, f"no test run was seen: {evidence.why_missing(PytestRun)}", (span,))
    if not run.complete or run.disagreements:
        return claim(line, None, said, f"the test run cannot be believed ({run.process.ended})", (span,))
    good, seen, where = asked(run)
    return claim(line, good, said, seen, (span,), where)


def _agrees(told: Mapping[str, int], run: PytestRun, *, part: str, every: bool) -> Told:
    seen = {name: sum(test.outcome.value == name for test in run.tests) for name in told}
    seen |= {"total": len(run.tests), "deselected": len(run.deselected)} if seen else {}
    good, why = _all(run.tests) if every else (True, "")
    good = good if all(seen[name] == count for name, count in told.items()) else False
    if part and good is not True:
        return None, f"it speaks of a part ({part:.40}) that this run does not know", None
    shown = [f"{seen[name]} {name}" for name in told if name != "total"]
    return good, ", ".join(filter(None, [*shown, f"{len(run.tests)} tests in all", why])), None


def _all(tests: Sequence[TestRecord]) -> tuple[bool | None, str]:
    """Return whether all tests passed: no with a failure, not known with one that did not run."""
    bad = [test for test in tests if test.outcome in BAD]
    left = bad or [test for test in tests if not test.passed]
    if not left:
        return True, ""
    return (False if bad else None), f"{len(left)} did not pass, first {left[0].id}: {left[0].ended}"


def _exit(code: int, run: PytestRun, *, whole: bool) -> Told:
    good = run.process.exit_code == code
    return (good or (False if whole else None)), f"this run: {run.process.ended}", None


def _test_end(end: re.Match[str], run: PytestRun) -> Told:
    name, outcome = end[1], OUTCOMES[end[2][:3].lower()]
    ends = (f"::{name}", f"/{name}")
    ids = [(test, known) for test in run.tests for known in (test.id, function_of(test.id))]
    found = [test for test, known in ids if known == name or known.endswith(ends)]
    outcomes = sorted({test.outcome.value for test in found})
    if not found or (len(outcomes) > 1 and outcome in outcomes):
        return None, f"{len({test.id for test in found})} tests of this run have this name", None
    return outcomes == [outcome], f"{' and '.join(outcomes)} in this run", found[0].location
