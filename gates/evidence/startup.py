"""Whether the package builds, and whether each module of the implementation imports by itself."""

import json
import re
import shutil
import zipfile
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from gates.check import Evidence
from gates.child import process
from gates.child.process import ProcessRun
from gates.context import Context
from gates.errors import EvidenceUnavailable
from gates.evidence._build_plan import NotBuildable, build_plan, copy_tree, normalised, required_names
from gates.evidence._import_plan import ImportPlan
from gates.evidence._import_verdicts import Ending, ended_as, frame_of
from gates.evidence.test_records import Warned
from gates.model import CommandRecord, Location, Model
from gates.task.task import Task
from gates.terminal import printable

__all__ = ["BuildEnding", "Built", "Ending", "Imported", "Startup"]
RUNNER = Path(__file__).with_name("_startup_runner.py")
MODULE_LIMIT_S = 60.0
# a copy without .git has no version to be asked for
VERSIONS = {
    "SETUPTOOLS_SCM_PRETEND_VERSION": "0.0.0",
    "PDM_BUILD_SCM_VERSION": "0.0.0",
    "PBR_VERSION": "0.0.0",
    "POETRY_DYNAMIC_VERSIONING_BYPASS": "0.0.0",
}


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
    process: ProcessRun | None = None


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
    announced: tuple[Warned, ...]
    problem: str = ""

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Build a copy of the project, and import its modules one by one."""
        plan = ImportPlan(task, context)
        if not plan.modules and not plan.aside:
            raise EvidenceUnavailable(f"no Python file in {', '.join(task.implementation)} ({task.path})")
        inside = context.folder("startup")
        built = _build(plan, context, inside.evidence)
        facts, ended = _imports(plan, context, inside.evidence)
        modules = tuple(_imported(plan, fact, context) for fact in facts if "path" in fact and "preloaded" not in fact)
        warned, announced = _warnings(plan, facts, context)
        seen = {module.path for module in modules}
        unseen = [str(module["path"]) for module in plan.modules if module["path"] not in seen]
        problem = f"{len(unseen)} modules were not reached, first {unseen[0]}: {ended.ended}" if unseen else ""
        runs = [("build", built.process), ("imports", ended)]
        return cls(
            how="a wheel built from a copy without network, and each module imported in a process of its own",
            commands=tuple(
                CommandRecord(purpose=purpose, argv=("python", RUNNER.name, purpose), ended=run.ended,
                              duration_s=run.duration_s)
                for purpose, run in runs if run
            ),
            build=built,
            modules=modules,
            aside=tuple(plan.aside),
            warnings=tuple(dict.fromkeys(warned)),
            announced=tuple(dict.fromkeys(announced)),
            problem=problem,
        )  # fmt: skip


def _run(what: str, asked: dict[str, Any], context: Context, folder: Path) -> tuple[list[dict[str, Any]], ProcessRun]:
    """Run a part of the runner and return what it wrote, and how it ended."""
    path, result = folder / f"{what}.asked.json", folder / f"{what}.jsonl"
    path.write_text(json.dumps(asked), encoding="utf-8")
    argv = [context.python, str(RUNNER), what, str(path), str(result)]
    env = {**VERSIONS, "PIP_NO_INDEX": "1"} if what == "build" else {}
    try:
        ended = process.run(argv, cwd=context.root, timeout_s=context.timeout_s, log=folder / what, env=env)
    except OSError as error:
        raise EvidenceUnavailable(f"{context.python!r} cannot be started: {error}") from error
    facts = []
    for line in result.read_text(encoding="utf-8", errors="replace").splitlines() if result.is_file() else []:
        try:
            told = json.loads(line)
        except ValueError:
            continue
        facts += [told] if isinstance(told, dict) else []
    return facts, ended


def _build(plan: ImportPlan, context: Context, folder: Path) -> Built:
    source, target = folder / "source", folder / "wheel"
    try:
        how = build_plan(context.root)
        if how is None:
            return Built(ending=BuildEnding.NONE, problem="neither pyproject.toml nor setup.py says how it is built")
        compiled = copy_tree(context.root, source)
        target.mkdir()
        asked = {"source": str(source), "target": str(target), "backend": how.backend,
                 "requires": how.requires, "paths": how.paths}  # fmt: skip
        facts, ended = _run("build", asked, context, folder)
        told = facts[0] if facts else {}
        wheels = sorted(target.glob("*.whl"))
        common = {"backend": how.backend.partition(":")[0], "compiled": compiled, "process": ended}
        if told.get("absent"):
            problem = f"not installed here: {', '.join(map(str, told['absent']))}"
            return Built.model_validate({**common, "ending": BuildEnding.UNSEEN, "problem": printable(problem)})
        if ended.exit_code == 0 and wheels:
            return Built.model_validate({**common, "ending": BuildEnding.BUILT, **_wheel(wheels[0], plan)})
        ending = BuildEnding.UNSEEN if ended.timed_out else BuildEnding.FAILED
        return Built.model_validate({**common, "ending": ending, "problem": f"{ended.ended}: {_error_in(ended)}"})
    except (NotBuildable, OSError) as error:
        return Built(ending=BuildEnding.UNSEEN, problem=f"{error}"[:300])
    finally:
        shutil.rmtree(source, ignore_errors=True)
        shutil.rmtree(target, ignore_errors=True)


def _error_in(ended: ProcessRun) -> str:
    """Return the line of a backend's output that names the error: advice often comes after it."""
    lines = [line.strip() for line in ended.stderr.tail.splitlines()]
    named = [line for line in lines if re.match(r"(error|[\w.]*(Error|Exception)): ", line)]
    return named[-1][:300] if named else ended.last_words


