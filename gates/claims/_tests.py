"""What a page says of a test run: counts, ends of single tests, exit code, duration."""

import re
from collections.abc import Iterator

from gates.claims._page import Form, Line, Page
from gates.claims._scope import part_of
from gates.claims.claim import AllPassed, Duration, ExitCode, TestCounts, TestEnd

N = r"(?<![\w.:/-])(\d{1,7})"
WORDS = "passed|failed|skipped|errors?|xfailed|xpassed|deselected"
COUNT = re.compile(rf"(?<!of )(?<!of the ){N} (?:tests? )?(?:were )?({WORDS})\b(?! ?[=:]| tests?\b)", re.IGNORECASE)
FOREIGN = re.compile(  # a list of counts of other things
    rf"(?:^|[,;(] ?|: ?|and ){N} (?!(?:{WORDS}|tests?|unit|distinct|warnings?|"
    r"subtests?|rerun\w*|deprecat\w*|pass\w*|fail\w*|of|in|out|s)\b)"
    rf"[a-z]+(?: [a-z]+)?(?=[,;.)]| and|$)"
)
TESTS_PASS = re.compile(rf"{N} (?:unit )?tests? (pass|fail)\b(?!\w)", re.IGNORECASE)
OF_TOTAL = re.compile(
    rf"{N} ?(?:/|of|out of) ?(\d{{1,7}})(?: tests?)?(?: are| were| have)? ?(pass(?:ed|ing|es)?)\b", re.IGNORECASE
)
TOTAL = re.compile(
    r"(?<!/)\b(?:total(?: tests)?|tests? (?:run|collected|total)|collected)\W{1,3}(\d{1,7})\b(?! ?%)",
    re.IGNORECASE,
)
LABEL = re.compile(
    r"(?:tests? )?(passed|failed|skipped|errors|xfailed|xpassed)(?: tests?)? ?: ?(\d{1,7})"
    r"(?: ?/ ?(\d{1,7}))?(?![\w.%])",
    re.IGNORECASE,
)
TESTS_TOTAL = re.compile(
    r"(?:total tests|tests? (?:run|total|collected)|total) ?: ?(\d{1,7})(?![\w.%/])", re.IGNORECASE
)
ALL = re.compile(
    r"\ball (?:(\d{1,7}) )?(?:unit |of the )?tests (?:have |were )?(?:pass(?:ed|"
    r"es|ing)?|succeed(?:ed)?|green)\b(?! on| in| only)",
    re.IGNORECASE,
)
END = re.compile(
    r"^((?:[\w./-]{1,120}\.py::)?(?:Test\w{0,80}::|(?=test_))[\w:]{0,120}test_\w{1,120}|"
    r"(?:[\w./-]{1,120}\.py::)[\w:]{1,120})(?:\[[^\]]{0,80}\])? ?(?:-|:|\u2013|"
    r"\u2014|\|)? ?(PASS(?:ED)?|FAIL(?:ED)?|SKIP(?:PED)?|ERROR|XFAIL(?:ED)?|XPASS(?:ED)?)"
    r"\b"
)
EXIT = re.compile(r"^(?:pytest |test )?exit (?:code|status) ?:? ?`?(-?\d{1,4})\b", re.IGNORECASE)
TIME = re.compile(
    r"^(?:test )?(?:duration|time)(?: of the tests)? ?: ?`?~?(\d{1,6}(?:\.\d{1,4})?) ?(s|sec|secs|seconds)\b",
    re.IGNORECASE,
)
SUITE_PATH = re.compile(
    r"(?:pytest|Test Suite:?|tests? in|Suite:)[^`|]{0,60}?(?<![\w/])((?:[\w.-]{1,60}/){0,8}(?:test_\w{1,80}|"
    r"\w{1,80}_test)\.py)"
)
HEDGED = re.compile(
    r"\b(should|must|would|could|will|if|when|until|once|unless|before|after|"
    r"expect\w*|requir\w*|needs?|ensure|targets?|goals?|"
    r"threshold|false|claims?|claimed|previous\w*|formerly|baseline|planned|used to|"
    r"make|verify that|prior|earlier)\b|\bv\d",
    re.IGNORECASE,
)
PAST = re.compile(
    r"\b(before|after|previous\w*|baseline|prior|earlier|expected|required|criteria|"
    r"action\w*|recommend\w*|example|entry points|history|run \d)\b|\bv\d+ ?(->|"
    r"\u2192|vs)"
)
ABOUT_TESTS = re.compile(r"\btest|suite|pytest")
SENTENCE = re.compile(r"(?<=[.;!?]) ")
SINGULAR = {"error": "error", "errors": "error", "pass": "passed", "fail": "failed"}
OUTCOMES = {
    "PASS": "passed",
    "FAIL": "failed",
    "SKIP": "skipped",
    "ERROR": "error",
    "XFAI": "xfailed",
    "XPAS": "xpassed",
}
Found = tuple[Line, TestCounts | AllPassed | TestEnd | ExitCode | Duration]


