"""References of a page to lines of files, and the code that it quotes below them: looked up in the project."""

import bisect
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from gates.claims.page import Claim, Form, Line, Span, claim
from gates.model import Location

SUFFIXES = "py|pyi|ya?ml|toml|cfg|ini|md|rst|txt|json|sh|c|h|cc|cpp|cu|rs|go|java|js|ts|tsx|j2|html|css|sql"
FILE = rf"(?<![\w/.:@-])(/?(?:[\w.@+-]{{1,80}}/){{0,12}}[\w.@+-]{{0,80}}\w\.(?:{SUFFIXES}))"
SPAN = r"\d{1,7}(?: ?[-\u2013] ?\d{1,7})?"
REFERENCE = re.compile(rf"{FILE}:({SPAN}(?: ?(?:,|and|&) ?{SPAN}){{0,12}})(?![\w:]|\.\d)")
SPAN_PART = re.compile(r"(\d{1,7})(?: ?[-\u2013] ?(\d{1,7}))?")
NOT_AS_IT_IS = re.compile(
    r"\b(fix|should|expected|required|recommend\w*|proposed|missing|suggest\w*|instead|after|before|previous\w*|old|"
    r"was|remediation|example|wanted|trace|traceback|output)\b",
    re.IGNORECASE,
)
WRONG_CODE = re.compile(r"#.{0,40}\b(should be|KeyError|fails?|crash\w*)\b")
GAP = re.compile(r"\.\.\.|\u2026")
COMMENT = re.compile(r"(?:^|\s)#[^'\"]*$")
LOOSE_COMMA = re.compile(r",(?=[)\]}])")
LANGUAGES = {"", "python", "py", "yaml", "toml", "text"}
LEFT_OUT = {"__pycache__", "node_modules", "site-packages", "build", "dist"}
MAX_BYTES, MAX_FILES, MAX_QUOTE, MAX_HITS, MAX_CANDIDATES = 2 * 1024 * 1024, 50_000, 60, 50, 5
SPREAD = 4000  # characters that may lie between the pieces of a quote


def quotes(lines: Sequence[Line], files: "Sources") -> Iterator[Claim]:
    """Yield each reference to lines of a file, with the code that stands in a block right below it."""
    for at, line in enumerate(lines):
        if line.form is Form.CODE:
            continue
        references = [match for match in REFERENCE.finditer(line.text) if _spans(match[2])]
        block = _block(line, lines[at + 1 : at + 3 + MAX_QUOTE]) if len(references) == 1 else []
        for match in references:
            if "://" not in line.text[max(0, match.start() - 60) : match.end()]:
                covers = (Span(line.number, *match.span()), *(Span(each.number) for each in block))
                yield files.place(line, match[1], _spans(match[2]), [each.text for each in block], covers)


def _spans(text: str) -> list[tuple[int, int]]:
    """Return the ranges of lines in `5`, `5-9` or `5-9, 12`; a range that runs backwards is left out."""
    found = [(int(part[1]), int(part[2] or part[1])) for part in SPAN_PART.finditer(text)]
    return [(first, last) for first, last in found if 0 < first <= last]


def _block(line: Line, below: Sequence[Line]) -> list[Line]:
    """Return the code right below a line that presents it as what stands there."""
    first = next((i for i, each in enumerate(below) if each.form is Form.CODE), len(below))
    code = []
    for each in below[first:]:
        if each.form is not Form.CODE:
            break
        code.append(each)
    near = first <= 2 and all(each.form is Form.BLANK for each in below[:first])
    presents = line.text.rstrip("*_ ")[-1:] in {":", "`", ")", "]"} or line.text[-1:].isdigit()
    as_it_is = presents and not NOT_AS_IT_IS.search(line.text) and not any(WRONG_CODE.search(c.text) for c in code)
    return code if near and as_it_is and code and code[0].language in LANGUAGES else []


