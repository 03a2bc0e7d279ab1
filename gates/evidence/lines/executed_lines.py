"""Which test ran which lines of the implementation, as the library `coverage` saw it inside of the test run."""

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Self

from pydantic import Field

from gates.check import Evidence
from gates.code.sources import Sources
from gates.code.symbols import Resolver
from gates.context import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.lines.public_code import Body, functions_of, innermost
from gates.evidence.lines.traced import FOLDER, TEST, Traced, Where
from gates.model import Location, Model
from gates.project.files import copy_package, files_of, import_roots, module_name
from gates.task.task import Task

COVERAGE_PLUGIN = "gates_pytest_coverage"


def copy_plugin(folder: Path) -> list[str]:
    """Copy the plugin to a folder that the project's interpreter looks in; return the options that load it."""
    source = Path(__file__).with_name("_pytest_coverage")
    copy_package(source, folder / COVERAGE_PLUGIN)
    return ["-p", f"{COVERAGE_PLUGIN}.hooks"]


def coverage_env(folder: Path, task: Task, context: Context) -> dict[str, str]:
    """Make the folder that the plugin writes to, and return the environment that tells it what to trace."""
    folder.mkdir(parents=True, exist_ok=True)
    tests = (path.split("::")[0] for path in (*task.tests, *(path for c in task.criteria for path in c.tests)))
    entries = dict.fromkeys((*task.implementation, *tests))
    paths = [str(path) for entry in entries for path in _patterns(context.root / entry)]
    told = {"folder": str(folder), "paths": paths, "root": str(context.root), "modules": modules_of(task, context)}
    return {"GATES_COVERAGE": json.dumps(told)}


def modules_of(task: Task, context: Context) -> dict[str, str]:
    """Return the names that the implementation's modules may be imported by, and the files they must come from."""
    return dict(_modules(task, context))


def _modules(task: Task, context: Context) -> Iterator[tuple[str, str]]:
    for path in files_of(task.implementation, context.root):
        for root in import_roots(task, context):
            if path.suffix != ".py" or not path.is_relative_to(root):
                continue
            name = module_name(path, root)
            if name and name.split(".")[0] not in sys.stdlib_module_names:
                yield name, os.path.realpath(path)


def _patterns(path: Path) -> list[str]:
    """Return a path as a pattern that matches it alone, or all below it."""
    plain = "".join("?" if sign in "*?[]" else sign for sign in str(path))
    return [f"{plain}/*"] if path.is_dir() else [plain]


class FunctionLines(Model):
    """A function, and of each of its lines that ran the set of contexts that it ran in (see `ExecutedLines`).

    `told` says whether its lines can be told from that of its definition, which runs, too, where its module is
    imported; `counts` whether it is public as well, `wrapped` whether a decorator may answer in its place.
    """

    name: str
    location: Location
    first: int
    last: int
    counts: bool
    told: bool
    wrapped: bool
    lines: dict[int, int]


