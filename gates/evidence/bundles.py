"""Bundles of measurements from other machines: read, and compared with the files here that they speak of."""

import ast
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Self

from gates.bundles import BadBundle, BoundFile, BundledRun, Definition, Origin, definition_of, encode, read, signer_of
from gates.check import Evidence
from gates.code.syntax import Unparsed, parse
from gates.config import Context
from gates.errors import Absent, EvidenceUnavailable
from gates.measuring.taken import MeasurementRun
from gates.model import Model
from gates.project.files import files_of, import_roots
from gates.project.revision import digest_file
from gates.task.measurement import Measurement
from gates.task.task import Task
from gates.words import first_of, visible

FOLDER = "bundles"
Bound = Mapping[str, Mapping[str, BoundFile]]  # by measurement and path


class SeenRun(Model):
    """A run of a bundle, what it was made for, and what was changed since."""

    run: MeasurementRun
    measures: tuple[Definition, ...]
    changed: tuple[str, ...]


class HandedIn(Model):
    """A bundle that was handed in; without runs it is refused. `why` says why, or what was changed since."""

    path: str
    why: str = ""
    origin: Origin | None = None
    signer: str = ""
    runs: tuple[SeenRun, ...] = ()


class Bundles(Evidence):
    """Every bundle that was handed in, in the order of their paths."""

    handed_in: tuple[HandedIn, ...]

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Read each bundle and compare the files that it speaks of with those here."""
        if not task.bundles:
            raise Absent("no bundle was handed in")
        folder = context.folder(FOLDER).evidence
        now = {one.id: {file.path: file for file in bind(task, one, context)} for one in task.measurements}
        looked = (_looked_at(path, task, context, now, folder / f"{i}.json") for i, path in enumerate(task.bundles))
        return cls(how="bundles made on other machines", handed_in=tuple(looked))


def _looked_at(path: str, task: Task, context: Context, now: Bound, kept: Path) -> HandedIn:
    try:
        bundle = read(context.root / path)
        signer = signer_of(bundle, context.signers) if context.signers else ""
    except BadBundle as error:
        return HandedIn(path=path, why=str(error))
    if bundle.task.id != task.id:
        return HandedIn(path=path, why=f"it is evidence of the task {bundle.task.id}, not of {task.id}")
    kept.write_bytes(encode(bundle))
    told = {"raw": f"{FOLDER}/{kept.name}", "elsewhere": f"{path}, {f'signed by {signer}' if signer else 'not signed'}"}
    changed = [(one, tuple(_changed(one, task, context.root, now))) for one in bundle.runs]
    runs = tuple(SeenRun(run=o.run.model_copy(update=told), measures=o.measures, changed=c) for o, c in changed)
    changes = first_of(list(dict.fromkeys(change for run in runs for change in run.changed)), 10)
    return HandedIn(path=path, why=changes, origin=bundle.origin, signer=signer, runs=runs)


def _changed(one: BundledRun, task: Task, root: Path, now: Bound) -> Iterator[str]:
    """Say what is not as it was: the measurement in the task file, and the files that it speaks of."""
    if (measurement := next((m for m in task.measurements if m.id == one.run.id), None)) is None:
        yield f"the task has no measurement {one.run.id} any more"
        return
    if definition_of(measurement) != one.definition:
        yield f"measurement {one.run.id} in the task file was changed"
    was, files = {file.path: file for file in one.files}, now[measurement.id]
    for path in sorted(was.keys() | files.keys()):
        if was.get(path) != files.get(path):
            gone = "is not used any more" if (root / path).exists() else "was removed"
            yield f"{path} {'was added' if path not in was else gone if path not in files else 'was changed'}"


LONGEST = 250  # of a name on most file systems
MODULES = (".py", ".so", ".pyd")


def bound_files(task: Task, measurement: Measurement, context: Context) -> tuple[Path, ...]:
    """Return the files that a measurement speaks of, in the order of their paths.

    What is imported is found by reading the source: what is imported by a name made at run time, or opened as data,
    is not seen unless the task's `implementation` or the command names it.
    """
    root, roots = context.root, _roots(task, measurement, context)
    named = set(_named(measurement, roots, root))
    if measurement.read == "pytest-benchmark":
        named |= {folder / "conftest.py" for path in named for folder in path.parents}
    found = {*named, *files_of(task.implementation, root)}
    found = {path for path in found if path.is_file() and path.is_relative_to(root)}
    edge = list(found)
    while edge:
        more = {target for target in _imported(edge.pop(), roots) if target.is_relative_to(root)} - found
        found |= more
        edge += more
    return tuple(sorted(found))


def named_files(task: Task, measurement: Measurement, context: Context) -> Iterator[str]:
    """Yield the files of the project that a measurement names: the module of a call, the scripts of a command."""
    for path in sorted(set(_named(measurement, _roots(task, measurement, context), context.root))):
        if path.is_file() and path.resolve().is_relative_to(context.root):
            yield path.relative_to(context.root).as_posix()


def bind(task: Task, measurement: Measurement, context: Context) -> tuple[BoundFile, ...]:
    """Return those files as they are now; raise `EvidenceUnavailable` for one that cannot be read."""
    try:
        digests = [digest_file(path, context.root) for path in bound_files(task, measurement, context)]
        return tuple(BoundFile(path=each.path, sha256=each.sha256) for each in digests)
    except OSError as error:
        named = visible(context.shown(Path(str(error.filename))))
        raise EvidenceUnavailable(f"{named} cannot be read: {error.strerror or error}") from error


def _roots(task: Task, measurement: Measurement, context: Context) -> list[Path]:
    """Return where imports are looked for: as the project's interpreter does, beside a script first."""
    scripts = [context.root / word for word in _words(measurement) if word.endswith(".py")]
    return list(dict.fromkeys([*(path.parent for path in scripts if path.is_file()), *import_roots(task, context)]))