class Sources:
    """The files of a project, each read once; every question gets its answer."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._read: dict[str, tuple[list[str], str]] = {}
        self._tree: list[str] | None = None

    def place(
        self, line: Line, name: str, spans: Sequence[tuple[int, int]], code: Sequence[str], covers: tuple[Span, ...]
    ) -> Claim:
        """Claim that lines are there and hold some code; of several files, one that fits is enough."""
        where = ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in spans)
        claimed = f"{name}:{where}" + (f" holds {code[0].strip()!r:.80}" if code else "")
        best: tuple[bool | None, str, Location | None] = (False, f"there is no file {name!r} in the project", None)
        for number, path in enumerate(self._named(name)):
            found = self._in_file(path, spans, code)
            best = found if found[0] or not number else best
        return claim(line, best[0], claimed, best[1], covers, best[2])

    def _named(self, name: str) -> list[str]:
        """Return the files of a name: the path itself, or else those whose path ends so."""
        own = PurePosixPath(name.removeprefix("./")).as_posix().removeprefix("/")
        inside = (self._root / own).resolve().is_relative_to(self._root)
        if inside and (self._root / own).is_file():
            return [own]
        if self._tree is None:
            self._tree = sorted(path for path, _ in zip(self._walk(), range(MAX_FILES), strict=False))
        return [path for path in self._tree if f"/{path}".endswith(f"/{own}")][:MAX_CANDIDATES]

    def _walk(self) -> Iterator[str]:
        for folder, names, files in os.walk(self._root):
            own = [n for n in names if n not in LEFT_OUT and n[0] != "." and not Path(folder, n, "pyvenv.cfg").exists()]
            names[:] = own
            yield from (Path(folder, name).relative_to(self._root).as_posix() for name in files)

    def _in_file(
        self, path: str, spans: Sequence[tuple[int, int]], code: Sequence[str]
    ) -> tuple[bool | None, str, Location | None]:
        if path not in self._read:
            self._read[path] = _text(self._root / path)
        lines, problem = self._read[path]
        if problem:
            return None, f"{path} was not read: {problem}", None
        if max(last for _, last in spans) > len(lines):
            return False, f"{path} has {len(lines)} lines", Location(path=path)
        if not code:
            here = Location(path=path, line=spans[0][0], last_line=spans[0][1])
            return None, "the lines are there; what words say of them was not checked", here
        found, missing = find_quote(lines, code)
        if not found:
            return False, f"{missing!r:.80} stands nowhere in {path}", Location(path=path)
        at = [hit for hit in found if any(hit[0] <= last and first <= hit[1] for first, last in spans)]
        first, last = (at or found)[0]
        there = Location(path=path, line=first, last_line=last)
        return bool(at), f"it stands in line {first}{f'-{last}' if last > first else ''} of {path}", there


def find_quote(lines: Sequence[str], quote: Sequence[str]) -> tuple[list[tuple[int, int]], str]:
    """Return the ranges of lines that hold a quote, without what `...` leaves out, or the piece that is nowhere.

    Code is compared without blanks, comments, kinds of quotes and commas that end a list.
    """
    text, starts = _joined(lines)
    pieces = [piece for piece in (_joined([part])[0] for part in GAP.split("\n".join(map(_bare, quote)))) if piece]
    absent = next((piece for piece in pieces if piece not in text), "")
    if absent or not pieces:
        return [], absent
    hits: list[tuple[int, int]] = []
    at, tried = text.find(pieces[0]), 0
    while at >= 0 and tried < MAX_HITS:
        end, tried = at + len(pieces[0]), tried + 1
        for piece in pieces[1:]:
            begin = text.find(piece, end, end + SPREAD) if end >= 0 else -1
            end = begin + len(piece) if begin >= 0 else -1
        if end >= 0:
            hits.append((max(bisect.bisect_right(starts, at), 1), max(bisect.bisect_right(starts, end - 1), 1)))
        at = text.find(pieces[0], at + 1)
    return hits, "" if hits else pieces[-1]


def _bare(line: str) -> str:
    return COMMENT.sub("", line)


def _joined(lines: Sequence[str]) -> tuple[str, list[int]]:
    """Return the code of some lines without blanks in one string, and where each line begins in it."""
    starts: list[int] = []
    parts: list[str] = []
    at = 0
    for line in lines:
        part = LOOSE_COMMA.sub("", "".join(_bare(line).split()).replace("'", '"'))
        if part[:1] in {")", "]", "}"} and parts and parts[-1].endswith(","):
            parts[-1] = parts[-1][:-1]
            at -= 1
        starts.append(at)
        parts.append(part)
        at += len(part)
    return "".join(parts), starts


def _text(file: Path) -> tuple[list[str], str]:
    try:
        size = file.stat().st_size
        if size > MAX_BYTES:
            return [], f"{size} bytes, more than {MAX_BYTES}"
        return file.read_bytes().decode("utf-8").splitlines(), ""
    except OSError as error:
        return [], error.strerror or str(error)
    except UnicodeDecodeError:
        return [], "not UTF-8"
