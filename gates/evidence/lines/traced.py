"""What the plugin left of a test run: which contexts ran which lines; and which tests an earlier run answers for.

Between two runs that differ in the bodies of some functions only, a test that ran none of them ends as it did. What is
in doubt is run again: a test that started a process, read from git, a network or the changed code, or did not simply
pass. Where what changed ran outside of tests, in the setup of a wider fixture, at an import in a test or below a
function that keeps its results (`functools.cache`), or `linecache` keeps it, any test may rest on it, and all are run.
"""

import json
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple, Self

from pydantic import Field

from gates.check import Earlier
from gates.child.asking import FOREIGN
from gates.code.units import Units, lines_of
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.tests.test_records import TestRecord
from gates.model import Model
from gates.project.history import Blob, History
from gates.words import printable

FOLDER = "coverage"
OWN, TAKEN = "state.json", "state.taken.json"  # of the process itself, and of what is taken of an earlier run
TEST = "test:"
Where = dict[str, dict[int, frozenset[str]]]


LISTS = ("unheard", "modules", "foreign", "outside", "importing", "reading", "cached", "lasted")


class Traced(Model):
    """What the plugin told at the end of a process, or of all of them, and the files of which contexts ran which lines.

    `outside` and `importing` are the contexts that asked git or a network, and that imported code, `reading` the files
    with the contexts that read their code; `unseen` says by context what it did that hides lines. `cached` are the
    lines of functions whose results are kept in the process, and `lasted` those that ran in contexts of earlier
    processes whose effects outlast them, each with its file.
    """

    reason: str = ""
    ended: bool = False
    unseen: dict[str, str] = Field(default={})
    unheard: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    importing: tuple[str, ...] = ()
    reading: tuple[tuple[str, str], ...] = ()
    cached: tuple[tuple[str, int], ...] = ()
    lasted: tuple[tuple[str, int], ...] = ()
    data: tuple[Path, ...] = ()

    @classmethod
    def read(cls, folder: Path, *, taken: bool | None = None) -> Self:
        """Read a folder, or of it what was `taken`, or what was not; raise `EvidenceUnavailable` where nothing is."""
        files = [path for path in sorted(folder.glob("*")) if taken in {None, path.name.endswith(TAKEN)}]
        told = (path for path in files if path.match("state*.json"))
        try:
            states = {path.name: cls.model_validate_json(path.read_bytes()) for path in told}
        except (OSError, ValueError) as error:
            raise EvidenceUnavailable(f"the record of executed lines cannot be read: {error!r:.200}") from error
        if not states:
            raise EvidenceUnavailable("no test run left a record of the lines that it executed")
        own = [states[name] for name in sorted(states) if name != OWN or states.keys() <= {OWN, TAKEN}]
        return cls(
            reason=next((one.reason for one in own if one.reason), ""),
            ended=all(one.ended for one in own),
            unseen={name: what for one in own for name, what in one.unseen.items()},
            data=tuple(path for path in files if path.match("data*")),
            **{name: tuple(each for one in own for each in getattr(one, name)) for name in LISTS},
        )

    @cached_property
    def where(self) -> Where:
        """Return for each file and line the contexts that ran it, of all processes together."""
        found: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for context, ran in self.told():
            for path, lines in ran.items():
                own = found[path]
                for line in lines:
                    own[line].add(context)
        return {name: {line: frozenset(who) for line, who in lines.items()} for name, lines in found.items()}

    def told(self) -> Iterator[tuple[str, dict[str, list[int]]]]:
        """Yield what ran, in its order: a context, and lines by file; each of them may come more than once."""
        real = cache(os.path.realpath)  # asked in each context, and slow
        try:
            for path in self.data:
                with path.open(encoding="utf-8") as file:
                    for context, ran in map(json.loads, file):
                        yield context, {real(name): lines for name, lines in ran.items()}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise EvidenceUnavailable(f"the records of executed lines cannot be read: {error!r:.200}") from error

    @cached_property
    def lasting(self) -> frozenset[str]:
        """Return the contexts whose effects outlast them: they imported code, or filled what is kept."""
        filled = (self.where.get(os.path.realpath(path), {}).get(line, frozenset()) for path, line in self.cached)
        return frozenset(self.importing).union(*filled)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Return what was not seen, beside what other processes ran."""
        return (*(() if self.ended else ("the test run did not come to its end",)), *sorted({*self.unheard}))


COMPILED = (".so", ".pyd", ".dll", ".dylib")
VERSION_FILE = re.compile(r"_*version(_info)?_*\.py")  # which a build writes, and the commit has not


def strays_of(traced: Traced, root: Path) -> tuple[str, ...]:
    """Return the files that the tests imported and that the commit does not have."""
    files = {Path(file): Path(file).relative_to(root) for file in sorted({*traced.modules})}
    own = [file for file, inside in files.items() if not FOREIGN & {*inside.parts} and file.suffix not in COMPILED]
    return tuple(sorted(printable(files[file].as_posix()) for file in not_committed(own, root)))


def not_committed(files: Iterable[Path], root: Path) -> Iterator[Path]:
    """Yield the files that HEAD does not have; without a commit there is nothing for them to belong to."""
    try:
        history = History(root)
        commit = history.commit("HEAD")
        tree = history.whole_tree(commit) if commit else None
    except EvidenceUnavailable:
        return
    for file in files if tree is not None else ():
        real = Path(os.path.realpath(file))
        inside = real.relative_to(history.top).as_posix() if real.is_relative_to(history.top) else None
        if inside and not _has(tree or {}, inside) and not VERSION_FILE.fullmatch(real.name):
            yield file


def _has(tree: dict[str, Blob], path: str) -> bool:
    """Return whether a commit has a file, or a submodule that it lies in: of that it has a commit of its own."""
    steps = path.split("/")
    above = ("/".join(steps[: n + 1]) for n in range(len(steps) - 1))
    return path in tree or any(step in tree and not tree[step].link for step in above)


class Taking(NamedTuple):
    """The tests that are taken of earlier processes, what these traced, and what changed, then and now."""

    tests: Mapping[str, TestRecord]
    traced: tuple[Traced, ...]
    units: Mapping[str, tuple[Units, Units]]

    def lay(self, folder: Path) -> None:
        """Lay the lines that the taken tests ran beside those of a run, numbered as the files are now."""
        moved = {path: before.moved(after) for path, (before, after) in self.units.items()}
        kept = {name: {each for one in self.traced for each in getattr(one, name)} for name in LISTS}
        with (folder / f"data.{TAKEN}").open("w", encoding="utf-8") as file:
            for traced, (name, ran) in ((one, each) for one in self.traced for each in one.told()):
                if not name.startswith(TEST) or name.removeprefix(TEST) in self.tests:
                    now = {p: [moved[p][n] for n in own if n in moved[p]] for p, own in ran.items() if p in moved}
                    file.write(f"{json.dumps([name, ran | now])}\n")
                elif name in traced.lasting:
                    kept["lasted"] |= {(path, line) for path, lines in ran.items() for line in lines}
        for name in ("cached", "lasted"):
            places = ((os.path.realpath(path), line) for path, line in kept[name])
            kept[name] = {(path, moved[path].get(line, line) if path in moved else line) for path, line in places}
        told = {name: tuple(sorted(each)) for name, each in kept.items()}
        (folder / TAKEN).write_text(Traced(ended=True, **told).model_dump_json(), encoding="utf-8")


def taking(
    earlier: Earlier, tests: Iterable[TestRecord], taken: Collection[str], folder: Path, context: Context
) -> Taking | None:
    """Return what holds of an earlier run, of its tests and traced lines; nothing where all is open.

    Of its tests those that had been `taken` rest on what the processes did that they ran in, and the others on its own.
    """
    known = {test.id: test for test in tests}
    holds = Taking({}, (), earlier.changed)
    for of_taken in (False, True):
        own = {name: test for name, test in known.items() if (name in taken) is of_taken}
        try:
            traced = Traced.read(folder, taken=of_taken)
            again = {*_again(traced, known, earlier, context)}
        except (EvidenceUnavailable, _AnyTest):
            continue
        free = {name for lines in traced.where.values() for names in lines.values() for name in names} - again
        standing = {name: t for name, t in own.items() if t.passed and not t.reruns and f"{TEST}{name}" in free}
        if standing:
            holds = holds._replace(tests={**holds.tests, **standing}, traced=(*holds.traced, traced))
    if len(holds.tests) == len(known):  # pytest is to run something: that is what the canaries are tried with
        shortest = min(known.values(), key=lambda test: test.duration_s).id
        holds = holds._replace(tests={name: test for name, test in holds.tests.items() if name != shortest})
    return holds if holds.tests else None


def _again(traced: Traced, tests: Iterable[str], earlier: Earlier, context: Context) -> Iterator[str]:
    """Yield the contexts that must be run again; raise `_AnyTest` where no test is free of what changed."""
    if traced.doubts or traced.reason:
        raise _AnyTest
    yield from _of_tests((*traced.outside, *traced.unseen))
    lasted = {*traced.lasted}
    for path, (before, now) in earlier.changed.items():
        shown, lines = context.shown(Path(path)), traced.where.get(path, {})
        own = [f"{TEST}{test}" for test in tests if test.split("::")[0] == shown]
        yield from own
        yield from _of_tests(name for file, name in traced.reading if os.path.realpath(file) == path)
        changed = before.changed(now)
        if changed is None:  # of tests that nobody else imports, only who ran something of it rests on it
            word = re.compile(rf"\b{re.escape(Path(path).stem)}\b".encode())
            others = (text for other, text in earlier.sources.items() if other != path)
            if not own or Path(path).name == "conftest.py" or any(word.search(text) for text in others):
                raise _AnyTest
            yield from (name for names in lines.values() for name in names if name.startswith(TEST))
            continue
        if lines.keys() <= {line for function in before.functions for line in lines_of(function)}:
            raise _AnyTest  # it was imported before anything was traced, or by nobody
        for line in (line for function in changed for line in lines_of(function)):
            if (path, line) in lasted or lines.get(line, frozenset()) & traced.lasting:
                raise _AnyTest
            yield from _of_tests(lines.get(line, ()))


class _AnyTest(Exception):
    """Any test may rest on what changed."""


def _of_tests(contexts: Iterable[str]) -> Iterator[str]:
    for name in contexts:
        if not name.startswith(TEST):
            raise _AnyTest
        yield name