def tests(page: Page) -> Iterator[Found]:
    """Yield what a page says of its test run."""
    scopes = _scopes(page)
    for line in page.prose:
        if PAST.search(_heading(line)):
            continue
        end = END.match(line.text.replace("`", ""))
        if end:
            yield line, TestEnd(test=end[1], outcome=OUTCOMES[end[2][:4].upper()])
            continue
        yield from _of_line(line, scopes.get(line.number, ""))
    yield from _labelled(page, scopes)


def _of_line(line: Line, scope: str) -> Iterator[Found]:
    about_tests = ABOUT_TESTS.search(line.above)
    exit_code = EXIT.match(line.text)
    if exit_code and ABOUT_TESTS.search(f"{_heading(line) or line.above} {line.text.lower()}") and not _in_table(line):
        yield line, ExitCode(value=int(exit_code[1]), scope=scope)
    took = TIME.match(line.text)
    if took and (about_tests or "test" in line.text.lower()) and "suite" not in line.text.lower():
        yield line, Duration(seconds=float(took[1]))
    for sentence in SENTENCE.split(line.text) if not _in_table(line) else ():
        if not HEDGED.search(sentence):
            yield from _of_sentence(line, sentence, scope)


def _of_sentence(line: Line, text: str, scope: str) -> Iterator[Found]:
    counts = _counts(text)
    if not (counts or ALL.search(text)):
        return
    whole = OF_TOTAL.search(text)
    all_of = ALL.search(text)
    starts = [found.start() for found in (whole, all_of, COUNT.search(text), TESTS_PASS.search(text)) if found]
    part = part_of(line, text[: min(starts)])
    if all_of:
        yield line, AllPassed(scope=scope, part=part)
        if all_of[1] and "passed" not in counts:
            counts["passed"] = int(all_of[1])
    about_tests = ABOUT_TESTS.search(f"{line.above} {text.lower()}")
    if counts and (about_tests or (len(counts) > 1 and "execution" in line.above)):
        yield line, TestCounts(counts=counts, total=int(whole[2]) if whole else None, scope=scope, part=part)


def _heading(line: Line) -> str:
    return line.heads[-1][1].lower() if line.heads and line.heads[-1][0] > 1 else ""


def _in_table(line: Line) -> bool:
    return line.form is Form.ROW


def _counts(text: str) -> dict[str, int]:
    """Return the counts that a line names; a count of passes out of a total counts for the passes."""
    if FOREIGN.search(text):
        return {}
    found: dict[str, int] = {}
    whole = OF_TOTAL.search(text)
    if whole:
        found["passed"] = int(whole[1])
        text = text[: whole.start()] + text[whole.end() :]
    for match in (*COUNT.finditer(text), *TESTS_PASS.finditer(text)):
        word = match[2].lower()
        name = SINGULAR.get(word, word)
        if name in found and found[name] != int(match[1]):
            return {} if not whole else {"passed": found["passed"]}  # several things are counted here
        found[name] = int(match[1])
    return found


def _labelled(page: Page, scopes: dict[int, str]) -> Iterator[Found]:
    """Yield counts that stand as labels (`Passed: 16`), in entries or in a table, under a heading about tests."""
    for line in page.prose:
        if PAST.search(_heading(line)) or HEDGED.search(line.text):
            continue
        about_tests = ABOUT_TESTS.search(line.above) or ABOUT_TESTS.search(line.text.lower())
        text = ": ".join(line.cells[:2]) if len(line.cells) == 2 else line.text
        match = LABEL.match(text)
        if match and about_tests and (not line.cells or len(line.cells) == 2):
            total = int(match[3]) if match[3] else None
            name = SINGULAR.get(match[1].lower(), match[1].lower())
            yield line, TestCounts(counts={name: int(match[2])}, total=total, scope=scopes.get(line.number, ""),
                                   part=part_of(line, ""))  # fmt: skip
        whole = TESTS_TOTAL.match(text)
        if whole and about_tests and (not line.cells or len(line.cells) == 2) and "test" in text.lower():
            yield line, TestCounts(counts={"total": int(whole[1])}, scope=scopes.get(line.number, ""),
                                   part=part_of(line, ""))  # fmt: skip


def _scopes(page: Page) -> dict[int, str]:
    """Return of each line the test file that its section speaks of, where it names exactly one."""
    sections: dict[tuple[tuple[int, str], ...], set[str]] = {}
    for line in page.prose:
        for match in SUITE_PATH.finditer(line.text):
            sections.setdefault(line.heads, set()).add(match[1])
    found = {}
    for line in page.prose:
        for depth in range(len(line.heads), 0, -1):
            named = sections.get(line.heads[:depth])
            if named:
                found[line.number] = next(iter(named)) if len(named) == 1 else ""
                break
    return found
