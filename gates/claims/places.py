"""References of a page to lines of files, and the code that it quotes: looked up in the project."""

import re
from collections.abc import Iterator

from gates.claims.arithmetic import Found
from gates.claims.claim import Span
from gates.claims.page import Form, Line, Page
from gates.claims.sources import Sources

SUFFIXES = "py|pyi|ya?ml|toml|cfg|ini|md|rst|txt|json|sh|c|h|cc|cpp|cu|rs|go|java|js|ts|tsx|j2|html|css|sql"
FILE = rf"(?<![\w/.:@-])(?![A-Z]\w*\.js\b)(/?(?:[\w.@+-]{{1,80}}/){{0,12}}[\w.@+-]{{0,80}}\w\.(?:{SUFFIXES}))(?![\w/])"
SPAN = r"\d{1,7}(?: ?[-\u2013] ?\d{1,7})?"
SPANS = rf"({SPAN}(?: ?(?:,|and|&) ?(?:lines? )?{SPAN}){{0,12}})"
NAMED = re.compile(rf"{FILE}:{SPANS}(?![\w:]|\.\d)")
ANY_FILE = re.compile(FILE)
LOOSE = re.compile(rf"(?<![\w-])lines?:? {SPANS}(?!\w|\.\d| of | in | lines)", re.IGNORECASE)
SPAN_PART = re.compile(r"(\d{1,7})(?: ?[-\u2013] ?(\d{1,7}))?")
CODE = re.compile(r"`[^`]{1,300}`")
PLAIN_NAME = re.compile(r"[a-z]{1,30}")  # a word as well as a name
COMMAND = re.compile(r"(?:python3?|pytest|git|gates|pip|bash|sh|make|uv|\$) ")
CODE_BEFORE = re.compile(
    r"`([^`]{1,300})`(?:(?: (?:function|method|class|helper|callback|call|is|at|on|in)){1,2} ?[(\[]?| ?[(\[])$"
)
CALL_BEFORE = re.compile(r"(?<![\w`.])([A-Za-z_]\w{2,80}\(\))(?: [a-z]{1,15}){0,3} ?[(\[]$")
CODE_AFTER = re.compile(r"[)\]]? ?(?::|-|\u2013|\u2014|\(|returns|holds|contains|says|reads|calls) ?`([^`]{1,300})`")
PATH = re.compile(r"[^( ]{1,200}/[^( ]")
COUNTER = re.compile(
    r"\b(no|not|never|without|lacks?|missing|instead|should|must|add|replace[ds]?|remove[ds]?|was|were|previous\w*|old|"
    r"expected|required|absent|fix|use|before|formerly|delete[ds]?|need(?:s|ed)?)\b|n't\b",
    re.IGNORECASE,
)
NOT_AS_IT_IS = re.compile(
    r"\b(fix|should|expected|required|recommend\w*|proposed|missing|suggest\w*|instead|after|before|previous\w*|old|"
    r"was|remediation|example|wanted|trace|traceback|output)\b",
    re.IGNORECASE,
)
PRESENTED = re.compile(
    r"(?:current |actual |key )?(?:files?|location|path|source|module|implementation|target|where)\b"
    r"|`?[\w./-]{1,200}\.\w{1,5}\b",
    re.IGNORECASE,
)
SHOWN = re.compile(r": ?`[^`]{1,300}`\)")
WRONG_CODE = re.compile(r"#.{0,40}\b(should be|KeyError|fails?|crash\w*)\b")
MAX_QUOTE = 60
MIN_CODE = 4


def places(page: Page, files: Sources) -> Iterator[Found]:
    """Yield each reference to lines of a file, with the code beside it."""
    told = _Files()
    for line in page.prose:
        told.read(line)
        current = told.current(line)
        references = [*_references(line, current)]
        for path, spans, start, end in references:
            block = page.block_below(line.number) if len(references) == 1 else None
            quote = _quoted(line, block.language, block.lines) if block else ()
            code, first, last = (quote, start, end) if quote else _beside(line.text, start, end)
            covers = [Span(line=line.number, start=first, end=last)]
            if quote and block:
                covers += [Span(line=block.number + i) for i in range(len(block.lines[:MAX_QUOTE]))]
            yield Found(line, files.place(path, spans, code), tuple(covers))


