"""The files of a project: what stands where somebody said, and where else it stands."""

import bisect
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from gates.claims.claim import Answer, Standing, answer
from gates.model import Location

MAX_BYTES = 2 * 1024 * 1024
MAX_FILES = 50_000
MAX_HITS = 50
MAX_LINE = 1000
MAX_TRIES = 2000
MAX_CANDIDATES = 5
SHOWN = 3
SPREAD = 10  # lines of the file that may lie between two quoted ones, and more for each quoted line
LEFT_OUT = {"__pycache__", "node_modules", "site-packages", "build", "dist"}
GAP = re.compile(r"\.\.\.|\u2026")
NAME = re.compile(r"([A-Za-z_]\w{2,80})(?:\(\))?")
SPACE = re.compile(r"\s+")
LOOSE_COMMA = re.compile(r",(?=[)\]}])")
Code = tuple[str, list[int]]  # the code of a file without blanks, and where each line begins in it
Spans = Sequence[tuple[int, int]]


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
        shown = ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in (at or found)[:SHOWN])
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
