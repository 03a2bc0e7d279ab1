"""What the bytes of a file tell: whether it is Python, its words, what it imports, which names it gives on."""

import codecs
import hashlib
import re
import string
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from gates.code.syntax import Unparsed, parse
from gates.scan.import_lines import imported
from gates.scan.memory import FileFacts
from gates.scan.program.reading import content

MAX_LINES = 4
LENT = "\0"  # before a word that is looked for under another name, too
FUNCTIONS = "\0\0"  # asks for how many functions a file defines
FEW = 25  # words that are looked for one by one
STEM = "*"  # after a word that may be a part of a longer one
_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_PLAIN = {b"utf-8", b"utf8", b"utf-8-sig", b"ascii", b"us-ascii", b"latin-1", b"iso-8859-1", b"iso-8859-15", b"cp1252"}
_NAME = r"[^\W\d]\w*"
_IN_NAMES = frozenset(string.ascii_letters.encode() + string.digits.encode() + b"_")
_APART = bytes(code if code in _IN_NAMES else ord(" ") for code in range(256))
_ENDS = rb"[ \t]*(?=[\r\n,)#\]}:;\\]|\Z|if\b|or\b|else\b)"  # of a value that is nothing but a name
_TARGETS = re.compile(rb"[ \t]*((?:[\w., \t()\[\]*]+(?::[^=\n]+)?=(?!=))+)")
_OPENED = re.compile(_TARGETS.pattern + rb"[^\n]*[(\[{,\\][ \t]*(?:#[^\n]*)?$")
_DEFINED = re.compile(rb"def[ \t]+\w+[ \t]*[(\[]")


def facts_of(path: Path, shown: str, words: Sequence[str]) -> FileFacts:
    """Read what decides whether a file matters: the words in it, what it imports, and the names that it gives on."""
    raw = content(path)
    if isinstance(raw, str):
        return FileFacts("", (), (), f"{shown}:1: {raw}")
    text = normal(raw)
    problem = _problem(raw, shown) if FUNCTIONS in words or text is None else ""
    digest = hashlib.sha256(raw).hexdigest()
    if text is None:
        return FileFacts(digest, (), (), problem, is_text=False)
    plain, lent, either = _sorted_out(tuple(words))
    present = frozenset(_present(text, either))
    lends = tuple(sorted(_kept(text, sorted(present.intersection(lent)))))
    found = tuple(word for word in plain if word in present)
    functions = _functions(text) if FUNCTIONS in words else 0
    return FileFacts(digest, found, imported(text, shown), problem, lends=lends, functions=functions)


def _problem(raw: bytes, shown: str) -> str:
    """Return why a file is no Python.

    Rules of single places alone do without: a file without their words has no such place, whether it parses or not.
    """
    try:
        parse(raw, shown, "")
    except Unparsed as error:
        return str(error)
    return ""


@cache
def _sorted_out(words: tuple[str, ...]) -> tuple[list[str], list[str], list[str]]:
    """Return the words that are looked for, those that are looked for under another name, and either."""
    plain = [word for word in words if not word.startswith(LENT)]
    lent = [word.removeprefix(LENT) for word in words if word.startswith(LENT) and word != FUNCTIONS]
    return plain, lent, list(dict.fromkeys([*plain, *lent]))


def _present(text: bytes, words: Sequence[str]) -> Iterator[str]:
    """Yield those of some words that a text has; many of them are looked for in the list of its own."""
    if len(words) <= FEW:
        yield from (word for word in words if word.removesuffix(STEM).encode() in text and has(word, text))
        return
    names = set(text.translate(_APART).split())
    listed = b" ".join(names)
    for word in words:
        stem = word.removesuffix(STEM)
        where = (names if stem == word else listed) if stem.isascii() and stem.isidentifier() else text
        if stem.encode() in where:
            yield word


def _functions(text: bytes) -> int:
    """Return how many functions a file defines."""
    starts = ((text.rfind(b"\n", 0, found.start()) + 1, found.start()) for found in _DEFINED.finditer(text))
    return sum(text[start:end].strip() in {b"", b"async"} for start, end in starts)


def normal(raw: bytes) -> bytes | None:
    """Return a file's text with its identifiers as Python reads them; `None` where bytes do not tell its words."""
    if b"\0" in raw:
        return None
    raw = raw.removeprefix(codecs.BOM_UTF8)
    raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in raw else raw
    head = raw[:400].split(b"\n", 2)[:2]
    declared = next((found[1].lower() for found in map(_CODING.match, head) if found), b"utf-8")
    if declared.replace(b"_", b"-") not in _PLAIN:
        return None
    if raw.isascii():
        return raw
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    return raw if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text).encode()


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
