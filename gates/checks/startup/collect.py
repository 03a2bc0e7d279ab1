"""Whether the package builds, and whether each module of the implementation imports by itself.

A wheel is built of a copy by the library `build`, without network; where that fails, by pip, which may get a backend.
"""

import re
import shutil
import sys
import tomllib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from gates.check import Evidence
from gates.child import process
from gates.child.asking import HERE
from gates.child.probing import Probe, Probed
from gates.child.process import ProcessRun
from gates.child.tracebacks import is_ours
from gates.config import Context
from gates.errors import EvidenceUnavailable, UsageError
from gates.evidence.tests.test_records import Warned
from gates.model import Location, Model
from gates.project.copies import copy_project
from gates.project.files import files_of, import_roots, module_name, package_root, packages_of
from gates.task.task import Task
from gates.words import printable

COMPILED = {".c", ".cc", ".cpp", ".cu", ".pyx", ".rs", ".f90", ".go"}
# a copy without .git has no version to be asked for
VERSIONS = {"SETUPTOOLS_SCM_PRETEND_VERSION": "0.0.0", "PDM_BUILD_SCM_VERSION": "0.0.0", "PBR_VERSION": "0.0.0"}


class BuildEnding(StrEnum):
    """How a build ended."""

    BUILT = "built"
    FAILED = "failed"
    UNSEEN = "not seen"
    NONE = "no package"


class Built(Model):
    """The build of a wheel; `compiled` says that the project has sources of other languages, which need more tools."""

    ending: BuildEnding
    backend: str = ""
    problem: str = ""
    wheel: str = ""
    compiled: bool = False


def started(
    argv: Sequence[str], cwd: Path, context: Context, log: Path, env: Mapping[str, str] | None = None
) -> ProcessRun:
    """Run a command to its end; raise `EvidenceUnavailable` where it cannot be started."""
    try:
        return process.run(argv, cwd=cwd, timeout_s=context.timeout_s, log=log, env=env)
    except OSError as error:
        raise EvidenceUnavailable(f"{argv[0]!r} cannot be started: {error}") from error


def built_wheel(project: dict[str, Any] | None, context: Context, folder: Path) -> tuple[Built, list[ProcessRun]]:
    """Build a wheel from a copy by the library `build`, whose hooks run in the project's interpreter."""
    says = project is None or "build-system" in project  # [project] alone describes what may never be a package
    if not says and not (context.root / "setup.py").is_file():
        return Built(ending=BuildEnding.NONE, problem="neither [build-system] nor setup.py says how it is built"), []
    from build import BuildBackendException, BuildException, ProjectBuilder

    whole, target, runs = folder.with_name("source"), folder, list[ProcessRun]()
    backend = str(table(project, "build-system").get("build-backend", "setuptools")).partition(":")[0]

    def runner(cmd: Sequence[str], cwd: str | None = None, extra_environ: Mapping[str, str] | None = None) -> None:
        env = {**VERSIONS, "PIP_NO_INDEX": "1", **(extra_environ or {})}
        ended = started(cmd, Path(cwd or source), context, folder.with_name("build"), env)
        runs.append(ended.model_copy(update={"argv": ("python", "-m", "build", "--wheel", "--no-isolation")}))
        if ended.exit_code != 0:
            raise OSError(f"{ended.ended}: {_error_in(ended)}")

    try:
        source = copy_project(context.root, whole, copies=1)
        _without_empty_folders(source)
        builder = ProjectBuilder(source, python_executable=context.python, runner=runner)
        with warnings.catch_warnings(action="ignore"):  # the backend's own, which its hook hands on
            wheel = Path(builder.build("wheel", target))
        return Built(ending=BuildEnding.BUILT, backend=backend, wheel=wheel.name), runs
    except BuildBackendException as error:
        unseen = type(error.exception).__name__ == "BackendUnavailable" or (bool(runs) and runs[-1].timed_out)
        if absent := _needed(builder):
            return Built(ending=BuildEnding.UNSEEN, problem=f"not installed here: {', '.join(sorted(absent))}"), runs
        if apart := _built_by_pip(source, target, context):
            return Built(ending=BuildEnding.BUILT, backend=backend, wheel=apart.name), runs
        ending = BuildEnding.UNSEEN if unseen else BuildEnding.FAILED
        compiled = any(path.suffix in COMPILED for path in source.rglob("*"))
        return Built(ending=ending, backend=backend, problem=_line(error.exception), compiled=compiled), runs
    except (BuildException, OSError, UsageError) as error:
        return Built(ending=BuildEnding.UNSEEN, problem=_line(error)), runs
    finally:
        shutil.rmtree(whole, ignore_errors=True)
        shutil.rmtree(target, ignore_errors=True)


