"""What a page says of a test run, and whether the records of a run agree."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gates.check import EvidenceSet
from gates.claims.page import Answer, Form, Line, Page, Said, Span, answer
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import TestOutcome, TestRecord, function_of

BAD = {TestOutcome.FAILED, TestOutcome.ERROR}
OUTCOMES = {"err": "error", "pas": "passed", "fai": "failed", "ski": "skipped", "xfa": "xfailed", "xpa": "xpassed"} | {
    "des": "deselected"
}
N = r"(?<![\w.:/-])(\d{1,7})"
WORDS = "passed|failed|skipped|errors?|xfailed|xpassed|deselected"
COUNT = re.compile(
    rf"(?<!of )(?<!of the ){N} (?:tests? )?(?:were )?({WORDS}|(?<=tests )(?:pass|fail))\b(?! ?[=:]| tests?\b)",
    re.IGNORECASE,
)
FOREIGN = re.compile(  # a list of counts of other things
    rf"(?:^|[,;(] ?|: ?|and ){N} (?!(?:{WORDS}|tests?|unit|distinct|warnings?|subtests?|rerun\w*|deprecat\w*|pass\w*|"
    rf"fail\w*|of|in|out|s)\b)[a-z]+(?: [a-z]+)?(?=[,;.)]| and|$)"
)
OF_TOTAL = re.compile(
    rf"{N} ?(?:/|of|out of) ?(\d{{1,7}})(?: tests?)?(?: are| were| have)? ?pass(?:ed|ing|es)?\b", re.IGNORECASE
)
LABEL = re.compile(
    rf"^(?:tests? )?(?P<what>{WORDS}|total tests|tests? total)(?: tests?)?(?: ?: ?| \| )(?P<count>\d{{1,7}})"
    r"(?: ?/ ?(?P<total>\d{1,7}))?(?![\w.%])(?! \| )",
    re.IGNORECASE,
)
ALL = re.compile(
    r"\ball (?:(\d{1,7}) )?(?:unit |of the )?tests (?:have |were )?(?:pass(?:ed|es|ing)?|succeed(?:ed)?|green)\b"
    r"(?! on| in| only)",
    re.IGNORECASE,
)
END = re.compile(
    r"^((?:[\w./-]{1,120}\.py::)?(?:Test\w{0,80}::|(?=test_))[\w:]{0,120}test_\w{1,120}"
    r"|(?:[\w./-]{1,120}\.py::)[\w:]{1,120})(?:\[[^\]]{0,80}\])? ?(?:-|:|\u2013|\u2014|\|)? ?"
    r"(PASS|FAIL|SKIP|ERR|XFAIL|XPASS)(?:ED|PED|OR)?\b"
)
EXIT = re.compile(r"^(?:pytest |test )?exit (?:code|status) ?:? ?`?(-?\d{1,4})\b", re.IGNORECASE)
ABOUT_TESTS = re.compile(r"\btest|suite|pytest", re.IGNORECASE)
PAST = re.compile(
    r"\b(before|after|previous\w*|baseline|prior|earlier|expected|required|criteria|action\w*|recommend\w*|example|"
    r"entry points|history|comparison|iteration|run \d)\b|\bv\d+",
    re.IGNORECASE,
)
HEDGED = re.compile(
    r"\b(should|must|would|could|will|if|when|until|once|unless|before|after|expect\w*|requir\w*|needs?|ensure|targets?|"
    r"goals?|threshold|false|claims?|claimed|previous\w*|formerly|baseline|planned|used to|make|verify that|prior|"
    r"earlier)\b|\bv\d",
    re.IGNORECASE,
)
SENTENCE = re.compile(r"[^.;!?]+(?:[.;!?](?! )[^.;!?]*)*[.;!?]? ?")
WHOLE = frozenset(
    re.findall(
        r"\S+",
        """
        a all an analysis and are as at by code command complete completed completes conclusion counts criteria
        decision despite details ended ends everything execution executive exit final finding findings finished for
        from full gate got has have in is it numbers of on our out outcome output overall pass passed passes passing
        pytest quality report reported result results run running runs score stage status successful successfully
        suite suites summary test testing tests that the their there these this to total verdict verification was we
        were which whole with
        """,
    )
)
PLAIN_WORD = re.compile(r"[a-z][a-z0-9_./-]{0,80}")


class Stated(NamedTuple):
    """A statement about a test run, and where it stands."""

    line: Line
    said: Said
    span: Span


def statements(page: Page) -> Iterator[Stated]:
    """Yield what a page says of its test run."""
    for line in page.prose:
        if not PAST.search(line.heading):
            yield from _of_line(line, " ".join(title for _, title in line.heads))


def _of_line(line: Line, heads: str) -> Iterator[Stated]:
    plain = line.text.replace("`", " ")
    end, ended, label = END.match(plain.strip()), EXIT.match(line.text), LABEL.match(plain.strip())
    about = ABOUT_TESTS.search(f"{heads} {line.text}")
    if end:
        said = Said(test=end[1], outcome=OUTCOMES[end[2][:3].lower()])
        yield Stated(line, said, Span(line=line.number, end=end.end() + 4))
    elif label and about and not HEDGED.search(line.text):
        name = "total" if "total" in label["what"].lower() else OUTCOMES[label["what"][:3].lower()]
        counts = {name: int(label["count"]), **({"total": int(label["total"])} if label["total"] else {})}
        span = Span(line=line.number, end=label.end() + 4)
        yield Stated(line, Said(counts=counts, part=_part_of(line, "")), span)
    elif ended and line.form is not Form.ROW and ABOUT_TESTS.search(f"{line.heading or heads} {line.text}"):
        yield Stated(
            line, Said(exit_code=int(ended[1]), part=_part_of(line, "")), Span(line=line.number, end=ended.end())
        )
    elif line.form is not Form.ROW:
        for sentence in SENTENCE.finditer(line.text):
            if not HEDGED.search(sentence[0]):
                yield from _of_sentence(line, sentence, heads)


def _of_sentence(line: Line, sentence: re.Match[str], heads: str) -> Iterator[Stated]:
    text = sentence[0]
    whole, every = OF_TOTAL.search(text), ALL.search(text)
    counts = {"passed": int(whole[1]), "total": int(whole[2])} if whole else {}
    left = f"{text[: whole.start()]}{' ' * len(whole[0])}{text[whole.end() :]}" if whole else text
    found = [*filter(None, (whole, every)), *COUNT.finditer(left)]
    for match in COUNT.finditer(left):
        if counts.setdefault(OUTCOMES[match[2][:3].lower()], int(match[1])) != int(match[1]):
            return  # several things are counted here
    if every and every[1]:
        counts.setdefault("passed", int(every[1]))
    about = ABOUT_TESTS.search(f"{heads} {text}") or (len(counts) > 1 and "execution" in heads.lower())
    if found and about and not FOREIGN.search(text):
        start, end = min(match.start() for match in found), max(match.end() for match in found)
        said = Said(counts=counts, all_passed=bool(every), part=_part_of(line, text[:start]))
        yield Stated(line, said, Span(line=line.number, start=sentence.start() + start, end=sentence.start() + end))


def _part_of(line: Line, before: str) -> str:
    """Return the words before a statement in its line or in its heading that make it one about a part."""
    heading = line.heading if line.form is not Form.HEADING else ""
    words = PLAIN_WORD.findall(f"{heading} {before}".lower())
    return " ".join(word for word in words if word.strip("/.-") not in WHOLE)


def contradiction(said: Said, earlier: dict[str, tuple[int, int]], line: int) -> str:
    """Return why counts of the whole run cannot be true: more parts than tests, or others in an earlier line."""
    counts = {} if said.part else said.counts
    if sum(count for name, count in counts.items() if name not in {"deselected", "total"}) > counts.get("total", 10**9):
        return f"more tests ended than the {counts['total']} that there are"
    for name, count in counts.items():
        there, at = earlier.setdefault(name, (count, line))
        if there != count:
            return f"{count} {name} here, {there} {name} there (line {at})"
    return ""


def rule(said: Said, evidence: EvidenceSet) -> Answer:
    """Answer a statement; without a run, or from one that cannot be believed, or about a part, it is unsupported."""
    run = evidence.get(PytestRun)
    expected = ", ".join(f"{count} {name}" for name, count in said.counts.items())
    expected = ", ".join(filter(None, [expected, "every test passed" if said.all_passed else ""]))
    expected = expected or (f"{said.test} {said.outcome}" if said.test else f"exit code {said.exit_code}")
    if run is None:
        return answer(None, expected, f"no test run was seen: {evidence.why_missing(PytestRun)}")
    if not run.complete or run.disagreements:
        return answer(None, expected, f"the test run of this evidence cannot be believed ({run.process.ended})")
    if said.exit_code is not None:
        same = run.process.exit_code == said.exit_code
        return answer(same or (None if said.part else False), expected, f"this run: {run.process.ended}")
    if said.test:
        return _test_end(said, run, expected)
    seen = {name: sum(test.outcome.value == name for test in run.tests) for name in said.counts}
    seen |= {"total": len(run.tests), "deselected": len(run.deselected)} if seen else {}
    agree = all(seen[name] == count for name, count in said.counts.items())
    good, why = _all(run.tests) if said.all_passed else (True, "")
    shown = [
        *(f"{seen[name]} {name}" for name in said.counts if name != "total"),
        f"{len(run.tests)} tests in all",
        why,
    ]
    if said.part and not (agree and good):
        return answer(None, expected, f"it speaks of a part ({said.part:.40}) that this run does not know")
    return answer(good if agree else False, expected, ", ".join(filter(None, shown)))


def _all(tests: Sequence[TestRecord]) -> tuple[bool | None, str]:
    """Return whether all tests passed: no with a failure, not known with one that did not run."""
    bad = [test for test in tests if test.outcome in BAD]
    left = bad or [test for test in tests if not test.passed]
    if not left:
        return True, ""
    return (False if bad else None), f"{len(left)} did not pass, first {left[0].id}: {left[0].ended}"


def _test_end(said: Said, run: PytestRun, expected: str) -> Answer:
    ends = (f"::{said.test}", f"/{said.test}")
    found = [
        test
        for test in run.tests
        if any(known == said.test or known.endswith(ends) for known in (test.id, function_of(test.id)))
    ]
    outcomes = sorted({test.outcome.value for test in found})
    if not found or (len(outcomes) > 1 and said.outcome in outcomes):
        return answer(None, expected, f"{len(found)} tests of this run have this name")
    return answer(outcomes == [said.outcome], expected, f"{' and '.join(outcomes)} in this run", found[0].location)
