"""Lines of the project's files, looked up: what stands where somebody said, and where else it stands."""

import bisect
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from gates.claims.claim import Claim, Length, Place, Presence
from gates.model import Model

MAX_BYTES = 2 * 1024 * 1024
MAX_FILES = 50_000
MAX_HITS = 50
MAX_TRIES = 2000
MAX_CANDIDATES = 5
SPREAD = 10  # lines of the file that may lie between two quoted ones, and more for each quoted line
LEFT_OUT = {"__pycache__", "node_modules", "site-packages", "build", "dist"}
GAP = re.compile(r"\.\.\.|\u2026")
SPACE = re.compile(r"\s+")
Code = tuple[str, list[int]]  # the code of a file without blanks, and where each line begins in it
LOOSE_COMMA = re.compile(r",(?=[)\]}])")


class Sighting(Model):
    """One file in which a claim was looked up: its lines, and those that hold what the claim says.

    `hits` are the ranges that hold the quote, or the lines that define or use the symbol; `missing` is the first piece
    that stands nowhere in the file. `bodies` are the ranges of the functions and classes of that name.
    """

    path: str
    lines: int = 0
    blank: int = 0
    hits: tuple[tuple[int, int], ...] = ()
    bodies: tuple[tuple[int, int], ...] = ()
    missing: str = ""
    problem: str = ""


class Looked(Model):
    """A claim with what was seen of it in the files: nothing where it speaks of no file or no file fits."""

    claim: Claim
    sightings: tuple[Sighting, ...] = ()


