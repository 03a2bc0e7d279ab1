"""Tests that a class has from the classes that it extends, in whichever file of the project these stand."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from gates.evidence.tests.marked import Marker, WrittenTest
from gates.tracing.file_facts import FileFacts, WrittenClass

CASES = {"unittest.TestCase", "unittest.IsolatedAsyncioTestCase", "unittest.case.TestCase"}
EMPTY = {"object", "abc.ABC", "typing.Generic", "typing.Protocol"}
FOLDERS = ("src", "")
MOST_HOPS = 6
Reader = Callable[[str], FileFacts | None]


@dataclass(frozen=True)
class Placed:
    """A class and the file that it stands in."""

    path: str
    found: WrittenClass

    @property
    def id(self) -> str:
        """Return the class as a node id names it."""
        return "::".join((self.path, *self.found.chain))


class Heirs:
    """Follows classes of tests to what they extend; `read` gives the facts of a file, nothing where there is none."""

    def __init__(self, facts: dict[str, FileFacts], read: Reader) -> None:
        self._facts = facts
        self._read = read
        self._heirs_of: set[str] = set()
        self.foreign: set[str] = set()  # classes that extend what is not of the project

    def with_inherited(self) -> dict[str, FileFacts]:
        """Return the facts with the tests that classes inherit; what a class only lends is its heirs' alone."""
        every = {path: (*facts.tests, *self._of_file(path, facts)) for path, facts in self._facts.items()}
        lent = {each.id for each in self._classes() if each.id in self._heirs_of and self._only_lends(each)}
        return {
            path: facts.model_copy(update={"tests": tuple(test for test in every[path] if _owner(test) not in lent)})
            for path, facts in self._facts.items()
        }

    def _classes(self) -> Iterator[Placed]:
        yield from (Placed(path, one) for path, facts in self._facts.items() for one in facts.classes)

    def _of_file(self, path: str, facts: FileFacts) -> Iterator[WrittenTest]:
        for one in facts.classes:
            had = {*(test.id for test in one.tests), *one.unset}
            markers = (*one.around, *one.markers)
            above: tuple[Marker, ...] = ()
            for base in self._above(Placed(path, one), set()):
                above += base.found.markers
                for test in base.found.tests:
                    if test.id not in had:
                        name = "::".join((path, *one.chain, test.id))
                        marked = (*markers, *above, *test.markers)
                        yield test.model_copy(update={"id": name, "markers": marked})
                had |= {*(test.id for test in base.found.tests), *base.found.unset}

    def _above(self, heir: Placed, seen: set[str]) -> Iterator[Placed]:
        """Yield what a class extends, the nearest first."""
        seen.add(heir.id)
        for name in heir.found.bases:
            base = self._found(heir, name)
            if base is None and name not in CASES | EMPTY:
                self.foreign.add(heir.id)
            elif base is not None and base.id not in seen:
                self._heirs_of.add(base.id)
                yield base
                yield from self._above(base, seen)
                self.foreign |= {heir.id} if base.id in self.foreign else set()

    def _found(self, heir: Placed, name: str) -> Placed | None:
        """Return the class of a full name, as the file of an heir knows it."""
        return self._in_file(heir.path, tuple(name.split(".")), 0) or self._by_modules(heir.path, name, 0)

    def _in_file(self, path: str, chain: tuple[str, ...], hops: int) -> Placed | None:
        facts = self._facts.get(path) or self._read(path)
        if facts is None or hops > MOST_HOPS:
            return None
        own = [one for one in facts.classes if one.chain == chain]
        if own:
            return Placed(path, own[-1])
        if chain[0] in facts.taken:
            return self._by_modules(path, ".".join((facts.taken[chain[0]], *chain[1:])), hops + 1)
        everything = (self._by_modules(path, ".".join((star, *chain)), hops + 1) for star in facts.stars)
        return next((found for found in everything if found), None)

    def _by_modules(self, path: str, name: str, hops: int) -> Placed | None:
        """Return a class by the longest begin of its name that is a module, seen from a file."""
        parts = name.split(".")
        for at in range(len(parts) - 1, 0, -1):
            for file in self._files(path, parts[:at]):
                if (found := self._in_file(file, tuple(parts[at:]), hops)) is not None:
                    return found
        return None

    def _files(self, path: str, module: list[str]) -> Iterator[str]:
        """Yield the files that a module may be: below the folders around a file, `src` and the project."""
        around = [str(each) for each in PurePosixPath(path).parents if str(each) != "."]
        for folder in dict.fromkeys((*around, *FOLDERS)):
            base = PurePosixPath(folder, *module)
            for file in (f"{base}/__init__.py", f"{base}.py"):
                if file in self._facts or self._read(file) is not None:
                    yield file

    def _only_lends(self, one: Placed) -> bool:
        """Return whether pytest would not collect a class for itself, by its default names."""
        above = [one, *self._above(one, set())]
        bases = {base for each in above for base in each.found.bases}
        is_case = bool(bases & CASES) or any(each.id in self.foreign for each in above)
        return not (is_case or one.found.chain[-1].startswith("Test"))


def _owner(test: WrittenTest) -> str:
    return test.id.rpartition("::")[0]