def _needed(builder: Any) -> set[str]:  # noqa: ANN401  # a ProjectBuilder
    """Return what a build that failed needs and this interpreter does not have."""
    from build import check_dependency

    absent: set[str] = set()
    with suppress(Exception):  # where its hook fails, too, that is why the build did
        absent = {chain[0] for one in builder.build_system_requires for chain in check_dependency(one)}
        absent |= {chain[0] for one in builder.get_requires_for_build("wheel") for chain in check_dependency(one)}
    return absent


def _built_by_pip(source: Path, target: Path, context: Context) -> Path | None:
    """Return the wheel that pip builds with a backend of its own choice, as for whoever installs the project."""
    argv = [context.python, "-m", "pip", "wheel", "--retries=1", "--no-deps", "--wheel-dir", str(target), "."]
    ended = started(argv, source, context, target.with_name("pip"), VERSIONS)
    return next(target.glob("*.whl"), None) if ended.exit_code == 0 else None


def _without_empty_folders(source: Path) -> None:
    """Remove empty folders, such as that of the reports: a backend that looks for packages would take them for some."""
    for folder in sorted((path for path in source.rglob("*") if path.is_dir()), reverse=True):
        if folder.name != ".git" and ".git" not in folder.parts and not any(folder.iterdir()):
            folder.rmdir()


def _line(error: BaseException) -> str:
    """Return what an error says first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return printable(lines[0])[:300]


def _error_in(ended: ProcessRun) -> str:
    """Return the line of a backend's output that names the error: advice often comes after it."""
    lines = [line.strip() for line in ended.stderr.tail.splitlines()]
    named = [line for line in lines if re.match(r"(error|[\w.]*(Error|Exception)): ", line)]
    return named[-1][:300] if named else ended.last_words


def table(said: dict[str, Any] | None, name: str) -> dict[str, Any]:
    """Return a table of a TOML file, empty where there is none of that name."""
    found = (said or {}).get(name)
    return found if isinstance(found, dict) else {}


# what of the standard library is there on some platforms only
PLATFORM = {"ctypes", "os", "signal", "socket", "select", "asyncio", "multiprocessing", "subprocess", "time", "mmap"}
DEFECTS = {"SyntaxError", "NameError", "ImportError", "AttributeError", "TypeError"}


class Ending(StrEnum):
    """How the import of a module by itself ended."""

    IMPORTED = "imported"
    BROKEN = "broken"
    ASIDE = "needs something optional, or refuses to be imported alone"
    UNSEEN = "not seen"


def ended_as(fact: dict[str, Any], own: set[str]) -> tuple[Ending, str]:
    """Return how an import ended, and the module that is missing, if one is.

    A defect is a module of the project that is not there, a name that is not defined, a cycle, a syntax error. One
    that raises an error by its own will, or that speaks of its surroundings, is left aside.
    """
    if "kinds" not in fact:
        return Ending.UNSEEN, ""
    for name in map(str, fact.get("missing", ())):
        if name.split(".")[0] not in own:
            return Ending.ASIDE, name
        if not fact.get("refused"):
            return Ending.BROKEN, name
    of = str(fact.get("of") or "")
    if fact.get("refused") or not DEFECTS & {str(kind) for kind in fact.get("kinds", ())}:
        return Ending.ASIDE, ""
    return (Ending.ASIDE, of) if of.split(".")[0] in PLATFORM else (Ending.BROKEN, "")


def frame_of(fact: dict[str, Any], context: Context) -> Location | None:
    """Return the innermost frame of a failed import that lies in the project."""
    for name, line in reversed([frame for frame in fact.get("frames", ()) if len(frame) == 2]):
        path = Path(str(name))
        if path.is_absolute() and is_ours(path, context) and int(line) > 0:
            return Location(path=context.shown(path), line=int(line))
    return None


MODULE_LIMIT_S = 60.0
TESTS = {"tests", "test"}


class Imported(Model):
    """One module imported by itself, how that ended and, where it did not work, why and at which line."""

    path: str
    name: str
    ending: Ending
    error: str = ""
    location: Location | None = None
    missing: str = ""


