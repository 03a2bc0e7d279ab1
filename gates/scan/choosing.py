"""Which files rules need: those with their words, each judged among those of its folder, with what these import."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

from gates.code.syntax import content
from gates.scan.pattern import Pattern
from gates.scan.program.module import Module, package_of
from gates.scan.rule import Rule, Shape
from gates.words import grouped

Fits = Callable[[Pattern], bool]


def may_speak(rule: Rule, fits: Fits, *, kept: bool) -> bool:
    """Return whether a rule may speak of a file, by the patterns that code in it may fit; `kept` if it may keep it."""
    if not rule.events:
        return any(each.may_fit(fits) for each in (rule.form, *(rule.form.kept if kept else ())))
    possible = frozenset(kind.name for kind in rule.events if any(map(fits, kind.code.patterns)))
    return (rule.is_about if kept else rule.may_speak)(possible)


def patterns_of(rule: Rule) -> Iterator[Pattern]:
    """Yield the patterns of a rule, those of what must be around and in others too."""
    yield from (pattern for kind in rule.events for pattern in kind.code.patterns)
    todo: list[Shape] = [rule.form, *rule.form.kept]
    while todo:
        shape = todo.pop()
        yield from shape.patterns
        todo += (*shape.inside, *shape.has)


CLASS = "class"
MOST = 24  # files of one folder that are judged together
_SPACED = bytes(byte if byte >= 128 or chr(byte).isalnum() or byte == ord("_") else ord(" ") for byte in range(256))
_NAME = re.compile(r"[*\w]+")
_COMMENT = re.compile(r"#.*")
_IMPORT = re.compile(r"[\n:;][ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n;]+)|import[ \t]+([^\n;#]+))")
_FUNCTION = re.compile(r"\n[ \t]*(?:async[ \t]+)?def[ \t]")


class FileFacts(NamedTuple):
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
    text = _text(raw)
    return FileFacts(_words(text, words), tuple(sorted(set(_imports(text, shown)))), len(_FUNCTION.findall(text)))


def mentions(path: Path, words: Collection[str]) -> bool:
    """Return whether a file holds one of some words."""
    raw = content(path)
    text = _text(raw) if isinstance(raw, bytes) else ""
    return any(re.search(rf"{word}(?<!\w{word})(?!\w)", text) for word in words)  # what is written first is fast


def _text(raw: bytes) -> str:
    """Return the text of a file as Python reads identifiers, each line after an end of one."""
    text = raw.decode(errors="replace")
    return "\n" + (text if raw.isascii() else unicodedata.normalize("NFKC", text))


def _words(text: str, words: Collection[str]) -> frozenset[str]:
    there = set(text.encode(errors="replace").translate(_SPACED).split())
    return frozenset(word for word in words if word.encode() in there)


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
    for there in grouped(sorted(files), lambda shown: shown.rpartition("/")[0]).values():
        for at in range(0, len(there), MOST):
            judged = frozenset(there[at : at + MOST])
            yield sorted(judged.union(*(links[shown] for shown in judged))), judged


class TreeFacts(NamedTuple):
    """What a file's tree tells: what it `uses`, by word the names that stand for it (`lends`), or `leads` to it."""

    uses: frozenset[str]
    lends: Mapping[str, frozenset[str]]
    leads: Mapping[str, frozenset[str]]


def may_matter(rules: Collection[Rule], facts: Facts, links: Links, *, kept: bool) -> set[str]:
    """Return the files that may have what a rule speaks of, by their words and those of what they import, and that."""
    found: set[str] = set()
    for shown, fact in facts.items():
        words = fact.words.union(*(facts[target].words for target in links[shown]))
        fits = partial(lambda words, pattern: pattern.words <= words, words)
        if any(CLASS in words if rule.form.members else may_speak(rule, fits, kept=kept) for rule in rules):
            found |= {shown, *links[shown]}
    return found


class Choice:
    """Answers which files rules may speak of, by what their trees tell and those of what they import."""

    def __init__(self, rules: Collection[Rule], links: Links) -> None:
        self._links = links
        self._trees: dict[str, TreeFacts] = {}
        self._lendable = frozenset(word for rule in rules for each in patterns_of(rule) for word in each.lendable)
        self._patterns = {p.text: p for rule in rules for kind in rule.events for p in kind.code.patterns}

    def read(self, module: Module) -> None:
        """Take in what the tree of a file tells."""
        lends = {word: frozenset(module.renames[word] - {word}) for word in self._lendable & module.renames.keys()}
        events = (pattern for pattern in self._patterns.values() if pattern.uses <= module.uses)
        held = {word for pattern in events for word in pattern.words & module.uses}
        self._trees[module.path] = TreeFacts(module.uses, lends, {word: module.leading(word) for word in held})

    @cached_property
    def _events(self) -> dict[str, frozenset[str]]:
        """Return the patterns of events that code of each file may fit, or come to in what it imports."""
        own = {s: frozenset(text for text, p in self._patterns.items() if self._fits(s, p)) for s in self._trees}
        return {s: held.union(*(self._led(near, s, own[near]) for near in self._near(s))) for s, held in own.items()}

    def _near(self, shown: str) -> Iterator[str]:
        return (target for target in self._links[shown] if target in self._trees)

    def wanted(self, rule: Rule, *, kept: bool) -> set[str]:
        """Return the files that may break a rule, or keep it."""
        fits = (lambda shown, pattern: pattern.text in self._events[shown]) if rule.events else self._fits
        return {shown for shown in self._trees if may_speak(rule, partial(fits, shown), kept=kept)}

    def tells(self, shown: str) -> bool:
        """Return whether what a file holds may matter where it is imported."""
        return bool(self._events.get(shown) or (shown in self._trees and self._trees[shown].lends))

    def _fits(self, shown: str, pattern: Pattern) -> bool:
        """Return whether code in a file may fit a pattern, by names of its own or those that another file lends."""
        uses = self._trees[shown].uses
        lent = pattern.lendable - uses
        near = [self._trees[target].lends for target in self._near(shown)] if lent else []
        return pattern.uses <= uses and all(any(uses & lends.get(word, set()) for lends in near) for word in lent)

    def _led(self, target: str, shown: str, held: Iterable[str]) -> Iterator[str]:
        """Yield the patterns of an imported file that a file comes to by the name of a function, class or variable."""
        tree, uses = self._trees[target], self._trees[shown].uses
        for text in held:
            leads = (names.get(word, ()) for word in self._patterns[text].words for names in (tree.lends, tree.leads))
            if any(not uses.isdisjoint(names) for names in leads):
                yield text
