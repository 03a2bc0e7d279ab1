"""Rules applied to files: only those files read that may matter to a rule, and what is known from before not again."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from gates import garbage_collection
from gates.scan.engine import Scanner
from gates.scan.literals import is_local, lendable, literals
from gates.scan.memory import FileFacts, Memory
from gates.scan.project import Project
from gates.scan.reading import content, module_of
from gates.scan.rule import Rule
from gates.scan.site import Site
from gates.syntax import Unparsed

UPWARD, DOWNWARD = 4, 3
LENT = "\0"  # before a word that a file may lend to others
_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import\b|import[ \t]+([\w., \t]+))", re.MULTILINE)
_FROM = re.compile(rb"^[ \t]*from[ \t]+([.\w]*)[ \t]+import[ \t]*\(?([^)#\n]*(?:\n[^)#]*?(?=\)))?)", re.MULTILINE)


@dataclass
class Checked:
    """What rules found: the places of each, the files that could not be read, and why a rule could not be applied."""

    sites: dict[str, list[Site]] = field(default_factory=dict)
    unparsed: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    files: int = 0
    read: int = 0


def check(rules: Sequence[Rule], files: Iterable[Path], root: Path, memory: Memory | None = None) -> Checked:
    """Apply rules to the files of a program."""
    memory = memory or Memory(None)
    paths = {_shown(path, root): path for path in files}
    found = Checked(files=len(paths), sites={rule.id: [] for rule in rules})
    local = [rule for rule in rules if is_local(rule)]
    for part, choose in ((local, _chosen_locally), ([rule for rule in rules if rule not in local], _chosen)):
        if part:
            facts = _facts_of(part, paths, memory, linked=choose is _chosen)
            if choose is _chosen_locally and any(fact.lends for fact in facts.values()):
                facts = _facts_of(part, paths, memory, linked=True)
            found.unparsed += [f.problem for f in facts.values() if f.problem and f.problem not in found.unparsed]
            for group in _groups(choose(part, facts), facts):
                with garbage_collection.put_off():
                    _check_group(part, group, facts, paths, found, memory)
    memory.save()
    found.read = memory.read
    for sites in found.sites.values():
        sites.sort()
    return found


def _facts_of(
    rules: Sequence[Rule], paths: Mapping[str, Path], memory: Memory, *, linked: bool
) -> dict[str, FileFacts]:
    """Return the facts of each file that some rules need; with what it imports only where files are linked."""
    words = sorted({word for rule in rules for literal in literals(rule) for word in literal})
    read = _linked_facts if linked else _facts
    lent = sorted({name for rule in rules for name in lendable(rule)})
    asked = [*words, *(f"{LENT}{name}" for name in lent), f"{LENT}{linked}"]  # kept apart in the memory
    return {shown: memory.facts(path, shown, asked, read) for shown, path in paths.items()}


def _check_group(
    rules: Sequence[Rule], group: list[str], facts: Mapping[str, FileFacts], paths: Mapping[str, Path],
    found: Checked, memory: Memory,
) -> None:  # fmt: skip
    """Apply rules to files that import each other, or take what they came to when the files were the same."""
    key = hashlib.sha256("\n".join(f"{shown}\0{facts[shown].digest}" for shown in group).encode()).hexdigest()
    wanted = [rule for rule in rules if memory.result(key, rule) is None]
    if wanted:
        scanner, unparsed = _scanner(group, paths)
        memory.read += len(group)
        for rule in wanted:
            sites, problem = _sites(scanner, rule)
            memory.keep(key, rule, sites, unparsed, problem)
    for rule in rules:
        sites, unparsed, problem = memory.result(key, rule) or ([], [], "")
        found.sites[rule.id] += sites
        found.unparsed += [text for text in unparsed if text not in found.unparsed]
        if problem:
            found.problems[rule.id] = problem


def _sites(scanner: Scanner, rule: Rule) -> tuple[list[Site], str]:
    try:
        return scanner.sites(rule), ""
    except RecursionError:
        return [], "the code is nested too deep to be followed"


def _scanner(group: Iterable[str], paths: Mapping[str, Path]) -> tuple[Scanner, list[str]]:
    modules, unparsed = [], []
    for shown in group:
        raw = content(paths[shown])
        if isinstance(raw, str):
            unparsed.append(f"{shown}:1: {raw}")
            continue
        if not _is_text(raw) and b"coding" not in raw[:200]:
            unparsed.append(f"{shown}:1: it is not UTF-8")
            continue
        try:
            modules.append(module_of(shown, raw))
        except Unparsed as error:
            unparsed.append(str(error))
    return Scanner(Project(modules, unparsed)), unparsed


def _shown(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def _facts(path: Path, shown: str, words: Sequence[str]) -> FileFacts:
    """Read what decides whether a file matters by itself: its words, and whether it lends one to other files."""
    raw = content(path)
    if isinstance(raw, str):
        return FileFacts("", (), (), f"{shown}:1: {raw}")
    found = tuple(word for word in words if not word.startswith(LENT) and word.encode() in raw)
    names = [word[1:].split(".") for word in words if word.startswith(LENT) and "." in word]
    lent = tuple(sorted({last for first, last in names if last in found and first.encode() in raw}))
    lends = bool(lent) and _lending(lent).search(raw) is not None
    return FileFacts(hashlib.sha256(raw).hexdigest(), found, (), is_text=_is_text(raw), lends=lends)


def _linked_facts(path: Path, shown: str, words: Sequence[str]) -> FileFacts:
    """Read the same, and the modules that the file imports."""
    facts = _facts(path, shown, words)
    raw = content(path) if not facts.problem else ""
    return facts if isinstance(raw, str) else replace(facts, imports=tuple(sorted(_imported(raw, shown))))


@cache
def _lending(words: tuple[str, ...]) -> re.Pattern[bytes]:
    """Return a pattern for lines that give a word another name: `import a as b`, `b = a`, `b = partial(a, ...)`."""
    some = b"|".join(re.escape(word.encode()) for word in words)
    renamed = rb"^[^\n#]*\b(?:%s)[ \t]+as\b" % some
    kept = rb"^[ \t]*[\w.]+[ \t]*=[^=\n][^\n]*\b(?:%s)[ \t]*(?:$|[,)#\]}]|if\b|or\b)" % some
    return re.compile(rb"%s|%s" % (renamed, kept), re.MULTILINE)


def _is_text(raw: bytes) -> bool:
    """Return whether the words of a file can be told from its bytes."""
    try:
        return b"\0" not in raw and (raw.isascii() or bool(raw.decode("utf-8-sig")))
    except UnicodeDecodeError:
        return False


def _imported(raw: bytes, shown: str) -> set[str]:
    """Return the dotted names that a file's imports may lead to, relative ones from the root."""
    package = shown.removesuffix(".py").split("/")[:-1]
    found: set[str] = set()
    for line in _IMPORT.finditer(raw):
        if line[2]:
            found |= {part.strip().split(b" ")[0].decode(errors="replace") for part in line[2].split(b",")}
    for line in _FROM.finditer(raw):
        name = line[1].decode(errors="replace")
        dots = len(name) - len(name.lstrip("."))
        base = package[: len(package) - (dots - 1)] if dots else []
        origin = ".".join([*base, *([name.lstrip(".")] if name.lstrip(".") else [])])
        found.add(origin)
        for part in re.split(rb"[,\s()\\]+", line[2]):
            if part and part not in {b"as", b"*"}:
                found.add(f"{origin}.{part.decode(errors='replace')}")
    return {name for name in found if name}