class Startup(Evidence):
    """The build of the package, and the import of each of its modules by itself in a fresh process."""

    build: Built
    modules: tuple[Imported, ...]
    aside: tuple[str, ...]
    warnings: tuple[Warned, ...]
    problem: str = ""

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Import the modules of the project one by one, and build a copy of it."""
        plan = _Plan(task, context)
        if not plan.modules and not plan.aside:
            raise EvidenceUnavailable(f"no Python file in {', '.join(task.implementation)} ({task.path})")
        folder = context.folder("startup").evidence
        imports = _imported(plan, context, folder)
        told = imports.of("module")
        built, builds = built_wheel(plan.project, context, folder / "wheel")
        unseen = [path for path in plan.modules if path not in {fact["path"] for fact in told}]
        runs = [("imports", imports.process), *(("build", run) for run in builds)]
        return cls(
            how="each module imported in a process of its own, and a wheel built from a copy",
            commands=tuple(run.as_command(purpose) for purpose, run in runs if run),
            build=built,
            modules=tuple(_module(plan, fact, context) for fact in told),
            aside=tuple(plan.aside),
            warnings=tuple(dict.fromkeys(_warnings(told, context))),
            problem=f"{len(unseen)} modules were not reached, first {unseen[0]}: {imports.trouble}" if unseen else "",
        )


class _Plan:
    """The modules to import, others' packages to load first, and the files that are no modules."""

    def __init__(self, task: Task, context: Context) -> None:
        self.roots = import_roots(task, context)
        self.modules: dict[str, str] = {}
        self.aside: list[str] = []
        self.project = _pyproject(context.root)
        used: set[str] = set()
        for path in files_of(task.implementation, context.root):
            if path.suffix != ".py":
                continue
            why_not = _why_not(path, context)
            if why_not:
                self.aside.append(f"{context.shown(path)}: {why_not}")
                continue
            self.modules[context.shown(path)] = module_name(path)
            used |= packages_of(path)
        self.own = {name.split(".")[0] for name in self.modules.values()}
        for root in self.roots:  # what lies beside the implementation is the project's too
            self.own |= {path.stem for path in root.iterdir() if path.suffix == ".py" or path.is_dir()}
        self.preload = sorted(used - self.own - sys.stdlib_module_names)


def _imported(plan: _Plan, context: Context, folder: Path) -> Probed:
    each_s = min(MODULE_LIMIT_S, context.timeout_s)
    asked = {"modules": [*plan.modules.items()], "preload": plan.preload, "own": sorted(plan.own), "each_s": each_s}
    told = Probe(context, folder, plan.roots).ask("importing", "imports", asked, context.timeout_s, threads=None)
    if told.process is None:
        raise EvidenceUnavailable(told.problem)
    return told


def _module(plan: _Plan, fact: dict[str, Any], context: Context) -> Imported:
    path, name = str(fact["path"]), printable(str(fact["name"]))
    if "error" not in fact:
        return Imported(path=path, name=name, ending=Ending.IMPORTED)
    ending, missing = ended_as(fact, plan.own)
    message = ": ".join(part for part in (str(fact["error"]), str(fact.get("message", ""))) if part)
    place, told = frame_of(fact, context) or Location(path=path), {"error": printable(message)}
    return Imported(path=path, name=name, ending=ending, missing=printable(missing), location=place, **told)


def _warnings(facts: list[dict[str, Any]], context: Context) -> Iterator[Warned]:
    for one in (one for fact in facts for one in fact.get("warnings", ())):
        path = Path(str(one["path"]))
        if str(path).startswith(HERE):  # the module speaks of itself to whoever imports it
            continue
        shown = context.shown(path if path.is_absolute() else context.root / path)
        place = Location(path=printable(shown), line=max(int(one["line"] or 1), 1))
        yield Warned(category=printable(str(one["category"])), message=printable(str(one["message"])), location=place)


def _why_not(path: Path, context: Context) -> str:
    """Return why a file is not imported, or nothing where it is a module of a package."""
    if path.stem == "__main__" or path == context.root / "setup.py":
        return "it is run, not imported"
    if path.stem == "conftest" or TESTS & {*path.relative_to(context.root).parts}:
        return "it belongs to the tests"
    base = package_root(path)
    if base == path.parent and base not in {context.root, context.root / "src"}:
        return "it lies in no package"
    return "" if all(part.isidentifier() for part in module_name(path).split(".")) else "its path is no module name"


def _pyproject(root: Path) -> dict[str, Any] | None:
    """Return what pyproject.toml says: nothing where there is none, `None` where it cannot be read."""
    path = root / "pyproject.toml"
    try:
        return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (OSError, ValueError):
        return None