def _words(measurement: Measurement) -> Iterator[str]:
    """Yield what a measurement calls and the words of its commands, and for an option with a value that as well."""
    for key, word in measurement.named():
        if key != "build" and len(word) < LONGEST and "{" not in word:
            yield word.split("::")[0]
            yield word.partition("=")[2]


def _named(measurement: Measurement, roots: list[Path], root: Path) -> Iterator[Path]:
    """Yield the files that a measurement names: scripts and folders of its commands, modules it runs or calls."""
    modules = list[str]()
    for word in filter(None, _words(measurement)):
        if (path := Path(os.path.normpath(root / word))) != root and path.is_relative_to(root):
            yield from files_of((word,), root)
        module = word.partition(":")[0]
        if all(part.isidentifier() for part in module.split(".")):
            modules += [module, f"{module}.__main__"]
    for module in modules:
        yield from _files_of_module(module, roots)


def _imported(path: Path, roots: list[Path]) -> Iterator[Path]:
    try:
        tree = parse(path.read_bytes() if path.suffix == ".py" else b"", path.name, "").tree
    except (OSError, Unparsed):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module, level = (node.module or "", node.level) if isinstance(node, ast.ImportFrom) else ("", 0)
            for alias in node.names:
                yield from _files_of_module(f"{module}.{alias.name}", path.parents[level - 1 : level] or roots)


def _files_of_module(module: str, roots: Iterable[Path]) -> Iterator[Path]:
    """Yield the files that importing a module runs: its own, and that of each package around it."""
    parts = [part for part in module.split(".") if part.isidentifier()]
    for base in roots:
        places = [base.joinpath(*parts[:count]) for count in range(1, len(parts) + 1)]
        files = [place / "__init__.py" for place in (base, *places)]
        files += [path for place in places for path in place.parent.glob(f"{place.name}.*") if path.suffix in MODULES]
        yield from filter(Path.is_file, files)
