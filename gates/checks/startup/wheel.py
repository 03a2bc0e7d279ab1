"""A wheel, built from a copy of the project without network, by the library `build`."""

import re
import shutil
import warnings
import zipfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

from gates.child import process
from gates.child.process import ProcessRun
from gates.config import Context
from gates.errors import EvidenceUnavailable, UsageError
from gates.model import Model
from gates.project.copies import copy_project
from gates.words import printable

COMPILED = {".c", ".cc", ".cpp", ".cu", ".pyx", ".rs", ".f90", ".go"}
INSTALLED = """
import importlib.metadata, sys
from packaging.requirements import Requirement
for asked in map(Requirement, sys.argv[1:]):
    found = importlib.metadata.distributions(name=asked.name)
    fits = any(asked.specifier.contains(each.version, prereleases=True) for each in found)
    if not fits and (asked.marker is None or asked.marker.evaluate()):
        print(asked)
"""
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
    bytes: int = 0
    files: int = 0
    absent: tuple[str, ...] = ()
    compiled: bool = False


def started(
    argv: Sequence[str], cwd: Path, context: Context, log: Path, env: Mapping[str, str] | None = None
) -> ProcessRun:
    """Run a command to its end; raise `EvidenceUnavailable` where it cannot be started."""
    try:
        return process.run(argv, cwd=cwd, timeout_s=context.timeout_s, log=log, env=env)
    except OSError as error:
        raise EvidenceUnavailable(f"{argv[0]!r} cannot be started: {error}") from error


def built_wheel(
    project: dict[str, Any] | None, stems: Sequence[str], context: Context, folder: Path
) -> tuple[Built, list[ProcessRun]]:
    """Build a wheel from a copy by the library `build`, whose hooks run in the project's interpreter."""
    says = project is None or "build-system" in project  # [project] alone describes what may never be a package
    if not says and not (context.root / "setup.py").is_file():
        return Built(ending=BuildEnding.NONE, problem="neither [build-system] nor setup.py says how it is built"), []
    from build import BuildBackendException, BuildException, ProjectBuilder

    source, target, runs = folder.with_name("source"), folder, list[ProcessRun]()
    backend = str(table(project, "build-system").get("build-backend", "setuptools")).partition(":")[0]

    def runner(cmd: Sequence[str], cwd: str | None = None, extra_environ: Mapping[str, str] | None = None) -> None:
        env = {**VERSIONS, "PIP_NO_INDEX": "1", **(extra_environ or {})}
        ended = started(cmd, Path(cwd or source), context, folder.with_name("build"), env)
        runs.append(ended.model_copy(update={"argv": ("python", "-m", "build", "--wheel", "--no-isolation")}))
        if ended.exit_code != 0:
            raise OSError(f"{ended.ended}: {_error_in(ended)}")

    try:
        copy_project(context.root, source, copies=1)
        _without_empty_folders(source)
        builder = ProjectBuilder(source, python_executable=context.python, runner=runner)
        with warnings.catch_warnings(action="ignore"):  # the backend's own, which its hook hands on
            wheel = Path(builder.build("wheel", target))
        return Built.model_validate({"backend": backend, "ending": BuildEnding.BUILT, **_wheel(wheel, stems)}), runs
    except BuildBackendException as error:
        unseen = type(error.exception).__name__ == "BackendUnavailable" or (bool(runs) and runs[-1].timed_out)
        if absent := _needed(builder, context, folder):
            return Built(ending=BuildEnding.UNSEEN, problem=f"not installed here: {', '.join(absent)}"), runs
        if apart := _built_by_pip(source, target, context):
            return Built.model_validate({"backend": backend, "ending": BuildEnding.BUILT, **_wheel(apart, stems)}), runs
        ending = BuildEnding.UNSEEN if unseen else BuildEnding.FAILED
        compiled = any(path.suffix in COMPILED for path in source.rglob("*"))
        return Built(ending=ending, backend=backend, problem=_line(error.exception), compiled=compiled), runs
    except (BuildException, OSError, UsageError) as error:
        return Built(ending=BuildEnding.UNSEEN, problem=_line(error)), runs
    finally:
        shutil.rmtree(source, ignore_errors=True)
        shutil.rmtree(target, ignore_errors=True)


def _needed(builder: Any, context: Context, folder: Path) -> list[str]:  # noqa: ANN401  # a ProjectBuilder
    """Return what a build that failed needs and the project's interpreter does not have."""
    with suppress(Exception):  # where its hook fails, too, that is why the build did
        asked = builder.build_system_requires
        return _absent(asked, context, folder) or _absent(builder.get_requires_for_build("wheel"), context, folder)
    return []


def _absent(requirements: Collection[str], context: Context, folder: Path) -> list[str]:
    """Return the requirements that nothing in the project's interpreter meets."""
    asked = [context.python, "-c", INSTALLED, *sorted(requirements)]
    return started(asked, context.root, context, folder.with_name("needed")).stdout.tail.splitlines()


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


def _wheel(path: Path, stems: Sequence[str]) -> dict[str, object]:
    """Return what is to be said of a wheel: its size, and the modules of the implementation that it lacks."""
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
    absent = [stem for stem in stems if not {f"{stem}.py", f"{stem}/__init__.py"} & names]
    editable = not any(name.endswith(".py") for name in names)
    return {"wheel": path.name, "bytes": path.stat().st_size, "files": len(names),
            "absent": () if editable else tuple(absent)}  # fmt: skip


def table(said: dict[str, Any] | None, name: str) -> dict[str, Any]:
    """Return a table of a TOML file, empty where there is none of that name."""
    found = (said or {}).get(name)
    return found if isinstance(found, dict) else {}


def texts(value: object) -> list[str]:
    """Return the texts of a list in a TOML file."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
