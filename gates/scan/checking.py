"""Rules applied to programs: a scanner for one, files that may matter read folder by folder, and rules' examples."""

import ast
import signal
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple

from gates.code.syntax import Unparsed, content
from gates.scan.choosing import CLASS, Choice, Facts, batches, facts_of, links_of, may_matter, mentions, patterns_of
from gates.scan.matches import find
from gates.scan.program.module import Module
from gates.scan.program.nodes import lines_of
from gates.scan.program.project import Project, module_of, project_of
from gates.scan.rule import Rule, Shape, Site
from gates.task.yaml_source import Key

if TYPE_CHECKING:
    from gates.scan.paths.traces import Trace, Tracer


class Scanner:
    """Applies rules to one program; what several rules need is made once."""

    def __init__(self, project: Project, *, kept: bool = True) -> None:
        self.project, self._with_kept = project, kept
        self._judged: list[Module] = []
        self._tracers: dict[object, Tracer] = {}

    def sites(self, rule: Rule, judged: frozenset[str] | None = None) -> list[Site]:
        """Return the places that a rule speaks of, in all files or some, each line once for a message."""
        self._judged = [m for m in self.project.modules.values() if judged is None or m.path in judged]
        found = list(self._found(rule))
        for shape in rule.form.kept if self._with_kept else ():
            found += self._fitting(shape, "kept", ok=True)
        return sorted({(s.path, s.line, s.message, s.ok, s.undecided): s for s in sorted(found, reverse=True)}.values())

    def _found(self, rule: Rule) -> Iterator[Site]:
        if rule.events:
            from gates.scan import orders  # what walks code takes a while to import, and most rules need none of it

            yield from orders.judge(rule, self._traced(rule))
        elif rule.form.members:
            from gates.scan import members

            yield from members.look(self.project, self._judged)
        else:
            yield from self._fitting(rule.form, rule.form.problem, ok=False)

    def _fitting(self, shape: Shape, message: str, *, ok: bool) -> Iterator[Site]:
        for module in self._judged:
            yield from (_site(module.path, node, message, ok=ok) for node in find(shape, module, self.project))

    def _traced(self, rule: Rule) -> "Iterator[Trace]":
        """Return the traces for a rule's events; rules that take a vocabulary as it is share them."""
        from gates.scan.paths.events import Happening
        from gates.scan.paths.traces import Tracer

        form = rule.form
        shared = form.events is not None and not form.events.own and not form.where
        key = form.events.use if shared and form.events else rule.id
        speaks = rule.is_about if self._with_kept else rule.may_speak
        if (shared, key) not in self._tracers:
            self._tracers[(shared, key)] = Tracer(self.project, Happening(rule.events, rule.needs))
        return self._tracers[(shared, key)].traces(self._judged, speaks)


def _site(path: str, node: ast.AST, message: str, *, ok: bool) -> Site:
    line, last = lines_of(node)
    if isinstance(node, ast.stmt) and not isinstance(node, ast.Assign | ast.Expr | ast.Return | ast.AnnAssign):
        last = line
    return Site(path, line, last, ok, message)


LIMIT_S = 20.0  # of processor time


class Endless(Exception):
    """A rule that comes to no end."""


