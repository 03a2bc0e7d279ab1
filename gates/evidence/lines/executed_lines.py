"""Which test ran which lines of the implementation, as the library `coverage` saw it inside of the test run."""

import ast
import json
import os
import sys
from collections.abc import Collection, Iterable, Iterator
from itertools import compress
from pathlib import Path
from typing import Self

from pydantic import Field

from gates.check import Evidence
from gates.code.meanings import PLAIN, Function, is_hollow, last_name
from gates.code.sources import Sources
from gates.code.symbols import Resolver
from gates.code.syntax import SourceModule, first_line, live_statements
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.lines.traced import FOLDER, TEST, Traced
from gates.model import Location, Model
from gates.project.files import files_of, import_roots, is_code, module_name
from gates.task.task import Task

# decorators under which a call runs the lines of the body; any other may answer in its place, or compile it
ANSWERING = {"cached_property", "cache", "lru_cache", "typechecked", "deprecated", "compile", "jit", "script"}
RUNNING = PLAIN - ANSWERING | {"setter", "getter", "deleter", "contextmanager", "asynccontextmanager"}


class FunctionLines(Model):
    """A function of the implementation, and the lines that run only when it is called: those of `body`.

    It is `public` where no name on the way to it starts with one underscore, and it has something to run: it is no
    overload, no abstract method or one of a protocol, and more than `...` or `raise NotImplementedError`. `counts` says
    whether nothing excuses it from being run: it was defined here, too, and has lines of its own. Where it is
    `wrapped`, a decorator may answer in its place.
    """

    name: str
    location: Location
    body: Location
    public: bool = True
    counts: bool
    wrapped: bool


def functions_of(module: SourceModule, ran: Collection[int] = ()) -> Iterator[FunctionLines]:
    """Yield the functions of a file that can come to life, those inside of others too, where some lines ran."""
    return _in(module.tree.body, module.path, "", ran, public=is_code(module.path, [module.path]))


def _in(
    statements: list[ast.stmt], path: str, owner: str, ran: Collection[int], *, public: bool, promise: bool = False
) -> Iterator[FunctionLines]:
    for node in live_statements(statements):
        if isinstance(node, ast.ClassDef):
            seen, protocol = public and not is_private(node.name), "Protocol" in map(last_name, node.bases)
            yield from _in(node.body, path, f"{owner}{node.name}.", ran, public=seen, promise=protocol)
        elif isinstance(node, Function):
            yield _function(node, path, owner, ran, public=public and not promise)
            yield from _in(node.body, path, f"{owner}{node.name}.", ran, public=False)


def _function(node: Function, path: str, owner: str, ran: Collection[int], *, public: bool) -> FunctionLines:
    rest = [part for part in node.body if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))]
    decorators = {name for part in node.decorator_list if (name := last_name(part))}
    promise = not rest or is_hollow(node) or any("abstract" in name for name in decorators)
    public = public and not is_private(node.name) and not promise
    last = node.end_lineno or node.lineno
    first = min(map(first_line, rest), default=last)
    defined = not ran or any(line in ran for line in range(first_line(node), max(first, node.lineno + 1)))
    return FunctionLines(
        name=owner + node.name,
        location=Location(path=path, line=node.lineno, last_line=last),
        body=Location(path=path, line=first, last_line=last),
        public=public,
        counts=public and first > node.lineno and defined,
        wrapped=not decorators <= RUNNING,
    )


def is_private(name: str) -> bool:
    """Return whether a name is for its own project alone, such as `_step`; `__call__` is not."""
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def coverage_env(folder: Path, task: Task, context: Context) -> dict[str, str]:
    """Make the folder that the plugin writes to, and return the environment that tells it what to trace."""
    folder.mkdir(parents=True, exist_ok=True)
    tests = (path.split("::")[0] for path in task.every_test)
    paths = [_pattern(context.root / entry) for entry in dict.fromkeys((*task.implementation, *tests))]
    told = {"folder": str(folder), "paths": paths, "root": str(context.root), "modules": modules_of(task, context)}
    return {"GATES_COVERAGE": json.dumps(told)}


