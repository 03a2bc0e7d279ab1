"""References of a page to lines of files, and the code that it quotes: looked up in the project."""

import bisect
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from gates.claims.arithmetic import Found
from gates.claims.page import Answer, Form, Line, Page, Span, Standing, answer
from gates.model import Location

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
MAX_BYTES = 2 * 1024 * 1024
MAX_FILES = 50_000
MAX_HITS = 50
MAX_LINE = 1000
MAX_TRIES = 2000
MAX_CANDIDATES = 5
NAMED_AT_MOST = 3
SPREAD = 10  # lines of the file that may lie between two quoted ones, and more for each quoted line
LEFT_OUT = {"__pycache__", "node_modules", "site-packages", "build", "dist"}
GAP = re.compile(r"\.\.\.|\u2026")
NAME = re.compile(r"([A-Za-z_]\w{2,80})(?:\(\))?")
SPACE = re.compile(r"\s+")
LOOSE_COMMA = re.compile(r",(?=[)\]}])")
Code = tuple[str, list[int]]  # the code of a file without blanks, and where each line begins in it
Spans = Sequence[tuple[int, int]]


def places(page: Page, files: "Sources") -> Iterator[Found]:
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


class Sources:
    """The files of a project, each read once; every question gets its answer."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._texts: dict[str, tuple[list[str], str]] = {}
        self._codes: dict[str, Code] = {}
        self._files_of: dict[str, list[str]] = {}
        self._tree: list[str] | None = None

    def place(self, name: str, spans: Spans, code: Sequence[str]) -> Answer:
        """Answer whether lines are there and hold some code; of several files, one that fits is enough."""
        where = ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in spans)
        expected = f"{name}:{where}" + (f" holds {_code_of(code)[0].strip()!r}" if code else "")
        answers = [self._in_file(path, spans, code, expected) for path in self._named(name)]
        fits = next((one for one in answers if one.standing is Standing.CONFIRMED), None)
        return fits or (answers or [answer(False, expected, f"there is no file {name!r} in the project")])[0]

    def _named(self, name: str) -> list[str]:
        """Return the files of a name: the path itself, or else those whose path ends so."""
        if name not in self._files_of:
            own = PurePosixPath(name.removeprefix("./")).as_posix().removeprefix("/")
            here = (self._root / own).is_file() and self._inside(own)
            found = [own] if here else [path for path in self._walk() if f"/{path}".endswith(f"/{own}")]
            self._files_of[name] = found[:MAX_CANDIDATES]
        return self._files_of[name]

    def _walk(self) -> list[str]:
        """Return the files of the project."""
        if self._tree is None:
            self._tree = sorted(path for path, _ in zip(self._everything(), range(MAX_FILES), strict=False))
        return self._tree

    def _inside(self, path: str) -> bool:
        return (self._root / path).resolve().is_relative_to(self._root)

    def _everything(self) -> Iterator[str]:
        for folder, names, files in os.walk(self._root):
            names[:] = [
                n for n in names if n not in LEFT_OUT and n[0] != "." and not Path(folder, n, "pyvenv.cfg").exists()
            ]
            yield from (Path(folder, name).relative_to(self._root).as_posix() for name in files)

    def _read(self, path: str) -> tuple[list[str], str]:
        """Return the lines of a file, or the reason why they cannot be read."""
        if path not in self._texts:
            self._texts[path] = _text(self._root / path)
        return self._texts[path]

    def _in_file(self, path: str, spans: Spans, code: Sequence[str], expected: str) -> Answer:
        lines, problem = self._read(path)
        if problem:
            return answer(None, expected, f"{path} was not read: {problem}")
        if max(last for _, last in spans) > len(lines):
            return answer(False, expected, f"{path} has {len(lines)} lines", Location(path=path))
        if path not in self._codes:
            self._codes[path] = joined(lines)
        name = NAME.fullmatch(code[0].strip()) if len(code) == 1 else None
        found, missing = (named(lines, name[1]), name[1]) if name else find_quote(self._codes[path], code)
        at = [hit for hit in found if any(hit[0] <= last and first <= hit[1] for first, last in spans)]
        shown = ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in (at or found)[:NAMED_AT_MOST])
        if found:
            there = Location(path=path, line=(at or found)[0][0], last_line=at[0][1] if at else None)
            return answer(bool(at), expected, f"it stands in line {shown} of {path}", there)
        if missing and code:
            return answer(False, expected, f"{missing!r:.80} stands nowhere in {path}", Location(path=path))
        here = Location(path=path, line=spans[0][0], last_line=spans[0][1])
        return answer(None, expected, "the lines are there; what words say of them was not checked", here)


def find_quote(code: Code, quote: Sequence[str]) -> tuple[tuple[tuple[int, int], ...], str]:
    """Return the ranges of lines that hold the pieces of a quote one after another, or the piece that is nowhere."""
    parts = [squeezed(part).removesuffix(",") for text in _code_of(quote) for part in GAP.split(text)]
    pieces = [part for part in parts if len(part) > 1]
    text, starts = code
    absent = next((piece for piece in pieces if piece not in text), "")
    if absent or not pieces:
        return (), absent
    hits: list[tuple[int, int]] = []
    at, tried = text.find(pieces[0]), 0
    reach = SPREAD + 3 * len(pieces)
    while at >= 0 and len(hits) < MAX_HITS and (tried := tried + 1) < MAX_TRIES:
        first = max(bisect.bisect_right(starts, at), 1)
        limit = starts[first - 1 + reach] if first - 1 + reach < len(starts) else len(text)
        end = _follow(text, pieces, at, limit)
        if end is not None:
            hits.append((first, max(bisect.bisect_right(starts, end - 1), 1)))
        at = text.find(pieces[0], at + 1)
    return tuple(hits), "" if hits or len(pieces) < 2 else pieces[1]


def named(lines: list[str], name: str) -> tuple[tuple[int, int], ...]:
    """Return the lines of each function, class or assignment of a name, then all lines that hold it as a word."""
    word = re.escape(name)
    made = re.compile(rf"[ \t]{{0,200}}(?:(?:async def|def|class) +{word}\b|{word} ?(?::[^=]{{1,80}})?=(?!=))")
    held = re.compile(rf"(?<!\w){word}(?!\w)")
    at = [(number, line[:MAX_LINE]) for number, line in enumerate(lines, 1) if name in line]
    first = [number for number, line in at if made.match(line)][:MAX_HITS]
    bodies = [(number, _body_end(lines, number)) for number in first]
    return (*bodies, *((number, number) for number, line in at if held.search(line)))


def squeezed(text: str) -> str:
    """Return code without blanks, with one kind of quotes and without commas that end a list."""
    return LOOSE_COMMA.sub("", SPACE.sub("", text).replace("'", '"'))


def joined(lines: list[str]) -> Code:
    """Return the code of a file without blanks in one string, and where each line begins in it."""
    starts: list[int] = []
    parts: list[str] = []
    at = 0
    for line in lines:
        part = squeezed(line)
        if part[:1] in {")", "]", "}"} and parts and parts[-1].endswith(","):
            parts[-1] = parts[-1][:-1]
            at -= 1
        starts.append(at)
        parts.append(part)
        at += len(part)
    return "".join(parts), starts


def _code_of(quote: Sequence[str]) -> list[str]:
    """Return the code of quoted lines without comments; of nothing but comments, these."""
    bare = [re.sub(r"(?:^|\s)#[^'\"]*$", "", line) for line in quote]
    return [line for line in bare if line.strip()] or list(quote)


def _follow(text: str, pieces: list[str], at: int, limit: int) -> int | None:
    """Return where the last piece ends, if all follow one another before the limit."""
    end = at + len(pieces[0])
    for piece in pieces[1:]:
        found = text.find(piece, end, max(limit, end))
        if found < 0:
            return None
        end = found + len(piece)
    return end


def _body_end(lines: list[str], first: int) -> int:
    """Return the last line of what begins at a line, by indentation."""
    indent = len(lines[first - 1]) - len(lines[first - 1].lstrip())
    last = first
    for number, line in enumerate(lines[first:], first + 1):
        if not line.strip():
            continue
        if len(line) - len(line.lstrip()) <= indent and not line.lstrip().startswith((")", "]", "}")):
            break
        last = number
    return last


def _text(file: Path) -> tuple[list[str], str]:
    try:
        size = file.stat().st_size
        if size > MAX_BYTES:
            return [], f"{size} bytes, more than {MAX_BYTES}: not read"
        return file.read_bytes().decode("utf-8").splitlines(), ""
    except OSError as error:
        return [], error.strerror or str(error)
    except UnicodeDecodeError:
        return [], "not UTF-8"