class ExecutedLines(Evidence):
    """The functions of the implementation and the contexts that their lines ran in.

    A context is a test (`test:<id>`), the setup of a fixture wider than a function (`fixture:<name>`), or nothing:
    import, collection, between tests. `sets` holds sets of contexts as runs of their numbers, such as `0-4,7`.
    `children` names the programs that were started, by context; what they ran was not seen. `doubts` says what else was
    not seen. `aside` are functions that nobody need run: those that never came to life here, such as those for another
    platform, and abstract ones with a body. `in_tests` are the lines of files beside the implementation, the tests,
    that ran in any test. `foreign` are the files that its modules were imported from, if not from here.
    """

    version: str
    functions: tuple[FunctionLines, ...]
    contexts: tuple[str, ...]
    sets: tuple[str, ...]
    children: dict[str, str] = Field(default={})
    lost: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    unparsed: tuple[str, ...] = ()
    aside: tuple[FunctionLines, ...] = ()
    in_tests: dict[str, tuple[int, ...]] = Field(default={})
    foreign: tuple[str, ...] = ()

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Read what the plugin left beside the test run, which must have been collected before."""
        traced = Traced.read(context.evidence / "pytest" / FOLDER)
        if traced.reasons:
            raise EvidenceUnavailable(f"executed lines were not measured: {traced.reasons[0]}")
        if not files_of(task.implementation, context.root):
            raise EvidenceUnavailable(f"no file in {', '.join(task.implementation)} ({task.path})")
        return cls._read(task, context, traced)

    @classmethod
    def _read(cls, task: Task, context: Context, traced: Traced) -> Self:
        where = traced.where
        contexts = sorted({name for lines in where.values() for names in lines.values() for name in names})
        numbers = {name: number for number, name in enumerate(contexts)}
        sets: dict[str, int] = {}
        modules, unparsed = Resolver(task, Sources(context.root)).read()
        functions = [
            found
            for path, module in modules.items()
            for found in _functions(
                module.path, functions_of(module), where.get(os.path.realpath(path), {}), numbers, sets
            )
        ]

        return cls(
            how="coverage, inside of the test run, one context a test",
            version=traced.version,
            functions=tuple(function for asked, function in functions if asked),
            contexts=tuple(contexts),
            sets=tuple(sets),
            children=traced.children,
            lost=tuple(traced.told("lost")),
            doubts=traced.doubts,
            unparsed=unparsed,
            aside=tuple(function for asked, function in functions if not asked),
            in_tests=_in_tests(where, modules, context),
            foreign=tuple(sorted({*traced.told("foreign")})),
        )

    def contexts_of(self, function: FunctionLines) -> frozenset[str]:
        """Return the contexts in which any line of a function ran."""
        return frozenset(name for number in set(function.lines.values()) for name in self._set(number))

    def contexts_at(self, function: FunctionLines, line: int) -> frozenset[str]:
        """Return the contexts in which a line of a function ran."""
        return frozenset(self._set(function.lines[line])) if line in function.lines else frozenset()

    def contexts_in(self, function: FunctionLines, place: Location) -> frozenset[str]:
        """Return the contexts in which some lines of a function ran."""
        numbers = range(place.line or 1, (place.last_line or place.line or 1) + 1)
        return frozenset(name for number in numbers for name in self.contexts_at(function, number))

    def function_at(self, location: Location) -> FunctionLines | None:
        """Return the innermost function around a line."""
        line = location.line or 0
        around = [
            f for f in (*self.functions, *self.aside) if f.location.path == location.path and f.first <= line <= f.last
        ]
        return max(around, key=lambda f: f.first, default=None)

    def within(self, location: Location) -> list[FunctionLines]:
        """Return the functions that begin within some lines of a file."""
        first, last = location.line or 1, location.last_line or location.line or 1
        return [
            f for f in (*self.functions, *self.aside)
            if f.location.path == location.path and first <= (f.location.line or 0) <= last
        ]  # fmt: skip

    def doubt(self, tests: Iterable[str] | None = None) -> str:
        """Return what may have run unseen in some tests (in all where none is named), or nothing."""
        named = None if tests is None else {f"{TEST}{test}" for test in tests}
        for name, program in sorted(self.children.items()):
            if named is None or name in named or not name.startswith(TEST):
                who = name.removeprefix(TEST) or "the run"
                return f"{who} started another process ({program}), which was not followed"
        for name in self.lost:
            if named is None or name in named:
                return f"{name.removeprefix(TEST)} took the tracer away"
        return next(iter(self.doubts), "")

    def _set(self, number: int) -> Iterator[str]:
        for run in self.sets[number].split(","):
            first, _, last = run.partition("-")
            yield from self.contexts[int(first) : int(last or first) + 1]


def named_tests(contexts: Iterable[str]) -> list[str]:
    """Return the ids of the tests among contexts."""
    return sorted(name.removeprefix(TEST) for name in contexts if name.startswith(TEST))


def _in_tests(where: Where, implementation: Iterable[Path], context: Context) -> dict[str, tuple[int, ...]]:
    """Return the lines of other files that ran in a test, or in a fixture."""
    own = {os.path.realpath(path) for path in implementation}
    return {
        context.shown(Path(name)): tuple(sorted(line for line, contexts in lines.items() if any(contexts)))
        for name, lines in where.items()
        if name not in own
    }


def _functions(
    path: str, bodies: list[Body], lines: dict[int, frozenset[str]], numbers: dict[str, int], sets: dict[str, int]
) -> Iterator[tuple[bool, FunctionLines]]:
    """Give each line that ran to the innermost function around it; say of each function whether it is asked for."""
    imported = any(innermost(bodies, line) is None for line in lines)
    own: dict[Body, list[int]] = defaultdict(list)
    for line in sorted(lines):
        if body := innermost(bodies, line):
            own[body].append(line)

    def kept(found: dict[int, frozenset[str]]) -> dict[int, int]:
        texts = {line: _runs(sorted(numbers[name] for name in names)) for line, names in found.items() if names}
        return {line: sets.setdefault(text, len(sets)) for line, text in texts.items()}

    for body in bodies:
        if body.hollow:
            continue
        yield (
            not body.promise and (not imported or is_defined(body, lines)),
            FunctionLines(
                name=body.name,
                location=Location(path=path, line=body.line, last_line=body.last),
                first=body.first,
                last=body.last,
                counts=body.public and body.told,
                told=body.told,
                wrapped=body.wrapped,
                lines=kept({line: lines[line] for line in own[body]}),
            ),
        )


def _runs(numbers: list[int]) -> str:
    """Return numbers in rising order as text, runs of neighbours as `first-last`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ",".join("-".join(map(str, run)) for run in runs)


def is_defined(body: Body, ran: Mapping[int, frozenset[str]]) -> bool:
    """Return whether a line of a function's definition ran, so that the function came to life."""
    return any(line in ran for line in range(body.head, max(body.first, body.line + 1)))