def _chosen(rules: Sequence[Rule], facts: Mapping[str, FileFacts]) -> set[str]:
    """Return the files that a rule may speak of, those that run them, and those that they are made with."""
    wanted = [literal for rule in rules for literal in literals(rule)]
    seeds = {
        shown
        for shown, fact in facts.items()
        if not fact.is_text or any(literal <= set(fact.words) for literal in wanted)
    }
    down = _links(facts)
    up: dict[str, set[str]] = defaultdict(set)
    for shown, targets in down.items():
        for target in targets:
            up[target].add(shown)
    if not all(wanted):
        return set(facts)  # a rule asks of the whole program, so every file matters
    return _reached(seeds, up, UPWARD) | _reached(seeds, down, DOWNWARD)


def _chosen_locally(rules: Sequence[Rule], facts: Mapping[str, FileFacts]) -> set[str]:
    """Return the files that hold the words of a rule, and those to which one of them lends a word by another name."""
    wanted = [literal for rule in rules for literal in literals(rule)]
    if not all(wanted):
        return set(facts)
    seeds = {s for s, f in facts.items() if not f.is_text or any(literal <= set(f.words) for literal in wanted)}
    lending = {shown for shown in seeds if facts[shown].lends}
    up: dict[str, set[str]] = defaultdict(set)
    for shown, targets in (_links(facts) if lending else {}).items():
        for target in targets:
            up[target].add(shown)
    return seeds | _reached(lending, up, 1)


def _reached(seeds: set[str], links: Mapping[str, set[str]], steps: int) -> set[str]:
    found, edge = set(seeds), set(seeds)
    for _ in range(steps):
        edge = {target for shown in edge for target in links.get(shown, ())} - found
        found |= edge
    return found


def _links(facts: Mapping[str, FileFacts]) -> dict[str, set[str]]:
    """Return for each file the files that it imports, by name, by the end of a name, or from beside it."""
    named: dict[str, list[str]] = defaultdict(list)
    for shown in facts:
        parts = shown.removesuffix(".py").split("/")
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        for at in range(len(parts)):
            named[".".join(parts[at:])].append(shown)
    links: dict[str, set[str]] = {}
    for shown, fact in facts.items():
        found: set[str] = set()
        folder = shown.rpartition("/")[0]
        for name in fact.imports:
            targets = named.get(name, [])
            beside = [t for t in targets if t.rpartition("/")[0] == folder]
            found |= set(
                beside or (targets if len(targets) <= 2 else [t for t in targets if t.count("/") == name.count(".")])
            )
        links[shown] = found - {shown}
    return links


def _groups(chosen: set[str], facts: Mapping[str, FileFacts]) -> Iterator[list[str]]:
    """Yield the chosen files in groups that have nothing to do with each other."""
    links = _links({shown: facts[shown] for shown in chosen})
    around: dict[str, set[str]] = defaultdict(set)
    for shown, targets in links.items():
        for target in targets:
            around[shown].add(target)
            around[target].add(shown)
    left = set(chosen)
    for shown in sorted(chosen):
        if shown in left:
            group = _reached({shown}, around, len(left))
            left -= group
            yield sorted(group)
