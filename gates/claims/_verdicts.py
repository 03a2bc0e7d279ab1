"""What a page decides: its verdict, the status of criteria, the coverage that it states, the length of files."""

import re
from collections.abc import Iterator

from gates.claims._page import Form, Line, Page
from gates.claims._places import ANY_FILE
from gates.claims._scope import is_general, part_of
from gates.claims._sums import digits
from gates.claims.claim import Coverage, CriterionStatus, Length, Verdict
from gates.model import Decision

LABELS = r"(?i:(?:final |gate )?(?:decision|verdict|recommendation|overall status|overall result|overall verdict))"
WORD = r"(PASS(?:ED)?|BLOCK(?:ED)?|FAIL(?:ED)?|APPROVED?|REJECT(?:ED)?|INCONCLUSIVE)"
DECISION = re.compile(rf"^{LABELS} ?[:\u2013\u2014-] ?`?{WORD}\b(?! ?(?:\(|if\b|when\b|with\b|after\b|/|\|))")
DECISION_INCONCLUSIVE = re.compile(rf"^{LABELS} ?: ?`?BLOCK \(inconclusive\)")
TOP = re.compile(rf"^(?i:status|result|task verdict) ?: ?`?{WORD}\b(?! ?(?:\(|if\b|with\b|/|\|))")
APPROVED = re.compile(r"^(APPROVED|REJECTED)(?: FOR [A-Z]+)?[.!]?$")
COVERAGE = re.compile(
    r"^(?:(?:overall|total|test|code|line|statement) ){0,2}coverage ?: ?`?~?(\d{1,3}(?:\.\d{1,2})?) ?%", re.IGNORECASE
)
OF_REQUIREMENTS = re.compile(r"requirement|criteri|business|accept|traceab")
LENGTH = re.compile(r"^(?:lines of code|loc|total lines|line count) ?: ?(\d{1,6})\b(?! ?[/-])", re.IGNORECASE)
STATUS = re.compile(r"^\W{0,3}(PASS(?:ED)?|MET|VERIFIED|IMPLEMENTED|FAIL(?:ED)?|NOT MET|NOT IMPLEMENTED|NOT VERIFIED)$")
ID = re.compile(r"(?:AC|REQ|R|C)[ #-]?\d{1,3}")
GATES = {"execution": "execution", "business logic": "business-logic", "business-logic": "business-logic",
         "performance": "performance"}  # fmt: skip
DECISIONS = {"PAS": Decision.PASS, "APP": Decision.PASS, "INC": Decision.INCONCLUSIVE}
GOOD = {"PASS", "PASSED", "MET", "VERIFIED", "IMPLEMENTED"}
Found = tuple[Line, Verdict | CriterionStatus | Coverage | Length]


def verdicts(page: Page) -> Iterator[Found]:
    """Yield what a page decides."""
    gate = _gate(page)
    for line in page.prose:
        decision = _decision(line)
        if decision and is_general(line):
            own = "" if line.text.lower().startswith("task") else gate
            yield line, Verdict(gate=own, decision=decision)
        covered = COVERAGE.match(line.text)
        if covered and not part_of(line, "") and not OF_REQUIREMENTS.search(line.above) and float(covered[1]) <= 100:
            yield line, Coverage(percent=float(covered[1]), digits=digits(covered[1]))
        if line.form is Form.ROW and len(line.cells) > 2:
            yield from _criterion(line)
    yield from _lengths(page)


def _gate(page: Page) -> str:
    """Return the gate that the title of a report speaks of, if it speaks of one."""
    title = next((line.text.lower() for line in page.lines if line.form is Form.HEADING), "")
    named = {gate for words, gate in GATES.items() if words in title}
    return named.pop() if len(named) == 1 else ""


def _decision(line: Line) -> Decision | None:
    if line.form is Form.ROW:
        return None
    if DECISION_INCONCLUSIVE.match(line.text):
        return Decision.INCONCLUSIVE
    match = DECISION.match(line.text) or (APPROVED.match(line.text) if line.text.isupper() else None)
    if match is None and all(level < 2 for level, _ in line.heads):
        match = TOP.match(line.text)
    return DECISIONS.get(match[1][:3], Decision.BLOCK) if match else None


def _criterion(line: Line) -> Iterator[Found]:
    """Yield the status that a row of a table gives to a criterion, where one cell is nothing but a status."""
    named = ID.fullmatch(line.cells[0].replace("`", ""))
    said = [match[1] for cell in line.cells[1:] if (match := STATUS.match(cell.replace("`", "")))]
    if named and len(said) == 1:
        yield line, CriterionStatus(criterion=re.sub(r"[ #-]", "", named[0]), met=said[0] in GOOD)


def _lengths(page: Page) -> Iterator[Found]:
    """Yield the number of lines that a section gives to the one file that its heading names."""
    for line in page.prose:
        match = LENGTH.match(line.text)
        files = {m[1] for m in ANY_FILE.finditer(line.heads[-1][1])} if line.heads else set()
        if match and len(files) == 1:
            yield line, Length(path=files.pop(), lines=int(match[1]))
