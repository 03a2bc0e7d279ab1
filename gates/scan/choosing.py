"""Which files rules need: those with their words, each judged among those of its folder, with what these import."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from gates.code.syntax import content
from gates.scan.pattern import Pattern
from gates.scan.program.module import Module, package_of
from gates.scan.program.project import Project
from gates.scan.rule import Rule, Shape

Fits = Callable[[Pattern], bool]


TELLING = frozenset({"setattr", "omegaconf", "hydra"})  # by which any object may have what its class lacks


def words_of(rule: Rule) -> Iterator[frozenset[str]]:
    """Yield sets of words of which a file must hold one whole for a rule to speak of it."""
    if rule.form.members:
        yield frozenset({"class"})
    yield from (pattern.words for pattern in patterns_of(rule))


def patterns_of(rule: Rule) -> Iterator[Pattern]:
    """Yield the patterns of a rule, those of what must be around and in others too."""
    yield from (pattern for kind in rule.events for pattern in kind.code.patterns)
    todo: list[Shape] = [rule.form, *rule.form.kept]
    while todo:
        shape = todo.pop()
        yield from shape.patterns
        todo += (*shape.inside, *shape.has)


def _may_fit(shape: Shape, fits: Fits) -> bool:
    """Return whether something in a file may fit a shape, by what it must write for that."""
    if shape.patterns and not shape.words and not any(map(fits, shape.patterns)):
        return False
    return all(not some or any(_may_fit(each, fits) for each in some) for some in (shape.inside, shape.has))


MOST = 24  # files of one folder that are judged together
STEPS = 1  # imports that are followed from what is judged
_SPACED = bytes(byte if byte >= 128 or chr(byte).isalnum() or byte == ord("_") else ord(" ") for byte in range(256))
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
    there = set(text.encode(errors="replace").translate(_SPACED).split())
    return FileFacts(
        frozenset(word for word in words if word.encode() in there),
        tuple(sorted(set(_imports(text, shown)))),
        len(_FUNCTION.findall(text)),
    )


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


@dataclass(frozen=True)
class TreeFacts:
    """What the tree of a file tells: what it uses and sets, and which words it lends another name.

    By word that it uses, `leads` are the functions and classes that come to it, by base `heirs` those that extend it.
    It may `lack` an attribute of a class.
    """

    uses: frozenset[str] = frozenset()
    lends: Mapping[str, frozenset[str]] = field(default_factory=dict)
    leads: Mapping[str, frozenset[str]] = field(default_factory=dict)
    stores: frozenset[str] = frozenset()
    lacks: frozenset[tuple[str, str]] = frozenset()
    heirs: Mapping[str, frozenset[str]] = field(default_factory=dict)


def may_matter(rules: Iterable[Rule], facts: Facts, links: Links) -> set[str]:
    """Return the files that hold the words that a rule asks for, themselves or in what they import, and that."""
    asked = {words for rule in rules for words in words_of(rule)}
    found: set[str] = set()
    for shown, fact in facts.items():
        words = fact.words.union(*(facts[target].words for target in links[shown]))
        if any(literal <= words for literal in asked):
            found |= {shown, *links[shown]}
    return found


class Asked:
    """What some rules ask the tree of a file."""

    def __init__(self, rules: Collection[Rule]) -> None:
        self._lendable = frozenset(word for rule in rules for each in patterns_of(rule) for word in each.lendable)
        self._events = {p.text: p for rule in rules for kind in rule.events for p in kind.code.patterns}.values()
        self._members = any(rule.form.members for rule in rules)

    def of(self, module: Module, project: Project) -> TreeFacts:
        """Return what the tree of a file tells; other files of the project are read where a name leads to them."""
        lends = {word: frozenset(module.renames[word] - {word}) for word in self._lendable & module.renames.keys()}
        held = {word for p in self._events if p.uses <= module.uses for word in p.words & module.uses}
        leads = {word: module.leading(word) for word in held}
        if not self._members:
            return TreeFacts(module.uses, lends, leads)
        from gates.scan.members import heirs_of, lacking  # most rules need none of it

        lacks = frozenset((node.attr, info.node.name) for node, info in lacking(project, module, module.stores))
        return TreeFacts(module.uses, lends, leads, module.stores, lacks, heirs_of(module))


class Choice:
    """Answers which files rules may speak of, by what their trees tell and those of what they import."""

    def __init__(self, rules: Iterable[Rule], trees: Mapping[str, TreeFacts], links: Links) -> None:
        self._trees = trees
        self._links = {shown: [target for target in links[shown] if target in trees] for shown in trees}
        self._patterns = {p.text: p for rule in rules for kind in rule.events for p in kind.code.patterns}
        own = {s: frozenset(text for text, p in self._patterns.items() if self._fits(s, p)) for s in trees}
        self._events = {
            shown: held.union(*(self._led(target, shown, own[target]) for target in self._links[shown]))
            for shown, held in own.items()
        }

    def wanted(self, rule: Rule, *, kept: bool) -> set[str]:
        """Return the files that may break a rule, or keep it."""
        if rule.form.members:
            return {shown for shown in self._trees if self._lacks(shown)}
        if not rule.events:
            shapes = (rule.form, *(rule.form.kept if kept else ()))
            return {s for s in self._trees if any(_may_fit(each, partial(self._fits, s)) for each in shapes)}
        possible = {
            shown: frozenset(kind.name for kind in rule.events if any(p.text in held for p in kind.code.patterns))
            for shown, held in self._events.items()
        }
        speaks = rule.is_about if kept else rule.may_speak
        return {s for s in possible if speaks(possible[s])}

    def tells(self, shown: str) -> bool:
        """Return whether what a file holds may matter where it is imported."""
        return bool(self._events.get(shown) or (shown in self._trees and self._trees[shown].lends))

    def _fits(self, shown: str, pattern: Pattern) -> bool:
        """Return whether code in a file may fit a pattern, by names of its own or those that another file lends."""
        uses = self._trees[shown].uses
        if not pattern.uses <= uses:
            return False
        near = [self._trees[target].lends for target in self._links[shown]]
        return all(any(not uses.isdisjoint(lends.get(word, ())) for lends in near) for word in pattern.lendable - uses)

    def _led(self, target: str, shown: str, held: Iterable[str]) -> Iterator[str]:
        """Yield the patterns of an imported file that a file comes to by the name of a function, class or variable."""
        tree, uses = self._trees[target], self._trees[shown].uses
        for text in held:
            leads = (names.get(word, ()) for word in self._patterns[text].words for names in (tree.lends, tree.leads))
            if any(not uses.isdisjoint(names) for names in leads):
                yield text

    def _lacks(self, shown: str) -> bool:
        """Return whether objects may lack something in a file that nothing near it stores."""
        near = frozenset().union(*(self._trees[target].stores for target in self._links[shown]))
        return any(name not in near for name, _ in self._trees[shown].lacks)

    def members(self, judged: Iterable[str], files: Collection[str]) -> list[str]:
        """Return those of some files that may speak of what others lack: of the attribute, its class or an heir."""
        names = {name for shown in judged for pair in self._trees[shown].lacks for name in pair} | TELLING
        trees = {shown: self._trees[shown] for shown in files if shown in self._trees}
        todo = set(names)
        while todo:
            todo = {heir for tree in trees.values() for base in todo for heir in tree.heirs.get(base, ())} - names
            names |= todo
        return [s for s, tree in trees.items() if not (names.isdisjoint(tree.uses) and names.isdisjoint(tree.stores))]
