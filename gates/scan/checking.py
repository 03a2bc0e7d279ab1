"""Rules applied to files: only those read that may matter to a rule, some of one folder at a time."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path

from gates.code.syntax import Unparsed, content
from gates.scan.choosing import (
    Asked,
    Choice,
    Facts,
    Links,
    TreeFacts,
    batches,
    facts_of,
    links_of,
    may_matter,
    words_of,
)
from gates.scan.engine import Endless, Scanner, limited
from gates.scan.program.module import Module
from gates.scan.program.project import Project, module_of
from gates.scan.rule import Rule, Site

SHARED = 40  # files whose trees are held for the next folder


Read = Callable[[str], Module | None]
Chosen = Sequence[tuple[Rule, set[str]]]  # the files that each speaks of


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
    words = frozenset(word for rule in rules for literal in words_of(rule) for word in literal)
    facts = {shown: facts_of(path, shown, words) for shown, path in paths.items()}
    found.functions = sum(fact.functions for fact in facts.values())
    unread = {shown: fact.problem for shown, fact in facts.items() if fact.problem}
    readable = {shown: fact for shown, fact in facts.items() if not fact.problem}
    _check_all(rules, readable, partial(_module, paths, unread), found, kept=kept)
    found.unparsed = [unread[shown] for shown in paths if shown in unread]
    for rule, sites in found.sites.items():
        found.sites[rule] = sorted(set(sites))
    return found


def _module(paths: Mapping[str, Path], unread: dict[str, str], shown: str) -> Module | None:
    """Return a file as Python; one that turns out to be none comes to the `unread`."""
    raw = content(paths[shown])
    found = _parsed(shown, raw) if isinstance(raw, bytes) else f"{shown}:1: {raw}"
    if isinstance(found, Module):
        return found
    unread[shown] = found
    return None


def _check_all(rules: Sequence[Rule], facts: Facts, read: Read, found: Checked, *, kept: bool) -> None:
    """Read each file once for what its tree tells, then apply each rule to those that it may speak of."""
    links = links_of(facts)
    trees = _trees(rules, facts, links, read)
    choice = Choice(rules, trees, links)
    chosen = [(rule, choice.wanted(rule, kept=kept)) for rule in rules]
    plain, members = ([each for each in chosen if each[0].form.members is kind] for kind in (False, True))
    for files, judged in batches(set().union(*(speaks for _, speaks in plain)), links):
        main = [shown for shown in files if shown in judged or choice.tells(shown)]
        _apply(plain, judged, partial(Project, files, read, main=main), found, kept=kept)
    for files, judged in batches(trees if members else (), links):
        lacking = judged.intersection(*(speaks for _, speaks in members))
        if lacking:
            main = choice.members(lacking, files)
            _apply(members, lacking, partial(Project, files, read, main=main), found, kept=kept)


def _apply(
    chosen: Chosen, judged: frozenset[str], project: Callable[[], Project], found: Checked, *, kept: bool
) -> None:
    """Apply rules to some files that are read together."""
    scanner = Scanner(project(), kept=kept)
    for rule, speaks in chosen:
        here = judged & speaks
        if not here or (rule.own and rule.id in found.problems):
            continue
        try:
            with limited() if rule.own else nullcontext():
                found.sites[rule.id] += scanner.sites(rule, here)
        except RecursionError:
            found.problems[rule.id] = "the code is nested too deep to be followed"
        except Endless as error:
            found.problems[rule.id] = f"{rule.source}: {error} in {min(here).rpartition('/')[0] or '.'}"
            scanner = Scanner(project(), kept=kept)  # what it was about is half done
    scanner.project.close()


def _trees(rules: Sequence[Rule], facts: Facts, links: Links, read: Read) -> dict[str, TreeFacts]:
    """Return what the trees of those files tell that may matter to some rule; all are read as Python."""
    matter = may_matter(rules, facts, links)
    asked = Asked(rules)
    found: dict[str, TreeFacts] = {}
    for files, judged in batches(facts, links):
        project = Project(files, read)
        for shown in sorted(judged):
            module = project.module(shown) if shown in matter else read(shown)
            if module is not None and shown in matter:
                found[shown] = asked.of(module, project)
        project.close()
    return found


@lru_cache(maxsize=SHARED)
def _parsed(shown: str, raw: bytes) -> Module | str:
    try:
        return module_of(shown, raw)
    except Unparsed as error:
        return str(error)


def _shown(path: Path, root: Path) -> str:
    return path.as_posix().removeprefix(f"{root.as_posix().rstrip('/')}/")
