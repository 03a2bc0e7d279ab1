"""What `gates audit` does: look at what a report speaks of, or at a run of tests, and say which of its claims hold."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from gates import store
from gates.check import EvidenceSet
from gates.child.guardian import guarded_folder
from gates.claims import Answer, Claim, Form, Line, Sources, Span, Standing, claim, lines_of, quotes, sums
from gates.config import Project
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import BAD, Out, function_of
from gates.project.policy import TEMPLATES
from gates.render.markdown import page
from gates.task import loading
from gates.task.yaml_source import text_of
from gates.words import first_of, grouped, visible

NUMBER = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ][\d:.]{1,20}Z?)?|(?<![\w.])\d{1,40}(?:\.\d{1,40}){0,9}(?:e[+-]?\d{1,4})?(?!\w{0,80}\d)"
)
ORDER = (Standing.CONTRADICTED, Standing.UNSUPPORTED, Standing.CONFIRMED)
WIDE = 100  # characters of a cell on a terminal
LISTED = 60  # lines with numbers that were not understood
MAX_BYTES, MAX_CLAIMS = 2 * 1024 * 1024, 5000


class Audited(NamedTuple):
    """The claims of a report, what is wrong first, how many numbers it has, and the line of each not understood."""

    claims: Sequence[Claim]
    numbers: int
    left: Sequence[int]

    def __str__(self) -> str:
        """Return the counts in one sentence each."""
        found = [each.standing for each in self.claims]
        by_standing = ", ".join(f"{found.count(each)} {each.value}" for each in Standing)
        lines = [*dict.fromkeys(self.left)]
        where = f"; not understood: lines {first_of(lines, LISTED)}" if lines else ""
        known = f"{self.numbers - len(self.left)} of {self.numbers}"
        return f"{len(found)} claims: {by_standing}. {known} numbers were computed again or found{where}."


def audited(text: str, files: Sources, evidence: EvidenceSet) -> Audited:
    """Look at every claim of a page; what an audit in it retells of another page is not its own."""
    lines = [line for line in lines_of(text) if not (line.heads and line.heads[0][1].startswith("Audit of "))]
    each = (sums(lines), quotes(lines, files), counts(lines, evidence))
    claims = [*chain.from_iterable(islice(found, MAX_CLAIMS) for found in each)][:MAX_CLAIMS]
    settled = [one for one in claims if one.standing is not Standing.UNSUPPORTED]
    covered = grouped((span for one in settled for span in one.covers), lambda span: span.line)
    numbers = [(line.number, match.start()) for line in lines for match in NUMBER.finditer(line.text)]
    left = [line for line, at in numbers if not any(span.start <= at < span.end for span in covered[line])]
    return Audited(sorted(claims, key=lambda one: (ORDER.index(one.standing), one.at)), len(numbers), left)


def perform(report: Path, project: Project, *, task: str | None, out: Path | None) -> tuple[str, int]:
    """Audit a report, with the tests of a task if asked; return the summary, and 1 contradicted, 3 unconfirmed, 0."""
    shown = (report.relative_to(project.root) if report.is_relative_to(project.root) else report).as_posix()
    evidence = EvidenceSet(why="" if task else "no task was named whose tests could be run (--task)")
    with guarded_folder() as folder:
        if task:
            evidence.collect(PytestRun, loading.of_project(task, project), project.context(folder))
    found = audited(text_of(report, shown, MAX_BYTES), Sources(project.root), evidence)
    rows = [(one.standing.value, f"{shown}:{one.at}", one.text, one.claimed, one.seen) for one in found.claims]
    if out:
        against = f"the tests of {task}" if task else "itself and the project's files"
        values = {"shown": shown, "against": against, "said": str(found), "rows": rows}
        store.write_page(out, page("claims.md.j2", project.root / TEMPLATES, **values))
    standings = {each.standing for each in found.claims}
    code = 1 if Standing.CONTRADICTED in standings else 0 if Standing.CONFIRMED in standings else 3
    return "\n".join([f"{shown}: {found}", "", *map(_block, rows), ""]), code


def _block(row: Sequence[str]) -> str:
    """Return a claim for a terminal: where it stands, then what is claimed and what was seen."""
    short = (" ".join(cell.split()) for cell in row)
    standing, place, said, claimed, seen = (visible(c if len(c) <= WIDE else f"{c[:WIDE]} [...]") for c in short)
    return f"{standing.upper():<13} {place}  {said}\n{'':<13} claimed: {claimed}\n{'':<13} seen:    {seen}"


NAMES = ("error", "passed", "failed", "skipped", "xfailed", "xpassed", "deselected", "total")
EXIT_CODE = "exit code"
OUTCOMES = {name[:3]: name for name in NAMES}
N = r"(?<![\w.:/-])(\d{1,7})"
WORDS = "passed|failed|skipped|errors?|xfailed|xpassed|deselected"
COUNT = re.compile(rf"(?<!of ){N} (?:tests? )?({WORDS})\b(?! ?[=:]| tests?\b)", re.IGNORECASE)
OF_TOTAL = re.compile(rf"{N} ?(?:/|of|out of) ?(\d{{1,7}})(?: tests?)? ?pass(?:ed|ing|es)?\b", re.IGNORECASE)
LABEL = re.compile(rf"(?i)(?:tests? )?({WORDS}|total)(?: tests?)?(?: ?: ?| \| )(\d{{1,7}})(?![\w.%/])(?! \| )")
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
    """Yield what a page says of its test run, each statement beside that run."""
    run = evidence.get(PytestRun)
    why = f"no test run was seen: {evidence.why_missing(PytestRun)}"
    why = f"the test run cannot be believed ({run.process.ended})" if run else why
    run = run if run and run.complete else None
    for line in lines:
        about = f"{' '.join(title for _, title in line.heads)} {line.text}"
        if line.form is Form.CODE or not line.text or not ABOUT_TESTS.search(about):
            continue
        if end := END.match(line.text):
            answer = _test_end(run, end) if run else (None, why)
            yield claim(line, answer, f"{end[1]} {_outcome(end[2])}", Span(line.number, 0, end.end()))
            continue
        for said, text, span in _statements(line):
            yield claim(line, _agrees(run, said, _others(line, text)) if run else (None, why), _told(said), span)


def _outcome(word: str) -> str:
    return OUTCOMES[word[:3].lower()]


def _told(said: Mapping[str, int | None]) -> str:
    return ", ".join(f"exit code {count}" if name == EXIT_CODE else f"{count} {name}" for name, count in said.items())


def _statements(line: Line) -> Iterator[tuple[dict[str, int], str, Span]]:
    """Yield what is counted together, the words of that, and its place."""
    if code := EXIT.match(line.text):
        yield {EXIT_CODE: int(code[1])}, line.text, Span(line.number, 0, code.end())
    elif label := LABEL.fullmatch(line.text):
        yield {_outcome(label[1]): int(label[2])}, "", Span(line.number)
    elif line.form is not Form.ROW:
        for sentence in SENTENCE.finditer(line.text):
            text = sentence[0]
            found = [(match, _outcome(match[2]), match[1]) for match in COUNT.finditer(text)]
            if whole := OF_TOTAL.search(text):
                found += [(whole, "passed", whole[1]), (whole, "total", whole[2])]
            if every := ALL.search(text):
                found += [(every, "not passed", "0"), *([(every, "passed", every[1])] if every[1] else [])]
            said = {name: int(count) for _, name, count in found}
            if found and all(said[name] == int(count) for _, name, count in found):  # else of several things
                start, end = min(match.start() for match, *_ in found), max(match.end() for match, *_ in found)
                yield said, text, Span(line.number, sentence.start() + start, sentence.start() + end)


def _others(line: Line, text: str) -> str:
    """Return the words of a statement and its heading that make it one about something else than the whole run."""
    heading = next((title for level, title in line.heads[-1:] if level > 1), "")  # that of the page says nothing
    words = PLAIN_WORD.findall(f"{heading} {ASIDE.sub(' ', text)}".lower())
    return " ".join(word for word in words if not WHOLE.fullmatch(word.strip("/.-")))


def _agrees(run: PytestRun, said: Mapping[str, int], others: str) -> Answer:
    """Compare counts with a run; a skipped test is no failure, and leaves open whether every test passed."""
    ends, left = Counter(test.outcome.value for test in run.tests), [test for test in run.tests if not test.passed]
    bad = [test for test in left if test.outcome in BAD]
    seen = {name: ends[name] for name in NAMES} | {"total": len(run.tests), "not passed": len(left)}
    seen |= {"deselected": len(run.out(Out.DESELECTED)), EXIT_CODE: run.process.exit_code or 0}
    wrong = {name for name, count in said.items() if seen[name] != count}
    if wrong and others:
        return None, f"it speaks of a part ({others:.40}) that this run does not know"
    first = [f"first {test.id}: {test.ended}" for test in (bad or left)[:1] if "not passed" in wrong]
    told = [_told({name: seen[name] for name in said}), f"{len(run.tests)} tests in all", *first]
    return None if wrong == {"not passed"} and not bad else not wrong, ", ".join(told)


def _test_end(run: PytestRun, end: re.Match[str]) -> Answer:
    name, outcome = end[1], _outcome(end[2])
    found = [test for test in run.tests if f"/{function_of(test.id)}".endswith((f"::{name}", f"/{name}"))]
    outcomes = sorted({test.outcome.value for test in found})
    if not found or (len(outcomes) > 1 and outcome in outcomes):
        return None, f"{len(found)} tests of this run have this name"
    return outcomes == [outcome], f"{' and '.join(outcomes)} in this run"