@contextmanager
def limited() -> Iterator[None]:
    """Raise `Endless` in what takes too long; in the main thread alone, where signals arrive."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise Endless(f"it came to no end: stopped after {LIMIT_S:g} s of processor time")


@lru_cache(maxsize=40)  # files whose trees are held for the next folder
def _parsed(shown: str, raw: bytes) -> Module:
    return module_of(shown, raw)


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
    above = f"{root.as_posix().rstrip('/')}/"
    paths = {path.as_posix().removeprefix(above): path for path in files}
    found = Checked(files=len(paths), sites={rule.id: [] for rule in rules})
    words = frozenset({CLASS}.union(*(pattern.words for rule in rules for pattern in patterns_of(rule))))
    facts = {shown: facts_of(path, shown, words) for shown, path in paths.items()}
    found.functions = sum(fact.functions for fact in facts.values())
    unread = {shown: fact.problem for shown, fact in facts.items() if fact.problem}
    readable = {shown: fact for shown, fact in facts.items() if not fact.problem}
    _check_all(rules, readable, Files(paths, unread), found, kept=kept)
    found.unparsed = [unread[shown] for shown in paths if shown in unread]
    found.sites = {rule: sorted(set(sites)) for rule, sites in found.sites.items()}
    return found


class Files(NamedTuple):
    """The files of a program as they are read; one that turns out to be no Python comes to the `unread`."""

    paths: Mapping[str, Path]
    unread: dict[str, str]

    def module(self, shown: str) -> Module | None:
        """Return a file as Python."""
        raw = content(self.paths[shown])
        try:
            if isinstance(raw, bytes):
                return _parsed(shown, raw)
            self.unread[shown] = f"{shown}:1: {raw}"
        except Unparsed as error:
            self.unread[shown] = str(error)
        return None

    def program(self, files: Collection[str], main: Collection[str]) -> Project:
        """Return some of them as a program, in which the `main` ones are searched."""
        return Project(files, self.module, main=main, mentions=lambda shown, words: mentions(self.paths[shown], words))


def _check_all(rules: Sequence[Rule], facts: Facts, read: Files, found: Checked, *, kept: bool) -> None:
    """Apply local rules to each file as it is read; then the others to those that, by all trees, they may speak of."""
    links = links_of(facts)
    local, others = ([rule for rule in rules if rule.is_local is kind] for kind in (True, False))
    here, there = (may_matter(each, facts, links, kept=kept) for each in (local, others))
    choice = Choice(others, links)
    for files, judged in batches(facts, links):
        project = read.program(files, sorted(judged & here))
        for shown in sorted(judged):
            if (module := project.module(shown)) is not None and shown in there:
                choice.read(module)
        _apply([(rule, here) for rule in local], judged, project, found, kept=kept)
    chosen = [(rule, choice.wanted(rule, kept=kept)) for rule in others]
    for files, judged in batches(set().union(*(speaks for _, speaks in chosen)), links):
        main = [shown for shown in files if shown in judged or choice.tells(shown)]
        _apply(chosen, judged, read.program(files, main), found, kept=kept)


def _apply(chosen: Chosen, judged: frozenset[str], project: Project, found: Checked, *, kept: bool) -> None:
    """Apply rules to some files that are read together, and let go of what was read."""
    scanner = Scanner(project, kept=kept)
    for rule, speaks in chosen:
        if not (here := judged & speaks) or (rule.own and rule.id in found.problems):
            continue
        try:
            with limited() if rule.own else nullcontext():
                found.sites[rule.id] += scanner.sites(rule, here)
        except RecursionError:
            found.problems[rule.id] = "the code is nested too deep to be followed"
        except Endless as error:
            found.problems[rule.id] = f"{rule.source}: {error} in {min(here).rpartition('/')[0] or '.'}"
            scanner = Scanner(scanner.project.fresh(), kept=kept)  # what it was about is half done
    scanner.project.close()


HERE = "# <- here"
FILE = "example.py"


def failures(rule: Rule) -> Iterator[str]:
    """Yield what a rule's examples show to be wrong with it, each with its place."""
    for kind, texts in (("good", rule.form.good), ("bad", rule.form.bad)):
        for i, text in enumerate(texts):
            key: Key = (kind, i) if (kind, i) in rule.places else (kind,)
            for problem in _failures(rule, text, f"the {kind} example {i + 1}", bad=kind == "bad"):
                yield f"{rule.place(key)}: {problem}"


def _failures(rule: Rule, text: str, name: str, *, bad: bool) -> Iterator[str]:
    marked = {number for number, line in enumerate(text.splitlines(), 1) if HERE in line} if bad else set()
    if bad and not marked:
        yield f"{name} marks no line; write {HERE!r} at the end of each line that the rule must find"
        return
    found, undecided = _found(rule, text)
    if undecided:
        yield f"{name} is not decided: {undecided}"
    elif not found & marked and bad:
        yield f"{name} is not found by the rule (line {min(marked)})"
    else:
        for line in sorted(marked - found):
            yield f"{name} is not found at its line {line}, which is marked {HERE!r}"
        for line in sorted(found - marked):
            yield f"{name} is found at its line {line}" + (f", which is not marked {HERE!r}" if bad else "")


def _found(rule: Rule, text: str) -> tuple[set[int], str]:
    """Return the lines of an example that break the rule, and why that is not decided."""
    try:
        with limited():
            sites = Scanner(project_of({FILE: text.encode()})).sites(rule)
    except (Unparsed, Endless) as error:
        return set(), str(error).removeprefix(f"{FILE}:")
    except RecursionError:
        return set(), "it is nested too deep to be followed"
    undecided = next((f"{site.line}: {site.message}" for site in sites if site.undecided), "")
    return {site.line for site in sites if not site.ok}, undecided
