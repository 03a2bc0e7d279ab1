"""Which files rules need: those with their words, each judged among those of its folder, with what these import."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gates.scan.program.reading import content, package_of
from gates.scan.rule import Piece, Rule

COMMON = frozenset({"step", "update", "grad", "data"})


def literals(rule: Rule) -> tuple[frozenset[str], ...]:
    """Return sets of words of which a file must hold one whole; an empty set means every file."""
    return tuple(dict.fromkeys(_literals(rule)))


def _literals(rule: Rule) -> Iterator[frozenset[str]]:
    if rule.events:
        told = [found for events in rule.required if (found := _words(rule, events))]
        yield from told[0] if told else _words(rule, frozenset(kind.name for kind in rule.events), whole=False)
    elif rule.form.members:
        yield frozenset({"class"})
    pieces: list[Piece] = [*([rule.piece] if rule.piece else []), *rule.when, *rule.kept]
    for piece in pieces:
        for pattern in piece.patterns:
            yield pattern.words
        if piece.words:
            yield frozenset()
    for pattern in rule.there:
        yield pattern.words


def _words(rule: Rule, events: frozenset[str], *, whole: bool = True) -> list[frozenset[str]]:
    """Return the words of each pattern of some events; common ones tell nothing, of any or of the `whole`."""
    kinds = [kind for kind in rule.events if kind.name in events]
    found = [pattern.words for kind in kinds for pattern in (*kind.calls, *kind.enters, *kind.leaves)]
    telling = [words for words in found if not words <= COMMON]
    return telling if len(telling) == len(found) or not whole else []


MOST = 24  # files of one folder that are judged together
STEPS = 1  # imports that are followed from what is judged
_WORD = re.compile(r"\b[^\W\d]\w*")
_NAME = re.compile(r"[*\w]+")
_COMMENT = re.compile(r"#.*")
_IMPORT = re.compile(
    r"(?:^|[:;])[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n;]+)|import[ \t]+([^\n;#]+))", re.MULTILINE
)
_FUNCTION = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]", re.MULTILINE)


@dataclass(frozen=True)
class FileFacts:
    """What decides whether a file matters: those of some words that it has, what it imports, why it is unreadable."""

    words: frozenset[str] = frozenset()
    imports: tuple[str, ...] = ()
    functions: int = 0
    problem: str = ""


Facts = Mapping[str, FileFacts]
Links = Mapping[str, list[str]]


def facts_of(path: Path, shown: str, words: frozenset[str]) -> FileFacts:
    """Read what decides whether a file matters."""
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


def batches(files: Collection[str], links: Links) -> Iterator[tuple[list[str], frozenset[str]]]:
    """Yield files that are read together, and those of them that are judged: some of one folder."""
    folders: dict[str, list[str]] = defaultdict(list)
    for shown in sorted(files):
        folders[shown.rpartition("/")[0]].append(shown)
    for there in folders.values():
        for at in range(0, len(there), MOST):
            judged = frozenset(there[at : at + MOST])
            yield sorted(_reached(judged, links)), judged


def _reached(files: frozenset[str], links: Links) -> set[str]:
    found, edge = set(files), set(files)
    for _ in range(STEPS):
        edge = {target for shown in edge for target in links[shown]} - found
        found |= edge
    return found


def wanted(literals: Collection[frozenset[str]], facts: Facts, links: Links) -> set[str]:
    """Return the files that hold the words of a rule, themselves or in what they import."""
    found = {}
    for shown, fact in facts.items():
        found[shown] = fact.words.union(*(facts[target].words for target in links[shown]))
    return {shown for shown, words in found.items() if any(literal <= words for literal in literals)}
