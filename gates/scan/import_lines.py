"""The imports of a file, read from its bytes: most of them are plain lines, and many files share these."""

import re
from collections.abc import Iterator
from functools import lru_cache

KNOWN = 65_536  # lines that are remembered
_SPACE = rb"(?:[ \t]|\\\n)*"
_PAIRS = re.compile(r"([\w.]+|\*)(?:[\s\\]+as[\s\\]+(\w+))?")
_COMMENT = re.compile(rb"#[^\n]*")
_PLAIN = re.compile(
    rb"[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]+([\w., \t*]+)|import[ \t]+([\w., \t]+))(?:#[^\n]*)?"
)
_IMPORT = re.compile(rb"[ \t]*import(?:[ \t]|\\\n)+((?:[^\n;#\\]|\\\n)+)")
_FROM = re.compile(
    rb"[ \t]*from%s((?:[.\w]|[ \t]|\\\n)*?)\bimport\b%s(?:\(([^)]*)\)?|((?:[^\n;#\\]|\\\n)+))" % (_SPACE, _SPACE)
)
Pairs = tuple[tuple[str, str], ...]  # names, and what they are called here where that is something else
Statement = tuple[str | None, Pairs]  # of a plain import the origin is `None`


def imported(text: bytes, shown: str) -> tuple[str, ...]:
    """Return the dotted names that a file's imports may lead to, from the root.

    `a.b=c` is called otherwise, `a.` is where something is imported from.
    """
    package = shown.removesuffix(".py").split("/")[:-1]
    found: set[str] = set()
    for origin, pairs in _statements(text):
        base = _based(origin, package) if origin is not None else ""
        if base:
            found.add(f"{base}.")
        for name, alias in pairs:
            dotted = f"{base}.{name}" if base else name
            found.add(f"{dotted}={alias}" if alias and alias != name else dotted)
    return tuple(sorted(name for name in found if name.strip(".")))


def _statements(text: bytes) -> Iterator[Statement]:
    """Yield the import statements of a file."""
    at = text.find(b"import")
    while at >= 0:
        line = text.rfind(b"\n", 0, at)
        end = text.find(b"\n", at)
        goes_on = text[line - 1 : line] == b"\\" if line > 0 else False
        known = _plain(text[line + 1 : end if end >= 0 else len(text)]) if not goes_on else None
        if known is not None:
            yield known
        else:
            known, end = _statement(text, at, line)
            if known is not None:
                yield known
        at = text.find(b"import", end) if end >= 0 else -1


@lru_cache(maxsize=KNOWN)
def _plain(line: bytes) -> Statement | None:
    """Return the statement that a line is; `None` for one that is more, less or something else."""
    found = _PLAIN.fullmatch(line)
    if found is None:
        return None
    return (None, _pairs(found[3])) if found[3] is not None else (found[1].decode(), _pairs(found[2]))


def _statement(text: bytes, at: int, line: int) -> tuple[Statement | None, int]:
    """Return the statement around a place, if it is one, and where to go on."""
    start = max(line, text.rfind(b";", line + 1, at), text.rfind(b":", line + 1, at)) + 1
    while start > 1 and text[start - 2 : start - 1] == b"\\":  # the line before goes on
        start = text.rfind(b"\n", 0, start - 1) + 1
    plain = _IMPORT.match(text, start)
    if plain:
        return (None, _pairs(plain[1])), max(at + 6, plain.end())
    other = _FROM.match(text, start)
    if other:
        return (_joined(other[1]), _pairs(other[2] if other[2] is not None else other[3])), max(at + 6, other.end())
    return None, at + 6


def _pairs(items: bytes) -> Pairs:
    plain = _COMMENT.sub(b"", items) if b"#" in items else items
    return tuple(_PAIRS.findall(plain.decode(errors="replace")))


def _joined(written: bytes) -> str:
    return "".join(written.decode(errors="replace").replace("\\", " ").split())


def _based(name: str, package: list[str]) -> str:
    """Return the full name of what a statement imports from."""
    if not name.startswith("."):
        return name
    rest = name.lstrip(".")
    base = package[: len(package) - (len(name) - len(rest) - 1)]
    return ".".join([*base, *([rest] if rest else [])])
