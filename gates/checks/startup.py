"""Does the package build, as a wheel of a copy, and does each module of the implementation import by itself?"""

import shutil
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

from gates.check import About, Check, Evidence, EvidenceSet
from gates.child import process
from gates.child.probing import Probe
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.source_tree import python_files
from gates.model import CommandRecord, Finding, Level, Location, Model, Outcome, Planned, Severity
from gates.project.copies import copy_project
from gates.project.files import import_roots, module_name, package_root, packages_of, pyproject_of
from gates.report import Section
from gates.task.task import Task
from gates.words import printable

COMPILED = {".c", ".cc", ".cpp", ".cu", ".pyx", ".rs", ".f90", ".go"}
# a copy without .git has no version to be asked for
VERSIONS = {"SETUPTOOLS_SCM_PRETEND_VERSION": "0.0.0", "PDM_BUILD_SCM_VERSION": "0.0.0", "PBR_VERSION": "0.0.0"}


class Built(Model):
    """The build of a wheel; `compiled` says that the project has sources of other languages, which need more tools."""

    ending: Outcome
    backend: str = ""
    problem: str = ""
    wheel: str = ""
    compiled: bool = False


def built_wheel(context: Context, folder: Path) -> tuple[Built, list[process.ProcessRun]]:
    """Build a wheel from a copy by the library `build`, whose hooks run in the project's interpreter."""
    project, runs = pyproject_of(context.root), list[process.ProcessRun]()
    says = project is None or "build-system" in project  # [project] alone describes what may never be a package
    if not says and not (context.root / "setup.py").is_file():
        why = "neither [build-system] nor setup.py says how it is built"
        return Built(ending=Outcome.NOT_APPLICABLE, problem=why), runs
    from build import BuildBackendException, BuildException, ProjectBuilder

    whole, table = folder.with_name("source"), (project or {}).get("build-system")
    backend = str((table if isinstance(table, dict) else {}).get("build-backend", "setuptools")).partition(":")[0]

    def runner(cmd: Sequence[str], cwd: str | None = None, extra_environ: Mapping[str, str] | None = None) -> None:
        env, log = {**VERSIONS, "PIP_NO_INDEX": "1", **(extra_environ or {})}, folder.with_name("build")
        ended = process.run(cmd, cwd=Path(cwd or source), timeout_s=context.timeout_s, log=log, env=env)
        runs.append(ended.model_copy(update={"argv": ("python", "-m", "build", "--wheel", "--no-isolation")}))
        if ended.exit_code != 0:
            raise OSError(f"{ended.ended}: {ended.last_words}")

    try:
        source = copy_project(context.root, whole, copies=1)
        _without_empty_folders(source)
        builder = ProjectBuilder(source, python_executable=context.python, runner=runner)
        with warnings.catch_warnings(action="ignore"):  # the backend's own, which its hook hands on
            wheel = Path(builder.build("wheel", folder))
        return Built(ending=Outcome.PASSED, backend=backend, wheel=wheel.name), runs
    except BuildBackendException as error:
        if absent := _needed(builder):
            return Built(ending=Outcome.UNKNOWN, problem=f"not installed here: {', '.join(sorted(absent))}"), runs
        if apart := _built_by_pip(source, folder, context):
            return Built(ending=Outcome.PASSED, backend=backend, wheel=apart.name), runs
        unseen = type(error.exception).__name__ == "BackendUnavailable" or (bool(runs) and runs[-1].timed_out)
        ending = Outcome.UNKNOWN if unseen else Outcome.FAILED
        compiled = any(path.suffix in COMPILED for path in source.rglob("*"))
        return Built(ending=ending, backend=backend, problem=_line(error.exception), compiled=compiled), runs
    except (BuildException, OSError, EvidenceUnavailable) as error:
        return Built(ending=Outcome.UNKNOWN, problem=_line(error)), runs
    finally:
        shutil.rmtree(whole, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


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
    ended = process.run(argv, cwd=source, timeout_s=context.timeout_s, log=target.with_name("pip"), env=VERSIONS)
    return next(target.glob("*.whl"), None) if ended.exit_code == 0 else None


def _without_empty_folders(source: Path) -> None:
    """Remove empty folders, such as that of the reports: a backend that looks for packages would take them for some."""
    for folder in sorted((path for path in source.rglob("*") if path.is_dir()), reverse=True):
        if ".git" not in folder.parts and not any(folder.iterdir()):
            folder.rmdir()


def _line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return printable(lines[0])[:300]


MODULE_LIMIT_S = 60.0
TESTS = {"tests", "test"}


class Imported(Model):
    """One module imported by itself, how that ended and, where it did not work, why, in words, and at which line."""

    path: str
    name: str
    ending: Outcome
    error: str = ""
    why: str = ""
    location: Location | None = None


class Imports(Model):
    """The imports of all modules, and why some were not reached."""

    command: CommandRecord
    modules: tuple[Imported, ...]
    problem: str = ""


class Startup(Evidence):
    """The build of the package, and the import of each of its modules by itself in a fresh process."""

    build: Built
    imports: Imports
    aside: tuple[str, ...]

    @classmethod
    def derive(cls, task: Task, context: Context, seen: EvidenceSet) -> Self:
        """Import the modules of the project one by one, and build a copy of it."""
        files = python_files(task, context)
        aside = {path: why for path in files if (why := _why_not(path, context))}
        modules = {context.shown(path): module_name(path) for path in files if path not in aside}
        roots, folder = import_roots(task, context), context.folder("startup").evidence
        own = {name.split(".")[0] for name in modules.values()}
        for root in roots:  # what lies beside the implementation is the project's too
            own |= {path.stem for path in root.iterdir() if path.suffix == ".py" or path.is_dir()}
        used = {name for path in files if path not in aside for name in packages_of(path)}
        preload, each_s = sorted(used - own - sys.stdlib_module_names), min(MODULE_LIMIT_S, context.timeout_s)
        asked = {"modules": [*modules.items()], "preload": preload, "own": sorted(own), "each_s": each_s}
        before, make = seen.before(cls), partial(_imports, asked, task, context, folder)
        imports = seen.taken_or("imports", before.imports if before else None, make, context)
        built, builds = built_wheel(context, folder / "wheel")
        left = tuple(f"{context.shown(path)}: {why}" for path, why in aside.items())
        commands = (imports.command, *(run.as_command("build") for run in builds))
        how = "each module imported in a process of its own, and a wheel built from a copy"
        return cls(how=how, commands=commands, build=built, imports=imports, aside=left)


def _imports(asked: dict[str, Any], task: Task, context: Context, folder: Path) -> Imports:
    told = Probe(context, task, folder).ask("importing", "imports", asked, context.timeout_s, env={})
    if told.process is None:
        raise EvidenceUnavailable(told.problem)
    tried = tuple(map(Imported.model_validate, told.of("module")))
    unseen = [path for path, _ in asked["modules"] if path not in {one.path for one in tried}]
    problem = f"{len(unseen)} modules were not reached, first {unseen[0]}: {told.trouble}" if unseen else ""
    return Imports(command=told.process.as_command("imports"), modules=tried, problem=problem)


def _why_not(path: Path, context: Context) -> str:
    """Return why a file is not imported, or nothing where it is a module of a package."""
    if path.stem == "__main__" or path == context.root / "setup.py":
        return "it is run, not imported"
    if path.stem == "conftest" or TESTS & {*path.relative_to(context.root).parts}:
        return "it belongs to the tests"
    if package_root(path) == path.parent and path.parent not in {context.root, context.root / "src"}:
        return "it lies in no package"
    return "" if all(part.isidentifier() for part in module_name(path).split(".")) else "its path is no module name"


BUILT = {Outcome.PASSED: "built", Outcome.FAILED: "failed", Outcome.UNKNOWN: "not seen"}


def page(_task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell build and imports."""
    if (seen := evidence.get(Startup)) is None:
        yield Section(title="Build and Start-up", text=f"Not seen: {evidence.why_missing(Startup)}.")
        return
    built, modules = seen.build, seen.imports.modules
    imported = sum(module.ending is Outcome.PASSED for module in modules)
    by = f" ({built.backend})" if built.backend else ""
    facts = (
        ("Build", f"{BUILT.get(built.ending, 'no package')}{by}: {built.problem or built.wheel}"),
        ("Modules imported by themselves", f"{imported} of {len(modules)}"),
        ("Not imported", ", ".join(seen.aside[:10]) or "-"),
    )
    yield Section(title="Build and Start-up", facts=facts)


RAW = "Startup.json"


def plan(_task: Task) -> Iterator[Planned]:
    """Plan the build and the imports."""
    yield Planned(id="build", title="The package builds", level=Level.SHOULD)
    yield Planned(id="imports", title="Each module imports by itself", level=Level.SHOULD)


BUILD = About(rule="EX007", check="build", evidence=RAW)
IMPORTS = About(rule="EX008", check="imports", evidence=RAW)


def judge(_task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge what was seen of build and imports."""
    if (seen := evidence.get(Startup)) is None:
        why = f"It was not seen starting up: {evidence.why_missing(Startup)}"
        yield from (_unseen(about, why) for about in (BUILD, IMPORTS))
    else:
        yield _build(seen)
        yield from _of_imports(seen.imports)


def _build(seen: Startup) -> Finding:
    built, about = seen.build, BUILD.but(level=Level.SHOULD, actual=BUILT.get(seen.build.ending, "no package"))
    if built.ending is Outcome.UNKNOWN:
        return _unseen(BUILD, f"The package was not built: {built.problem}")
    if built.ending is Outcome.NOT_APPLICABLE:
        return about.not_asked(f"There is no package to build: {built.problem}.")
    if built.ending is Outcome.PASSED:
        return about.passed(f"{built.backend} built {built.wheel}.")
    about = about.but(severity=Severity.MEDIUM if built.compiled else Severity.HIGH, expected="a wheel")
    about = about.but(location=Location(path="pyproject.toml") if built.backend else None)
    about = about.but(impact="Nobody can install this version.", command="python -m pip wheel --no-deps .")
    message = f"{built.backend} built no wheel: {built.problem}"
    return about.failed(message, "Fix what the backend names.", evidence="startup/build.stderr.txt")


def _of_imports(seen: Imports) -> Iterator[Finding]:
    about = IMPORTS.but(level=Level.SHOULD, expected="imported")
    amiss = [module for module in seen.modules if module.ending is not Outcome.PASSED]
    for module in amiss:
        message, place = f"{module.name} {module.why}", {"location": module.location, "subject": module.name}
        own = about.but(severity=Severity.HIGH, actual=module.error, cause=module.error, **place)
        own = own.but(impact="Whoever imports it first meets this error.", command=f"python -c 'import {module.name}'")
        broken = module.ending is Outcome.FAILED
        yield own.failed(message, "Fix the import.") if broken else _unseen(IMPORTS, message, **place)
    if seen.problem:
        yield _unseen(IMPORTS, seen.problem, subject="unreached")
    elif not amiss:
        count = len(seen.modules)
        own, none = about.but(actual=f"{count} imported"), "The implementation holds no module of a package."
        yield own.passed(f"{count} modules import by themselves.") if count else own.not_asked(none)


def _unseen(about: About, message: str, **own: object) -> Finding:
    fix = "Install what it needs, or run it where that is installed."
    return about.unknown(message, fix, level=Level.ADVISORY, actual="not seen", **own)


CHECK = Check("startup", "execution", 40, (Startup,), plan, judge, page)
