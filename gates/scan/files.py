"""What the text of a file tells before it is parsed: its words and imports; and which files are read together."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gates.code.syntax import content
from gates.scan.program.module import package_of

MOST = 24  # files of one folder that are judged together
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"[*\w]+")
_COMMENT = re.compile(r"#.*")
_IMPORT = re.compile(
    r"(?:^|[:;])[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n;]+)|import[ \t]+([^\n;#]+))", re.MULTILINE
)
_FUNCTION = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]", re.MULTILINE)


@dataclass(frozen=True)
class FileFacts:
    """Those of some words that a file has, what it imports, how many functions it has, why it is unreadable."""

    words: frozenset[str] = frozenset()
    imports: tuple[str, ...] = ()
    functions: int = 0
    problem: str = ""


Facts = Mapping[str, FileFacts]
Links = Mapping[str, list[str]]


def facts_of(path: Path, shown: str, words: frozenset[str]) -> FileFacts:
    """Read what the text of a file tells."""
    raw = content(path)
    if isinstance(raw, str):
        return FileFacts(problem=f"{shown}:1: {raw}")
    plain = raw.decode(errors="replace")
    text = plain if raw.isascii() else unicodedata.normalize("NFKC", plain)  # as Python reads identifiers
    there = words & set(_WORD.findall(text))
    return FileFacts(there, tuple(sorted(set(_imports(text, shown)))), len(_FUNCTION.findall(text)))


def _imports(text: str, shown: str) -> Iterator[str]:
    """Yield the dotted names that a file's imports may lead to, those of its texts too."""
    for module, names, plain in _IMPORT.findall(text):
        yield from (name.split(" as ")[0].strip() for name in plain.split(",") if plain)
        if module:
            inner = module.lstrip(".")
            parts = package_of(shown).split(".")
            level = len(module) - len(inner)
            base = ".".join(filter(None, [*(parts[: len(parts) - level + 1] if level else ()), inner]))
            words = (_NAME.search(name) for name in _COMMENT.sub("", names).split(","))
            yield from (base, *(f"{base}.{word[0]}" for word in words if word))


def links_of(facts: Facts) -> Links:
    """Return for each file those that its imports may mean."""
    named: dict[str, list[str]] = defaultdict(list)
    for shown in facts:
        parts = shown.removesuffix(".py").removesuffix("/__init__").split("/")
        for at in range(len(parts)):
            named[".".join(parts[at:])].append(shown)
    return {shown: sorted(set(_targets(shown, fact, named)) - {shown}) for shown, fact in facts.items()}


def _targets(shown: str, fact: FileFacts, named: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the files that the imports of one may mean: those beside it before others."""
    folder = shown.rpartition("/")[0]
    for name in fact.imports:
        found = named.get(name, [])
        beside = [target for target in found if target.rpartition("/")[0] == folder]
        yield from beside or (found if len(found) <= 2 else [t for t in found if t.count("/") == name.count(".")])


def batches(links: Links) -> Iterator[tuple[list[str], list[str]]]:
    """Yield files that are judged together, some of one folder, and all that are read for these: their imports, too."""
    folders: dict[str, list[str]] = defaultdict(list)
    for shown in sorted(links):
        folders[shown.rpartition("/")[0]].append(shown)
    for there in folders.values():
        for at in range(0, len(there), MOST):
            judged = there[at : at + MOST]
            yield judged, sorted({*judged, *(target for shown in judged for target in links[shown])})
