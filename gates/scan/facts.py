"""What the bytes of a file tell without parsing it: its words, what it imports, which names it gives on."""

import hashlib
import re
import string
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from gates.scan.memory import FileFacts
from gates.scan.reading import content

MAX_LINES = 4
LENT = "\0"  # before a word that is looked for under another name, too
STEM = "*"  # after a word that may be a part of a longer one
_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_PLAIN = {b"utf-8", b"utf8", b"utf-8-sig", b"ascii", b"us-ascii", b"latin-1", b"iso-8859-1", b"iso-8859-15", b"cp1252"}
_NAME = r"[^\W\d]\w*"
_IN_NAMES = frozenset(string.ascii_letters.encode() + string.digits.encode() + b"_")
_ENDS = rb"[ \t]*(?=[\r\n,)#\]}:;\\]|\Z|if\b|or\b|else\b)"  # of a value that is nothing but a name
_SPACE = rb"(?:[ \t]|\\\r?\n)*"
_PAIRS = re.compile(r"([\w.]+|\*)(?:[\s\\]+as[\s\\]+(\w+))?")
_COMMENT = re.compile(rb"#[^\n]*")
_TARGETS = re.compile(rb"[ \t]*((?:[\w., \t()\[\]*]+(?::[^=\n]+)?=(?!=))+)")
_OPENED = re.compile(_TARGETS.pattern + rb"[^\n]*[(\[{,\\][ \t]*(?:#[^\n]*)?\r?$")
_DEFINED = re.compile(rb"def[ \t]+\w+[ \t]*[(\[]")
_IMPORT = re.compile(rb"[ \t]*import(?:[ \t]|\\\r?\n)+((?:[^\n;#\\]|\\\r?\n)+)")
_FROM = re.compile(
    rb"[ \t]*from%s((?:[.\w]|[ \t]|\\\r?\n)*?)\bimport\b%s(?:\(([^)]*)\)?|((?:[^\n;#\\]|\\\r?\n)+))" % (_SPACE, _SPACE)
)


def facts_of(path: Path, shown: str, words: Sequence[str]) -> FileFacts:
    """Read what decides whether a file matters: the words in it, what it imports, and the names that it gives on."""
    raw = content(path)
    if isinstance(raw, str):
        return FileFacts("", (), (), f"{shown}:1: {raw}")
    text = normal(raw)
    digest = hashlib.sha256(raw).hexdigest()
    if text is None:
        return FileFacts(digest, (), (), is_text=False)
    there = {word for word in {word.removeprefix(LENT) for word in words} if word.removesuffix(STEM).encode() in text}
    lends = tuple(sorted(_kept(text, sorted(word for word in there if f"{LENT}{word}" in words))))
    present = tuple(word for word in words if word in there and has(word, text))
    return FileFacts(digest, present, imported(text, shown), lends=lends, functions=_functions(text))


def _functions(text: bytes) -> int:
    """Return how many functions a file defines."""
    starts = ((text.rfind(b"\n", 0, found.start()) + 1, found.start()) for found in _DEFINED.finditer(text))
    return sum(text[start:end].strip() in {b"", b"async"} for start, end in starts)


def normal(raw: bytes) -> bytes | None:
    """Return a file's text with its identifiers as Python reads them; `None` where bytes do not tell its words."""
    if b"\0" in raw:
        return None
    head = raw[:400].split(b"\n", 2)[:2]
    declared = next((found[1].lower() for found in map(_CODING.match, head) if found), b"utf-8")
    if declared.replace(b"_", b"-") not in _PLAIN:
        return None
    if raw.isascii():
        return raw
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return raw if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text).encode()


