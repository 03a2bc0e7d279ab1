"""Rules applied to files: only those read that may matter to a rule, some of one folder at a time."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from gates import garbage_collection
from gates.code.syntax import Unparsed
from gates.scan.choosing import Facts, batches, facts_of, links_of, literals, wanted
from gates.scan.engine import Endless, Scanner, limited
from gates.scan.program.module import Module
from gates.scan.program.project import Project
from gates.scan.program.reading import content, module_of
from gates.scan.rule import Rule, Site

SHARED = 64  # files whose trees are held for the next folder


@dataclass
class Checked:
    """What rules found: the places of each, the files that could not be read, and why a rule could not be applied."""

    sites: dict[str, list[Site]] = field(default_factory=dict)
    unparsed: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    files: int = 0
    functions: int = 0


def check(rules: Sequence[Rule], files: Iterable[Path], root: Path) -> Checked:
    """Apply rules to the files of a program."""
    paths = {_shown(path, root): path for path in files}
    found = Checked(files=len(paths), sites={rule.id: [] for rule in rules})
    words = frozenset(word for rule in rules for literal in literals(rule) for word in literal)
    with garbage_collection.put_off():
        facts = {shown: facts_of(path, shown, words) for shown, path in paths.items()}
        found.functions = sum(fact.functions for fact in facts.values())
        unread = {shown: fact.problem for shown, fact in facts.items() if fact.problem}
        _check_all(rules, paths, {shown: fact for shown, fact in facts.items() if not fact.problem}, found, unread)
        found.unparsed = [unread[shown] for shown in paths if shown in unread]
    for rule, sites in found.sites.items():
        found.sites[rule] = sorted(set(sites))
    return found


def _check_all(
    rules: Sequence[Rule], paths: Mapping[str, Path], facts: Facts, found: Checked, unread: dict[str, str]
) -> None:
    """Apply rules to files; those that turn out to be no Python come to the `unread`."""
    links = links_of(facts)
    asked = {rule.id: wanted(literals(rule), facts, links) for rule in rules}
    read = set().union(*asked.values())
    for shown in facts.keys() - read:
        _module(shown, paths[shown], unread)
    for files, judged in batches(read, links):
        modules = [module for shown in files if (module := _module(shown, paths[shown], unread))]
        scanner = Scanner(Project(modules))
        for rule in rules:
            here = judged & asked[rule.id]
            if not here or (rule.own and rule.id in found.problems):
                continue
            try:
                with limited() if rule.own else nullcontext():
                    found.sites[rule.id] += scanner.sites(rule, here)
            except RecursionError:
                found.problems[rule.id] = "the code is nested too deep to be followed"
            except Endless as error:
                found.problems[rule.id] = f"{rule.source}: {error} in {min(here).rpartition('/')[0] or '.'}"
                scanner = Scanner(Project(modules))  # what it was about is half done
        scanner.project.close()


def _module(shown: str, path: Path, unread: dict[str, str]) -> Module | None:
    """Return a file as Python; nothing where it is none."""
    raw = content(path)
    found = _parsed(shown, raw) if isinstance(raw, bytes) else f"{shown}:1: {raw}"
    if isinstance(found, Module):
        return found
    unread[shown] = found
    return None


@lru_cache(maxsize=SHARED)
def _parsed(shown: str, raw: bytes) -> Module | str:
    try:
        return module_of(shown, raw)
    except Unparsed as error:
        return str(error)


def _shown(path: Path, root: Path) -> str:
    return path.as_posix().removeprefix(f"{root.as_posix().rstrip('/')}/")
