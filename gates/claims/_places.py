"""References to lines of files in a page, with the code or the symbol that is said to stand there."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gates.claims._page import Form, Line, Page
from gates.claims.claim import Place

SUFFIXES = "py|pyi|ya?ml|toml|cfg|ini|md|rst|txt|json|sh|c|h|cc|cpp|cu|rs|go|java|js|ts|tsx|j2|html|css|sql"
FILE = rf"(?<![\w/.:@-])(?![A-Z]\w*\.js\b)(/?(?:[\w.@+-]{{1,80}}/){{0,12}}[\w.@+-]{{0,80}}\w\.(?:{SUFFIXES}))(?![\w/])"
SPAN = r"\d{1,7}(?: ?[-\u2013] ?\d{1,7})?"
SPANS = rf"({SPAN}(?: ?(?:,|and|&) ?(?:lines? )?{SPAN}){{0,12}})"
NAMED = re.compile(rf"{FILE}:{SPANS}(?![\w:]|\.\d)")
ANY_FILE = re.compile(FILE)
LOOSE = re.compile(rf"(?<![\w-])lines?:? {SPANS}(?!\w|\.\d)", re.IGNORECASE)
SPAN_PART = re.compile(r"(\d{1,7})(?: ?[-\u2013] ?(\d{1,7}))?")
CODE = re.compile(r"`([^`]{1,300})`")
NAME = re.compile(r"[A-Za-z_]\w{2,80}")
CALL_OR_NAME = re.compile(r"([A-Za-z_]\w{2,80})(?:\(\))?")
WORDS = "function|method|class|helper|callback|call|is|at|on|in"
NEAR_CODE_BEFORE = re.compile(rf"`([^`]{{1,300}})`(?:(?: (?:{WORDS})){{1,2}} ?[(\[]?| ?[(\[])$")
COMMAND = re.compile(r"(?:python3?|pytest|git|gates|pip|bash|sh|make|uv|\$) ")
NEAR_CALL_BEFORE = re.compile(r"(?<![\w`.])([A-Za-z_]\w{2,80})\(\)(?: [a-z]{1,15}){0,3} ?[(\[]$")
NEAR_CODE_AFTER = re.compile(r"[)\]]? ?(?::|-|\u2013|\u2014|\() ?`([^`]{1,300})`")
NEAR_NAME_AFTER = re.compile(r"`? ?\(([A-Za-z_]\w{2,80})(?:\(\))?\)")
COUNTER = re.compile(
    r"\b(no|not|never|without|lacks?|missing|instead|should|must|add|replace[ds]?|"
    r"remove[ds]?|was|were|previous\w*|old|expected|"
    r"required|absent|fix|use|before|formerly|delete[ds]?|need(?:s|ed)?)\b|n't\b",
    re.IGNORECASE,
)
NOT_AS_IT_IS = re.compile(
    r"\b(fix|should|expected|required|recommend\w*|proposed|missing|suggest\w*|"
    r"instead|after|before|previous\w*|old|was|"
    r"remediation|example|wanted|trace|traceback|output)\b",
    re.IGNORECASE,
)
PRESENTED = re.compile(
    r"(?:current |actual |key )?(?:files?|location|path|source|module|implementation|target|where)\b"
    r"|`?[\w./-]{1,200}\.\w{1,5}\b",
    re.IGNORECASE,
)
SHOWN = re.compile(r": ?`[^`]{1,300}`\)")
MAX_QUOTE = 60
MIN_CODE = 4


@dataclass(frozen=True)
class Reference:
    """A file and its lines as a line of a page names them, and where in that line."""

    path: str
    spans: tuple[tuple[int, int], ...]
    start: int
    end: int


def places(page: Page) -> Iterator[tuple[Line, Place]]:
    """Yield each reference to lines of a file."""
    told = _Files()
    for line in page.prose:
        told.read(line)
        references = [*_references(line, told.current(line))]
        for reference in references:
            quote = _block(page, line) if len(references) == 1 else ()
            yield line, _place(line, reference, quote)


def spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return the ranges of lines in `5`, `5-9` or `5-9, 12`; a range that runs backwards is left out."""
    found = []
    for part in SPAN_PART.finditer(text):
        first, last = int(part[1]), int(part[2] or part[1])
        if 0 < first <= last:
            found.append((first, last))
    return tuple(found)