def modules_of(task: Task, context: Context) -> dict[str, str]:
    """Return the names that the implementation's modules may be imported by, and the files they must come from."""
    found = {}
    for path in files_of(task.implementation, context.root):
        for root in import_roots(task, context):
            name = module_name(path, root) if path.suffix == ".py" and path.is_relative_to(root) else ""
            if name and name.split(".")[0] not in sys.stdlib_module_names:
                found[name] = os.path.realpath(path)
    return found


def _pattern(path: Path) -> str:
    """Return a path as a pattern that matches it alone, or all below it."""
    plain = "".join("?" if sign in "*?[]" else sign for sign in str(path))
    return f"{plain}/*" if path.is_dir() else plain


class ExecutedLines(Evidence):
    """The functions of the implementation, and by file the lines that ran, each with the contexts that it ran in.

    A context is a test (`test:<id>`), the setup of a fixture wider than a function (`fixture:<name>`), or nothing:
    import, collection, between tests. A line has the number of a set of contexts; `sets` holds each as a hexadecimal
    number, with a bit for each context. `unseen` says by context what hid lines in it, and `doubts` what else was not
    seen. `foreign` are the files that modules were imported from, if not from here.
    """

    functions: tuple[FunctionLines, ...]
    lines: dict[str, dict[int, int]]
    contexts: tuple[str, ...]
    sets: tuple[str, ...]
    unseen: dict[str, str] = Field(default={})
    doubts: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Read what the plugin left beside the test run, which must have been collected before."""
        traced = Traced.read(context.evidence / "pytest" / FOLDER)
        if traced.reason:
            raise EvidenceUnavailable(f"executed lines were not measured: {traced.reason}")
        modules, _ = Resolver(task, Sources(context.root)).read()
        own = {os.path.realpath(path): module.path for path, module in modules.items()}
        where = {path: dict[int, frozenset[str]]() for path in own} | traced.where
        contexts = sorted({name for lines in where.values() for names in lines.values() for name in names})
        numbers, sets = {name: number for number, name in enumerate(contexts)}, dict[frozenset[str], int]()
        lines: dict[str, dict[int, int]] = {}
        for path, ran in where.items():
            shown = own.get(path) or context.shown(Path(path))
            lines[shown] = {line: sets.setdefault(ran[line], len(sets)) for line in sorted(ran) if ran[line]}
        return cls(
            how="coverage, inside of the test run, one context a test",
            functions=tuple(f for one in modules.values() for f in functions_of(one, lines.get(one.path, {}))),
            lines=lines,
            contexts=tuple(contexts),
            sets=tuple(f"{sum(1 << numbers[name] for name in names):x}" for names in sets),
            unseen=traced.unseen,
            doubts=traced.doubts,
            foreign=tuple(sorted({*traced.foreign})),
        )

    def contexts_in(self, place: Location) -> frozenset[str]:
        """Return the contexts in which some lines ran."""
        ran, bits = self.lines.get(place.path, {}), 0
        for number in {ran[line] for line in place.lines if line in ran}:
            bits |= int(self.sets[number], 16)
        return frozenset(compress(self.contexts, map(int, reversed(f"{bits:b}"))))

    def function_at(self, location: Location) -> FunctionLines | None:
        """Return the innermost function around a line."""
        line = Location(path=location.path, line=location.line)
        around = [function for function in self.functions if function.body.meets(line)]
        return max(around, key=lambda function: function.body.line or 0, default=None)

    def doubt(self, tests: Iterable[str] | None = None) -> str:
        """Return what may have run unseen in some tests (in all where none is named), or nothing."""
        named = None if tests is None else {f"{TEST}{test}" for test in tests}
        for name, what in sorted(self.unseen.items()):
            if named is None or name in named or not name.startswith(TEST):
                return f"{name.removeprefix(TEST) or 'the run'} {what}"
        return next(iter(self.doubts), "")


def named_tests(contexts: Iterable[str]) -> list[str]:
    """Return the ids of the tests among contexts."""
    return sorted(name.removeprefix(TEST) for name in contexts if name.startswith(TEST))
