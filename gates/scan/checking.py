"""Rules applied to files: each to those whose words let it speak, some of one folder at a time."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path

from gates import garbage_collection
from gates.code.syntax import Unparsed, content
from gates.scan.engine import Endless, Scanner, limited
from gates.scan.pattern import Pattern
from gates.scan.program.module import Module, package_of
from gates.scan.program.project import Project, module_of
from gates.scan.rule import Rule, Shape, Site

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


SHARED = 64  # files whose trees are held for the next folder


@dataclass
class Checked:
    """What rules found: the places of each, the files that could not be read, and why a rule could not be applied."""

    sites: dict[str, list[Site]] = field(default_factory=dict)
    unparsed: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    files: int = 0
    functions: int = 0


def check(rules: Sequence[Rule], files: Iterable[Path], root: Path, *, kept: bool = True) -> Checked:
    """Apply rules to the files of a program; without `kept` files that cannot break a rule are left out."""
    paths = {_shown(path, root): path for path in files}
    found = Checked(files=len(paths), sites={rule.id: [] for rule in rules})
    asked = frozenset(word for rule in rules for each in _patterns_of(rule) for word in each.words) | {"class"}
    with garbage_collection.put_off():
        facts = {shown: facts_of(path, shown, asked) for shown, path in paths.items()}
        found.functions = sum(fact.functions for fact in facts.values())
        unread = {shown: fact.problem for shown, fact in facts.items() if fact.problem}
        links = links_of({shown: fact for shown, fact in facts.items() if not fact.problem})
        words = {s: facts[s].words.union(*(facts[target].words for target in links[s])) for s in links}
        read = partial(_module, paths, unread)
        for judged, near in batches(links):
            there = [shown for shown in judged if read(shown) is not None]
            speaks = {r.id: frozenset(s for s in there if may_speak(r, words[s], kept=kept)) for r in rules}
            _apply([(r, speaks[r.id]) for r in rules if speaks[r.id]], partial(Project, near, read), found, kept=kept)
    found.unparsed = [unread[shown] for shown in paths if shown in unread]
    found.sites = {rule: sorted(set(sites)) for rule, sites in found.sites.items()}
    return found


def _module(paths: Mapping[str, Path], unread: dict[str, str], shown: str) -> Module | None:
    """Return a file as Python; one that turns out to be none comes to the `unread`."""
    raw = content(paths[shown])
    found = _parsed(shown, raw) if isinstance(raw, bytes) else f"{shown}:1: {raw}"
    if isinstance(found, Module):
        return found
    unread[shown] = found
    return None


def _apply(
    chosen: Sequence[tuple[Rule, frozenset[str]]], project: Callable[[], Project], found: Checked, *, kept: bool
) -> None:
    """Apply rules, each to some of the files that are read together."""
    if not chosen:
        return
    scanner = Scanner(project(), kept=kept)
    for rule, judged in chosen:
        if rule.own and rule.id in found.problems:
            continue
        try:
            with limited() if rule.own else nullcontext():
                found.sites[rule.id] += scanner.sites(rule, judged)
        except RecursionError:
            found.problems[rule.id] = "the code is nested too deep to be followed"
        except Endless as error:
            found.problems[rule.id] = f"{rule.source}: {error} in {min(judged).rpartition('/')[0] or '.'}"
            scanner = Scanner(project(), kept=kept)  # what it was about is half done
    scanner.project.close()


def may_speak(rule: Rule, words: frozenset[str], *, kept: bool) -> bool:
    """Return whether a rule may speak of a file that has some words, itself or in what it imports."""
    if rule.form.members:
        return "class" in words
    if not rule.events:
        return any(_may_fit(shape, words) for shape in (rule.form, *rule.form.kept))
    possible = {event.name for event in rule.events if any(p.words <= words for p in event.code.patterns)}
    return rule.speaks(kept=kept)(frozenset(possible))


def _may_fit(shape: Shape, words: frozenset[str]) -> bool:
    if shape.patterns and not shape.words and not any(pattern.words <= words for pattern in shape.patterns):
        return False
    return all(not some or any(_may_fit(each, words) for each in some) for some in (shape.inside, shape.has))


def _patterns_of(rule: Rule) -> Iterator[Pattern]:
    """Yield the patterns of a rule, those of what must be around and in others too."""
    yield from (pattern for event in rule.events for pattern in event.code.patterns)
    todo = [rule.form, *rule.form.kept]
    while todo:
        shape = todo.pop()
        yield from shape.patterns
        todo += (*shape.inside, *shape.has)


@lru_cache(maxsize=SHARED)
def _parsed(shown: str, raw: bytes) -> Module | str:
    try:
        return module_of(shown, raw)
    except Unparsed as error:
        return str(error)


def _shown(path: Path, root: Path) -> str:
    return path.as_posix().removeprefix(f"{root.as_posix().rstrip('/')}/")