class _Files:
    """Which file a bare `line 12` speaks of: the one that the section, the list or the line itself has named."""

    def __init__(self) -> None:
        self._named: list[tuple[int, str]] = []  # depth of the heading under which it was named, and the file

    def read(self, line: Line) -> None:
        depth = line.heads[-1][0] if line.heads else 0
        if line.form is Form.HEADING:
            self._named = [(d, path) for d, path in self._named if d < depth]
        if line.form is Form.ROW:
            return
        files = {match[1] for match in ANY_FILE.finditer(line.text)}
        if not (line.form is Form.HEADING or PRESENTED.match(line.text)):
            return
        if len(files) == 1:
            self._named = [(d, path) for d, path in self._named if d < depth]
            self._named.append((depth, files.pop()))
        elif files:
            self._named = [(d, path) for d, path in self._named if d < depth]

    def current(self, line: Line) -> str | None:
        if line.form is Form.ROW:
            files = {match[1] for match in ANY_FILE.finditer(line.text)}
            return files.pop() if len(files) == 1 else None
        here = {match[1] for match in ANY_FILE.finditer(line.text)}
        if here:
            return here.pop() if len(here) == 1 else None
        return self._named[-1][1] if self._named else None


def _references(line: Line, current: str | None) -> Iterator[Reference]:
    taken: list[tuple[int, int]] = []
    for match in NAMED.finditer(line.text):
        if spans(match[2]) and "://" not in line.text[max(0, match.start() - 60) : match.end()]:
            taken.append(match.span())
            yield Reference(match[1], spans(match[2]), match.start(), match.end())
    if current is None:
        return
    for match in LOOSE.finditer(line.text):
        inside = any(start <= match.start() < end for start, end in taken)
        if not inside and spans(match[1]) and not _of_something_else(line.text, match):
            yield Reference(current, spans(match[1]), match.start(), match.end())


def _of_something_else(text: str, match: re.Match[str]) -> bool:
    """Return whether the words after `line 5` say that it is no line of the file: `line 5 of the log`."""
    after = text[match.end() : match.end() + 12].lower()
    before = text[max(0, match.start() - 12) : match.start()].lower()
    return after.startswith((" of ", " in ", " lines")) or before.endswith(("per ", "of ", "by "))


def _place(line: Line, reference: Reference, block: tuple[str, ...]) -> Place:
    (first, last), *more = reference.spans
    facts = {"path": reference.path, "first": first, "last": last, "more": tuple(more)}
    if block:
        return Place.model_validate({**facts, "quote": block})
    if COUNTER.search(CODE.sub("", line.text)) and not _is_shown(line.text, reference):
        return Place.model_validate(facts)
    return Place.model_validate({**facts, **_said_there(line.text, reference)})


def _is_shown(text: str, reference: Reference) -> bool:
    """Return whether a line is shown in brackets, as in `(line 5: code)`: words around them do not take it back."""
    return text[: reference.start].endswith("(") and bool(SHOWN.match(text[reference.end :]))


def _said_there(text: str, reference: Reference) -> dict[str, object]:
    """Return the code or symbol that stands right beside a reference."""
    before, after = text[: reference.start].removesuffix("`"), text[reference.end :].removeprefix("`")
    code = NEAR_CODE_AFTER.match(after)
    if code is None:
        code = NEAR_CODE_BEFORE.search(before[-400:])
    if code and COMMAND.match(code[1]):
        return {}
    if code and not ANY_FILE.fullmatch(code[1]) and "/" not in code[1].split("(")[0].strip():
        return _code(code[1])
    if code and " / " in code[1]:
        return _code(code[1])
    call = NEAR_CALL_BEFORE.search(before[-200:])
    if call:
        return {"symbol": call[1]}
    name = NEAR_NAME_AFTER.match(after)
    return {"hint": name[1]} if name else {}


def _code(text: str) -> dict[str, object]:
    """Return inline code as a symbol, where it is a name or a call without arguments, or else as a quote."""
    name = CALL_OR_NAME.fullmatch(text.strip())
    if name:
        return {"symbol": name[1]} if text.strip().endswith("()") else {"hint": name[1]}
    return {"quote": (text,)} if len(text.strip()) >= MIN_CODE else {}


def _block(page: Page, line: Line) -> tuple[str, ...]:
    """Return the code of the block under a line that presents it as what stands there."""
    block = page.block_below(line.number)
    if block is None or block.language not in {"", "python", "py", "yaml", "toml", "text"}:
        return ()
    if NOT_AS_IT_IS.search(line.text) or (
        not line.text.rstrip("*_ ").endswith((":", "`", ")", "]")) and not line.text[-1:].isdigit()
    ):
        return ()
    if any(
        re.search(r"#.{0,40}\b(should be|KeyError|fails?|crash\w*)\b", text[:300]) for text in block.lines[:MAX_QUOTE]
    ):
        return ()
    return tuple(text for text in block.lines[:MAX_QUOTE] if text.strip())