def _wheel(path: Path, plan: ImportPlan) -> dict[str, object]:
    """Return what is to be said of a wheel: its size, and the modules of the implementation that it lacks."""
    try:
        with zipfile.ZipFile(path) as wheel:
            names = set(wheel.namelist())
    except (OSError, zipfile.BadZipFile) as error:
        return {"ending": BuildEnding.FAILED, "problem": f"the wheel cannot be read: {error}"}
    stems = [name.replace(".", "/") for module in plan.modules for name in _texts(module["names"])[:1]]
    absent = [stem for stem in stems if not {f"{stem}.py", f"{stem}/__init__.py"} & names]
    editable = not any(name.endswith(".py") for name in names)
    return {"wheel": path.name, "bytes": path.stat().st_size, "files": len(names),
            "absent": () if editable else tuple(absent)}  # fmt: skip


def _imports(plan: ImportPlan, context: Context, folder: Path) -> tuple[list[dict[str, Any]], ProcessRun]:
    asked = {"modules": plan.modules, "preload": plan.preload, "paths": [str(root) for root in plan.roots],
             "limit_s": min(MODULE_LIMIT_S, context.timeout_s)}  # fmt: skip
    return _run("imports", asked, context, folder)


def _imported(plan: ImportPlan, fact: dict[str, Any], context: Context) -> Imported:
    path, name = str(fact["path"]), printable(str(fact.get("name", fact["path"])))
    if "error" not in fact:
        return Imported(path=path, name=name, ending=Ending.IMPORTED)
    required = required_names(context.root) or set()
    needed = {n for n in (*plan.uses,) if any(normalised(n) in want or want in normalised(n) for want in required)}
    ending, missing = ended_as(fact, own=plan.own, required=needed)
    message = ": ".join(part for part in (str(fact["error"]), str(fact.get("message", ""))) if part)
    return Imported(
        path=path,
        name=name,
        ending=ending,
        error=printable(message),
        location=frame_of(fact, context) or Location(path=path),
        missing=printable(missing),
    )


def _warnings(
    plan: ImportPlan, facts: list[dict[str, Any]], context: Context
) -> tuple[list[Warned], list[Warned]]:  # fmt: skip
    """Return the warnings of all imports, and apart from them those in which a module speaks of itself."""
    warned, announced = [], []
    for fact in facts:
        if "preloaded" in fact:  # it was given to whoever imports the package: that is us, on behalf of these lines
            warned += [_warned(fact, place) for place in plan.uses.get(str(fact["preloaded"]), [])]
            continue
        for one in fact.get("warnings", ()):
            if str(one.get("path")) == str(RUNNER):
                announced.append(_warned(one, Location(path=str(fact["path"]))))
            else:
                warned.append(_warned(one, _place(one, context)))
    return warned, announced


def _warned(one: dict[str, Any], place: Location) -> Warned:
    return Warned(category=printable(str(one["category"])), message=printable(str(one["message"])), location=place)


def _place(one: dict[str, Any], context: Context) -> Location:
    path = Path(str(one["path"]))
    shown = context.shown(path if path.is_absolute() else context.root / path)
    return Location(path=printable(shown), line=max(int(one["line"] or 1), 1))


def _texts(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []
