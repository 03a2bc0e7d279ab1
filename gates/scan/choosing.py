"""Which files a rule needs: those that hold its words, and those that these have names from."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from gates.scan.literals import literals, names, rooted_literals
from gates.scan.memory import FileFacts
from gates.scan.rule import Rule

UPWARD, DOWNWARD = 4, 3
STAR = "*"
Facts = Mapping[str, FileFacts]
Links = Mapping[str, set[str]]
Names = Mapping[str, set[str]]
Reader = Callable[[str, Sequence[str]], FileFacts]


class Imports:
    """Where the imports of some files lead: by name, by the end of a name, or to what lies beside.

    `given` and `whole` leave out what is of a foreign package, even where its files are there.
    """

    def __init__(self, facts: Facts, foreign: Collection[str] = ()) -> None:
        self.facts = facts
        self._foreign = foreign
        self._given: dict[str, list[tuple[str, str, list[str]]]] = {}
        self._whole: dict[str, list[str]] = {}
        self._named: dict[str, list[str]] = defaultdict(list)
        for shown in facts:
            parts = shown.removesuffix(".py").split("/")
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            for at in range(len(parts)):
                self._named[".".join(parts[at:])].append(shown)

    def targets(self, shown: str, name: str) -> list[str]:
        """Return the files that a dotted name may mean in a file."""
        found = self._named.get(name)
        if not found:
            return []
        folder = shown.rpartition("/")[0]
        beside = [target for target in found if target.rpartition("/")[0] == folder]
        return beside or (found if len(found) <= 2 else [t for t in found if t.count("/") == name.count(".")])

    def links(self, files: Collection[str]) -> dict[str, set[str]]:
        """Return for each file the others that it imports."""
        return {
            shown: {t for name in self.facts[shown].imports for t in self.targets(shown, _dotted(name))} - {shown}
            for shown in files
        }

    def given(self, shown: str) -> list[tuple[str, str, list[str]]]:
        """Return what a file imports from others: the name there, the name here, and the files that it may be of."""
        if shown not in self._given:
            self._given[shown] = list(self._from(shown))
        return self._given[shown]

    def _from(self, shown: str) -> Iterator[tuple[str, str, list[str]]]:
        origins: dict[str, list[str]] = {}
        for entry in self.facts[shown].imports:
            dotted, _, alias = entry.partition("=")
            origin, _, name = dotted.rpartition(".")
            if not name or origin not in self._named or dotted.partition(".")[0] in self._foreign:
                continue
            if origin not in origins:
                origins[origin] = [t for t in self.targets(shown, origin) if t != shown]
            if origins[origin]:
                yield name, alias or name, origins[origin]

    @cached_property
    def takers(self) -> dict[str, list[tuple[str, str, str]]]:
        """Return for each file what others import from it: their path, the name there and the name here."""
        found: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
        for shown in self.facts:
            for name, here, targets in self.given(shown):
                for target in targets:
                    found[target].append((shown, name, here))
        return found

    def whole(self, shown: str) -> list[str]:
        """Return the files that a file may import as modules."""
        if shown not in self._whole:
            dotted = (entry.partition("=")[0] for entry in self.facts[shown].imports)  # one ending in a dot is no file
            own = (name for name in dotted if name in self._named and name.partition(".")[0] not in self._foreign)
            self._whole[shown] = [target for name in own for target in self.targets(shown, name) if target != shown]
        return self._whole[shown]


def _dotted(entry: str) -> str:
    return entry.partition("=")[0].rstrip(".")


def chosen(rules: Sequence[Rule], facts: Facts) -> set[str]:
    """Return the files that a rule may speak of, those that run them, and those that they are made with."""
    wanted = [literal for rule in rules for literal in literals(rule)]
    if not all(wanted):
        return set(facts)  # a rule asks of the whole program, so every file matters
    down = Imports(facts).links(facts)
    up: dict[str, set[str]] = defaultdict(set)
    for shown, targets in down.items():
        for target in targets:
            up[target].add(shown)
    seeds = _holding(wanted, facts)
    return _reached(seeds, up, UPWARD) | _reached(seeds, down, DOWNWARD)


def narrowed(rules: Sequence[Rule], files: Iterable[str], words: Sequence[str], read: Reader) -> Imports:
    """Return the imports of files, with what decides whether these matter to rules of single places.

    Where each piece of code begins with the name of a library, a file matters that has this name itself, or names from
    one that does; of the others the imports are enough, and their words are not looked for.
    """
    firsts = firsts_of(rules)
    is_rooted = all(firsts & rooted for rule in rules for rooted in rooted_literals(rule))
    is_rooted = is_rooted and all(literal for rule in rules for literal in literals(rule))
    facts = {shown: read(shown, sorted(firsts) if is_rooted else words) for shown in files}
    imports = Imports(facts, firsts)
    todo = {shown for shown, fact in facts.items() if fact.words} if is_rooted else set()
    done: set[str] = set()
    while todo:
        done |= todo
        facts |= {shown: read(shown, words) for shown in sorted(todo)}
        carried = _carried(imports, _begun(facts, firsts))
        todo = {shown for shown in facts if shown not in done and any(_uses(imports, shown, carried, firsts))}
    return imports


def firsts_of(rules: Sequence[Rule]) -> set[str]:
    """Return the names that the dotted names of rules begin with: those of libraries."""
    return {name.partition(".")[0] for rule in rules for name in names(rule)}


def chosen_alone(rules: Sequence[Rule], imports: Imports) -> Iterator[tuple[list[str], frozenset[str]]]:
    """Yield the files that are read together, and those of them that a rule of single places may speak of.

    What a library is called in full begins in some file with the library's own name.
    """
    facts = imports.facts
    wanted = [literal for rule in rules for literal in literals(rule)]
    rooted = [literal for rule in rules for literal in rooted_literals(rule)]
    firsts = firsts_of(rules)
    lasts = {name.rpartition(".")[2] for rule in rules for name in names(rule)}
    carried = _carried(imports, _begun(facts, firsts))
    renamed = _carried(imports, _renamed(facts, lasts))
    loose = [literal - lasts for literal in wanted]
    lent = {shown for shown in facts if renamed and any(True for _ in _uses(imports, shown, renamed, firsts))}
    seeds = set(facts) if not all(wanted) else _holding(wanted, facts) | (_holding(loose, facts) & lent)
    sure = _holding(rooted, facts) if all(wanted) else seeds
    found = {shown: _sources(shown, imports, carried, firsts) for shown in sorted(seeds)}
    judged = [
        shown for shown, files in found.items()
        if shown in sure or (len(files) > 1 and any(firsts & set(facts[file].words) for file in files))
    ]  # fmt: skip
    around: dict[str, set[str]] = defaultdict(set)
    for shown in judged:
        for file in found[shown]:
            around[shown].add(file)
            around[file].add(shown)
    for files in _parts(set(around), around):
        yield files, frozenset(judged).intersection(files)


def _uses(imports: Imports, shown: str, carried: Names, firsts: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the names that a file may have from one that carries some.

    Of a module that is imported whole these are all but the library itself.
    """
    for name, _, targets in imports.given(shown):
        for target in targets:
            if target in carried and (name == STAR or name in carried[target] or STAR in carried[target]):
                yield (name, target)
    for target in imports.whole(shown):
        for name in carried.get(target, ()):
            if name not in firsts:
                yield name, target


