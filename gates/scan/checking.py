"""Rules applied to files: only those files read that may matter to a rule, and what is known from before not again."""

import gc
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from gates import garbage_collection
from gates.code.syntax import Unparsed
from gates.scan.choosing import Imports, chosen, chosen_alone, firsts_of, groups, narrowed
from gates.scan.endless import Endless
from gates.scan.engine import Scanner
from gates.scan.facts import FUNCTIONS, LENT, facts_of
from gates.scan.literals import is_local, literals, names, rooted_literals
from gates.scan.memory import FileFacts, Memory
from gates.scan.program.module import Module
from gates.scan.program.project import Project
from gates.scan.program.reading import content, module_of
from gates.scan.rule import Rule
from gates.scan.site import Site

MANY = 100  # files whose trees are worth a search for garbage
SHARED = 128  # files whose trees are held for the next check
FEW = 40  # files that are read as one program even where none imports another: a caller may hand on what each has


@dataclass(frozen=True)
class Group:
    """Files that are read together, and those of them that are judged."""

    files: list[str]
    facts: Mapping[str, FileFacts]
    judged: frozenset[str]

    @cached_property
    def key(self) -> str:
        """Return the digest of what the files hold."""
        listed = [f"{shown}\0{self.facts[shown].digest}\0{shown in self.judged}" for shown in self.files]
        return hashlib.sha256("\n".join(listed).encode(errors="surrogatepass")).hexdigest()


def _module(shown: str, path: Path) -> Module | str:
    """Return a file as Python, or the reason why it cannot be read."""
    raw = content(path)
    if isinstance(raw, str):
        return f"{shown}:1: {raw}"
    return _parsed(shown, raw)


@lru_cache(maxsize=SHARED)
def _parsed(shown: str, raw: bytes) -> Module | str:
    """Parse a file; one that is as it was in an earlier check of this process is not parsed again."""
    try:
        return module_of(shown, raw)
    except Unparsed as error:
        return str(error)


@dataclass
class Checked:
    """What rules found: the places of each, the files that could not be read, and why a rule could not be applied."""

    sites: dict[str, list[Site]] = field(default_factory=dict)
    unparsed: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    files: int = 0
    read: int = 0
    functions: int = 0


def check(rules: Sequence[Rule], files: Iterable[Path], root: Path, memory: Memory | None = None) -> Checked:
    """Apply rules to the files of a program."""
    memory = memory or Memory(None)
    paths = {_shown(path, root): path for path in files}
    found = Checked(files=len(paths), sites={rule.id: [] for rule in rules})
    alone = [rule for rule in rules if is_local(rule)]
    linked = [rule for rule in rules if rule not in alone]
    with garbage_collection.put_off():
        imports = _imports(alone, linked, paths, memory)
        facts = imports.facts
        found.unparsed += [fact.problem for fact in facts.values() if fact.problem]
        found.functions = sum(fact.functions for fact in facts.values())
        for group, judged in chosen_alone(alone, imports) if alone else ():
            _check_group(Group(group, facts, judged), alone, paths, found, memory)
        wanted = chosen(linked, facts) if linked else set()
        if wanted and len(facts) <= FEW:
            wanted = set(facts)
        for group in [sorted(wanted)] if 0 < len(wanted) <= FEW else groups(wanted, facts):
            _check_group(Group(group, facts, frozenset(group)), linked, paths, found, memory)
    memory.save()
    found.read = len(memory.read - {shown for shown, fact in facts.items() if fact.problem})
    for sites in found.sites.values():
        sites.sort()
    return found


def _imports(alone: Sequence[Rule], linked: Sequence[Rule], paths: Mapping[str, Path], memory: Memory) -> Imports:
    """Return what files import, with what decides whether each matters to some rules: of single places, and others."""
    words = _words([*alone, *linked])

    def read(shown: str, words: Sequence[str]) -> FileFacts:
        return memory.facts(paths[shown], shown, words, facts_of)

    if not linked:
        return narrowed(alone, paths, words, read)
    return Imports({shown: read(shown, [*words, FUNCTIONS]) for shown in paths}, firsts_of(alone))


def _words(rules: Sequence[Rule]) -> list[str]:
    """Return the words by which files matter to some rules."""
    words = {word for rule in rules for literal in literals(rule) for word in literal}
    words |= {word for rule in rules if is_local(rule) for literal in rooted_literals(rule) for word in literal}
    lent = {part for rule in rules if is_local(rule) for name in names(rule) for part in name.split(".")}
    return [*sorted(words), *(f"{LENT}{part}" for part in sorted(lent))]


def _check_group(
    group: Group, rules: Sequence[Rule], paths: Mapping[str, Path], found: Checked, memory: Memory
) -> None:
    """Apply rules to files that belong together, or take what they came to when the files were the same."""
    wanted = [rule for rule in rules if memory.result(group.key, rule) is None]
    if wanted:
        read = [_module(shown, paths[shown]) for shown in group.files]
        unparsed = [text for text in read if isinstance(text, str)]
        scanner = Scanner(Project([module for module in read if isinstance(module, Module)], unparsed), group.judged)
        memory.read.update(group.files)
        for rule in wanted:
            sites, problem = _sites(scanner, rule)
            memory.keep(group.key, rule, sites, unparsed, problem)
        if len(group.files) > MANY:
            del scanner
            gc.collect()  # thousands of syntax trees
    for rule in rules:
        sites, unparsed, problem = memory.result(group.key, rule) or ([], [], "")
        found.sites[rule.id] += sites
        found.unparsed += [text for text in unparsed if text not in found.unparsed]
        if problem:
            found.problems[rule.id] = problem


def _sites(scanner: Scanner, rule: Rule) -> tuple[list[Site], str]:
    try:
        return scanner.sites(rule), ""
    except RecursionError:
        return [], "the code is nested too deep to be followed"
    except Endless as error:
        return [], f"{rule.place(error.written)}: {error}"


def _shown(path: Path, root: Path) -> str:
    return path.as_posix().removeprefix(f"{root.as_posix().rstrip('/')}/")
