"""What the plugin left of a test run: which contexts ran which lines, and what else it heard."""

import json
import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import JsonValue

from gates.errors import EvidenceUnavailable

FOLDER = "coverage"
OWN, TAKEN = "state.json", "state.taken.json"  # of the process itself, and of what is taken of an earlier run
TEST = "test:"
Where = dict[str, dict[int, frozenset[str]]]


@dataclass(frozen=True)
class Traced:
    """What the plugin wrote into a folder: what each process told at its end, and which contexts ran which lines.

    `data` are the files of those lines.
    """

    states: Mapping[str, Mapping[str, JsonValue]]
    data: tuple[Path, ...]

    @classmethod
    def read(cls, folder: Path) -> "Traced":
        """Read a folder; raise `EvidenceUnavailable` where no run left anything there."""
        states = {path.name: _state(path) for path in sorted(folder.glob("state*.json"))}
        if not states:
            raise EvidenceUnavailable("no test run left a record of the lines that it executed")
        has_workers = bool(states.keys() - {OWN, TAKEN})
        told = {name: state for name, state in states.items() if name != OWN or not has_workers}
        return cls(told, tuple(sorted(folder.glob("data*"))))

    @cached_property
    def where(self) -> Where:
        """Return for each file and line the contexts that ran it."""
        return _lines(self.data)

    @property
    def reasons(self) -> list[str]:
        """Return why lines were not traced."""
        return [str(state["reason"]) for state in self.states.values() if state.get("reason")]

    @property
    def version(self) -> str:
        """Return the version of `coverage`."""
        return next((str(state["version"]) for state in self.states.values() if state.get("version")), "")

    @property
    def children(self) -> dict[str, str]:
        """Return the programs that were started, by context."""
        started = [each for state in self.states.values() if isinstance(each := state.get("children"), dict)]
        return {name: str(program) for each in started for name, program in each.items()}

    @property
    def doubts(self) -> tuple[str, ...]:
        """Return what else was not seen."""
        ended = all(state.get("ended") for state in self.states.values())
        return (*(() if ended else ("the test run did not come to its end",)), *sorted({*self.told("unheard")}))

    @property
    def outside(self) -> list[str]:
        """Return the contexts that asked git, a network or another process, or took the tracer away."""
        return [*self.told("outside"), *self.told("lost"), *self.children]

    @property
    def cached(self) -> list[tuple[str, int]]:
        """Return the lines of functions whose results are kept in the process, each with its file."""
        pairs = [pair for state in self.states.values() if isinstance(own := state.get("cached"), list) for pair in own]
        return [(str(pair[0]), int(str(pair[1]))) for pair in pairs if isinstance(pair, list)]

    def told(self, name: str) -> list[str]:
        """Return what all processes told under a name."""
        return [text for state in self.states.values() for text in _texts(state.get(name))]

    def write(self, folder: Path, where: Where) -> None:
        """Write some of the lines into the folder of another run, with what else is to be known of them."""
        import coverage

        records = coverage.CoverageData(basename=str(folder / f"data.{TAKEN}"))
        contexts: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        for path, lines in where.items():
            for line, names in lines.items():
                for name in names:
                    contexts[name][path].add(line)
        for name, ran in contexts.items():
            records.set_context(name)
            records.add_lines(ran)
        records.write()
        records.close()
        facts = {name: self.told(name) for name in ("modules", "foreign", "importing")}
        state = {"ended": True, "version": self.version, "cached": self.cached, **facts}
        (folder / TAKEN).write_text(json.dumps(state), encoding="utf-8")


def _state(path: Path) -> dict[str, JsonValue]:
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EvidenceUnavailable(f"the record of executed lines cannot be read: {error!r:.200}") from error
    if not isinstance(state, dict):
        raise EvidenceUnavailable("the record of executed lines cannot be read: it is no object")
    return state


def _texts(value: JsonValue) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []


def _lines(data: Iterable[Path]) -> Where:
    """Return for each file and line the contexts that ran it, of all processes together."""
    import coverage  # a quarter of a second, paid only where it is used

    found: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path in data:
        records = coverage.CoverageData(basename=str(path))
        try:
            records.read()
            for name in records.measured_files():
                for line, contexts in records.contexts_by_lineno(name).items():
                    found[os.path.realpath(name)][line] |= set(contexts)
        except (coverage.CoverageException, sqlite3.Error) as error:
            raise EvidenceUnavailable(f"the records of executed lines cannot be read: {error!r:.200}") from error
        finally:
            records.close()
    return {name: {line: frozenset(who) for line, who in lines.items()} for name, lines in found.items()}