def _carried(imports: Imports, found: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the names in each file that may stand for a library's: those given, or had from another file."""
    todo = list(found)
    while todo:
        target = todo.pop()
        there = found[target]
        for shown, name, here in imports.takers.get(target, ()):
            more = there if name == STAR else {here} if name in there or STAR in there else set()
            own = found.setdefault(shown, set()) if more else set()
            if not more <= own:
                own |= more
                todo.append(shown)
    return found


def _begun(facts: Facts, firsts: Collection[str]) -> dict[str, set[str]]:
    """Return the names that files set, or import, from what begins with one of some names."""
    begins = tuple(firsts)
    return {
        shown: found for shown, fact in facts.items()
        if (found := {*fact.lends, *(
            name for entry in fact.imports
            if entry.startswith(begins) and _dotted(entry).partition(".")[0] in firsts and (name := _here(entry))
        )})
    }  # fmt: skip


def _renamed(facts: Facts, lasts: Collection[str]) -> dict[str, set[str]]:
    """Return the names that files set to what ends with one of some names, or import it under."""
    return {
        shown: found for shown, fact in facts.items()
        if (found := {*fact.lends, *(
            _here(entry) for entry in fact.imports
            if "=" in entry and (last := _dotted(entry).rpartition(".")[2]) in lasts and last != _here(entry)
        )})
    }  # fmt: skip


def _here(entry: str) -> str:
    """Return the name that an import gives; none for where something is imported from."""
    dotted, _, alias = entry.partition("=")
    return alias or dotted.rpartition(".")[2]


def _sources(shown: str, imports: Imports, carried: Names, firsts: Collection[str]) -> set[str]:
    """Return a file and those that it has carried names from, directly or through others."""
    found, todo = {shown}, [shown]
    while todo:
        for _, target in _uses(imports, todo.pop(), carried, firsts):
            if target not in found:
                found.add(target)
                todo.append(target)
    return found


def _holding(wanted: Sequence[frozenset[str]], facts: Facts) -> set[str]:
    """Return the files that hold the words of a rule, and those whose words are not known."""
    return {s for s, f in facts.items() if not f.is_text or any(literal <= set(f.words) for literal in wanted)}


def _reached(seeds: set[str], links: Links, steps: int) -> set[str]:
    found, edge = set(seeds), set(seeds)
    for _ in range(steps):
        edge = {target for shown in edge for target in links.get(shown, ())} - found
        found |= edge
    return found


def groups(files: set[str], facts: Facts) -> Iterator[list[str]]:
    """Yield files in groups that have nothing to do with each other."""
    around: dict[str, set[str]] = defaultdict(set)
    for shown, targets in Imports({shown: facts[shown] for shown in files}).links(files).items():
        for target in targets:
            around[shown].add(target)
            around[target].add(shown)
    yield from _parts(files, around)


def _parts(files: set[str], around: Links) -> Iterator[list[str]]:
    left = set(files)
    for shown in sorted(files):
        if shown in left:
            part = _reached({shown}, around, len(left))
            left -= part
            yield sorted(part)