class Sources:
    """The files of a project, each read once."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._texts: dict[Path, tuple[list[str], str]] = {}
        self._codes: dict[str, Code] = {}
        self._files_of: dict[str, list[str]] = {}
        self._tree: list[str] | None = None

    def look(self, claim: Claim) -> Looked:
        """Look up what a claim says of files."""
        said = claim.said
        if isinstance(said, Place):
            return Looked(claim=claim, sightings=tuple(self._place(path, said) for path in self._files(said.path)))
        if isinstance(said, Length):
            return Looked(claim=claim, sightings=tuple(self._length(path) for path in self._files(said.path)))
        if isinstance(said, Presence):
            return Looked(claim=claim, sightings=tuple(self._presence(said)))
        return Looked(claim=claim)

    def _files(self, name: str) -> list[str]:
        """Return the files of a name: the path itself, or else those whose path ends so."""
        if name not in self._files_of:
            self._files_of[name] = self._found(name)
        return self._files_of[name]

    def _found(self, name: str) -> list[str]:
        wanted = PurePosixPath(name.removeprefix("./"))
        own = wanted.as_posix().removeprefix("/")
        if (self._root / own).is_file() and self._inside(own):
            return [own]
        ending = f"/{own}"
        return [path for path in self._walk() if f"/{path}".endswith(ending)][:MAX_CANDIDATES]

    def _inside(self, path: str) -> bool:
        return (self._root / path).resolve().is_relative_to(self._root)

    def _walk(self) -> list[str]:
        if self._tree is None:
            self._tree = sorted(self._everything())
        return self._tree

    def _everything(self) -> Iterator[str]:
        count = 0
        for folder, names, files in os.walk(self._root):
            names[:] = [n for n in names if n not in LEFT_OUT and not n.startswith(".")
                        and not Path(folder, n, "pyvenv.cfg").exists()]  # fmt: skip
            for name in files:
                count += 1
                if count > MAX_FILES:
                    return
                yield Path(folder, name).relative_to(self._root).as_posix()

    def _read(self, path: str) -> tuple[list[str], str]:
        """Return the lines of a file, or the reason why they cannot be read."""
        file = self._root / path
        if file not in self._texts:
            self._texts[file] = _text(file)
        return self._texts[file]

    def _length(self, path: str) -> Sighting:
        lines, problem = self._read(path)
        return Sighting(path=path, lines=len(lines), blank=sum(not line.strip() for line in lines), problem=problem)

    def _place(self, path: str, said: Place) -> Sighting:
        lines, problem = self._read(path)
        seen = Sighting(path=path, lines=len(lines), problem=problem)
        if problem:
            return seen
        if said.quote:
            if path not in self._codes:
                self._codes[path] = joined(lines)
            hits, missing = find_quote(self._codes[path], said.quote)
            return seen.model_copy(update={"hits": hits, "missing": missing})
        name = said.symbol or said.hint
        if not name:
            return seen
        bodies = definitions(lines, name)
        hits = () if said.hint or said.defines else mentions(lines, name)
        return seen.model_copy(update={"hits": hits, "bodies": bodies, "missing": "" if hits or bodies else name})

    def _presence(self, said: Presence) -> Iterator[Sighting]:
        if said.path:
            exact = self._root / said.path
            if exact.exists() and self._inside(said.path):
                yield Sighting(path=said.path)
            return
        module, _, name = said.symbol.partition(":")
        own = module.replace(".", "/")
        for path in (f"{own}.py", f"{own}/__init__.py", f"src/{own}.py", f"src/{own}/__init__.py"):
            if (self._root / path).is_file() and self._inside(path):
                lines, problem = self._read(path)
                bodies = definitions(lines, name.split(".")[-1])
                hits = mentions(lines, name.split(".")[-1])
                yield Sighting(path=path, lines=len(lines), problem=problem, bodies=bodies, hits=hits,
                               missing="" if bodies else name)  # fmt: skip


def find_quote(code: Code, quote: tuple[str, ...]) -> tuple[tuple[tuple[int, int], ...], str]:
    """Return the ranges of lines that hold the pieces of a quote one after another, or the piece that is nowhere."""
    parts = [squeezed(part).removesuffix(",") for text in _code_of(quote) for part in GAP.split(text)]
    pieces = [part for part in parts if len(part) > 1]
    if not pieces:
        return (), ""
    text, starts = code
    absent = next((piece for piece in pieces if piece not in text), "")
    if absent:
        return (), absent
    hits: list[tuple[int, int]] = []
    at, tried = text.find(pieces[0]), 0
    reach = SPREAD + 3 * len(pieces)
    while at >= 0 and len(hits) < MAX_HITS and (tried := tried + 1) < MAX_TRIES:
        first = _line_at(starts, at)
        limit = starts[min(len(starts) - 1, first - 1 + reach)] if first - 1 + reach < len(starts) else len(text)
        end = _follow(text, pieces, at, limit)
        if end is not None:
            hits.append((first, _line_at(starts, end - 1)))
        at = text.find(pieces[0], at + 1)
    return tuple(hits), "" if hits else pieces[1] if len(pieces) > 1 else ""


def definitions(lines: list[str], name: str) -> tuple[tuple[int, int], ...]:
    """Return the lines of each function, class or assignment of a name, by indentation."""
    word = re.escape(name)
    pattern = re.compile(rf"[ \t]{{0,200}}(?:(?:async def|def|class) +{word}\b|{word} ?(?::[^=]{{1,80}})?=(?!=))")
    found = []
    for number, line in enumerate(lines, 1):
        if name in line and pattern.match(line[:400]):
            found.append((number, _body_end(lines, number)))
            if len(found) == MAX_HITS:
                break
    return tuple(found)


def mentions(lines: list[str], name: str) -> tuple[tuple[int, int], ...]:
    """Return the lines that hold a name as a word."""
    pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    found = ((n, n) for n, line in enumerate(lines, 1) if name in line and pattern.search(line))
    return tuple(hit for hit, _ in zip(found, range(MAX_HITS), strict=False))


def squeezed(text: str) -> str:
    """Return code without blanks, with one kind of quotes and without commas that end a list."""
    return LOOSE_COMMA.sub("", SPACE.sub("", text).replace("'", '"'))


def _code_of(quote: tuple[str, ...]) -> Iterator[str]:
    """Yield the code of quoted lines; of lines that are nothing but comments only where there is nothing else."""
    bare = [_without_comment(line) for line in quote]
    yield from (line for line in bare if line.strip()) if any(map(str.strip, bare)) else quote


def _without_comment(line: str) -> str:
    """Cut a comment off, where the mark does not stand inside of a string."""
    inside = ""
    for i, char in enumerate(line):
        if inside:
            inside = "" if char == inside else inside
        elif char in "\"'":
            inside = char
        elif char == "#" and (i == 0 or line[i - 1].isspace()):
            return line[:i]
    return line


def joined(lines: list[str]) -> Code:
    """Return the code of a file without blanks in one string, and where each line begins in it."""
    starts: list[int] = []
    parts: list[str] = []
    at = 0
    for line in lines:
        part = SPACE.sub("", line).replace("'", '"')
        if part[:1] in {")", "]", "}"} and parts and parts[-1].endswith(","):
            parts[-1] = parts[-1][:-1]
            at -= 1
        part = LOOSE_COMMA.sub("", part)
        starts.append(at)
        parts.append(part)
        at += len(part)
    return "".join(parts), starts


def _line_at(starts: list[int], offset: int) -> int:
    return max(bisect.bisect_right(starts, offset), 1)


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
    for number in range(first + 1, len(lines) + 1):
        line = lines[number - 1]
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