def is_utf8(raw: bytes) -> bool:
    """Return whether a file is UTF-8, or says that it is something else."""
    if b"coding" in raw[:200]:
        return True
    try:
        return raw.isascii() or bool(raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return False


def has(word: str, text: bytes) -> bool:
    """Return whether a file has a word; a name counts only where it stands by itself, unless it is a stem (`seed*`)."""
    if word.isidentifier():
        return any(True for _ in _places(word, b"", text))
    return word.removesuffix(STEM).encode() in text


def _places(name: str, after: bytes, text: bytes) -> Iterator[int]:
    """Yield where a name stands by itself in a text, before what a regular expression says."""
    for found in _beginning(name, after).finditer(text):
        at = found.start()
        if not at or text[at - 1] not in _IN_NAMES:
            yield at


@cache
def _beginning(name: str, after: bytes) -> re.Pattern[bytes]:
    """Return the expression for a name; it begins with plain letters, which are searched much faster than a border."""
    return re.compile(rb"%s(?!\w)%s" % (re.escape(name.encode()), after))


def imported(text: bytes, shown: str) -> tuple[str, ...]:
    """Return the dotted names that a file's imports may lead to, from the root.

    `a.b=c` is called otherwise, `a.` is where something is imported from.
    """
    package = shown.removesuffix(".py").split("/")[:-1]
    found: set[str] = set()
    for origin, items in _statements(text):
        base = _origin(origin, package) if origin is not None else ""
        if base:
            found.add(f"{base}.")
        plain = _COMMENT.sub(b"", items) if b"#" in items else items
        for name, alias in _PAIRS.findall(plain.decode(errors="replace")):
            dotted = f"{base}.{name}" if base else name
            found.add(f"{dotted}={alias}" if alias and alias != name else dotted)
    return tuple(sorted(name for name in found if name.strip(".")))


def _statements(text: bytes) -> Iterator[tuple[bytes | None, bytes]]:
    """Yield the import statements of a file: the origin, `None` for a plain import, and what is imported."""
    at = text.find(b"import")
    while at >= 0:
        line = text.rfind(b"\n", 0, at)
        start = max(line, text.rfind(b";", line + 1, at), text.rfind(b":", line + 1, at)) + 1
        while start > 1 and text[start - 2 : start - 1] == b"\\":  # the line before goes on
            start = text.rfind(b"\n", 0, start - 1) + 1
        plain = _IMPORT.match(text, start)
        other = _FROM.match(text, start) if plain is None else None
        if plain:
            yield None, plain[1]
        elif other:
            yield other[1], other[2] if other[2] is not None else other[3]
        at = text.find(b"import", max(at + 6, (plain or other).end() if plain or other else 0))  # type: ignore[union-attr]  # one of them is


def _origin(written: bytes, package: list[str]) -> str:
    name = "".join(written.decode(errors="replace").replace("\\", " ").split())
    dots = len(name) - len(name.lstrip("."))
    base = package[: len(package) - (dots - 1)] if dots else []
    return ".".join([*base, *([name.lstrip(".")] if name.lstrip(".") else [])])


def _kept(text: bytes, words: Sequence[str]) -> set[str]:
    """Return the names that lines set to what may be one of some words: `a = b`, `a = partial(b, ...)`, `a: T = b`."""
    found: set[str] = set()
    for place in (at for word in words for at in _places(word, _ENDS, text)):
        start = text.rfind(b"\n", 0, place) + 1
        targets = _TARGETS.match(text, start, place) or _above(text, start)
        for target in re.split(rb"[\s=,()\[\]*]+", targets[1]) if targets else ():
            name = target.partition(b":")[0].rpartition(b".")[2].decode(errors="replace")
            if re.fullmatch(_NAME, name):
                found.add(name)
    return found


def _above(text: bytes, start: int) -> re.Match[bytes] | None:
    """Return the head of an assignment that begins some lines above, where its value is broken into lines."""
    for _ in range(MAX_LINES):
        end, start = start - 1, text.rfind(b"\n", 0, max(start - 1, 0)) + 1
        if end <= 0:
            return None
        if head := _OPENED.match(text, start, end):
            return head
    return None