class _Files:
    """Which file a bare `line 12` speaks of: the one that the section, the list or the line itself has named."""

    def __init__(self) -> None:
        self._named: list[tuple[int, str]] = []  # depth of the heading under which it was named, and the file

    def read(self, line: Line) -> None:
        """Note the file that a heading or a line presents."""
        depth = line.heads[-1][0] if line.heads else 0
        found = {match[1] for match in ANY_FILE.finditer(line.text)}
        presents = line.form is Form.HEADING or (line.form is not Form.ROW and found and PRESENTED.match(line.text))
        if presents:
            self._named = [(d, path) for d, path in self._named if d < depth]
        if presents and len(found) == 1:
            self._named.append((depth, found.pop()))

    def current(self, line: Line) -> str | None:
        """Return the file that a line speaks of, if that is one."""
        here = {match[1] for match in ANY_FILE.finditer(line.text)}
        if here or line.form is Form.ROW:
            return here.pop() if len(here) == 1 else None
        return self._named[-1][1] if self._named else None


def _spans(text: str) -> list[tuple[int, int]]:
    """Return the ranges of lines in `5`, `5-9` or `5-9, 12`; a range that runs backwards is left out."""
    found = [(int(part[1]), int(part[2] or part[1])) for part in SPAN_PART.finditer(text)]
    return [(first, last) for first, last in found if 0 < first <= last]


def _references(line: Line, current: str | None) -> Iterator[tuple[str, list[tuple[int, int]], int, int]]:
    """Yield the file, the ranges and the columns of each reference."""
    taken: list[tuple[int, int]] = []
    for match in NAMED.finditer(line.text):
        if _spans(match[2]) and "://" not in line.text[max(0, match.start() - 60) : match.end()]:
            taken.append(match.span())
            yield match[1], _spans(match[2]), match.start(), match.end()
    for match in LOOSE.finditer(line.text) if current else ():
        before = line.text[max(0, match.start() - 12) : match.start()].lower()
        inside = any(start <= match.start() < end for start, end in taken)
        if current and not inside and _spans(match[1]) and not before.endswith(("per ", "of ", "by ")):
            yield current, _spans(match[1]), match.start(), match.end()


def _beside(text: str, start: int, end: int) -> tuple[tuple[str, ...], int, int]:
    """Return the code right beside a reference, and the columns of both; none where the words deny it."""
    before, after = text[:start].removesuffix("`")[-400:], text[end:].removeprefix("`")
    if COUNTER.search(CODE.sub("", text)) and not (text[:start].endswith("(") and SHOWN.match(text[end:])):
        return (), start, end
    behind, call = CODE_AFTER.match(after), CALL_BEFORE.search(before)
    code = behind or CODE_BEFORE.search(before) or call
    if code is None or COMMAND.match(code[1]) or ANY_FILE.fullmatch(code[1]) or PATH.match(code[1]):
        return (), start, end
    if len(code[1].strip()) < MIN_CODE or (PLAIN_NAME.fullmatch(code[1].strip())):
        return (), start, end
    return (code[1],), *((start, end + behind.end() + 1) if behind else (start - len(code[0]) - 1, end))


def _quoted(line: Line, language: str, block: tuple[str, ...]) -> tuple[str, ...]:
    """Return the code of the block under a line that presents it as what stands there."""
    presents = line.text.rstrip("*_ ").endswith((":", "`", ")", "]")) or line.text[-1:].isdigit()
    if language not in {"", "python", "py", "yaml", "toml", "text"} or NOT_AS_IT_IS.search(line.text) or not presents:
        return ()
    shown = block[:MAX_QUOTE]
    return () if any(WRONG_CODE.search(text[:300]) for text in shown) else tuple(text for text in shown if text.strip())
