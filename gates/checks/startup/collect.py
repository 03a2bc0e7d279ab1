"""Whether the package builds, and whether each module of the implementation imports by itself."""

import re
import sys
import tomllib
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from gates.check import Evidence
from gates.checks.startup.wheel import Built, built_wheel, started, table, texts
from gates.child.asking import command
from gates.child.places import HERE
from gates.child.probing import Question
from gates.child.process import ProcessRun
from gates.child.tracebacks import is_ours
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.tests.test_records import Warned
from gates.model import Location, Model
from gates.project.files import files_of, import_roots, module_name, package_root, packages_of
from gates.task.task import Task
from gates.words import printable

# what of the standard library is there on some platforms only
PLATFORM = {"ctypes", "os", "signal", "socket", "select", "asyncio", "multiprocessing", "subprocess", "time", "mmap"}
GONE = {"distutils", "imp", "asyncore", "asynchat", "smtpd", "cgi", "cgitb", "crypt", "pipes", "telnetlib", "lib2to3"}
DEFECTS = {"SyntaxError", "NameError", "ImportError", "AttributeError", "TypeError"}


class Ending(StrEnum):
    """How the import of a module by itself ended."""

    IMPORTED = "imported"
    BROKEN = "broken"
    OPTIONAL = "something optional is missing"
    REFUSED = "refuses to be imported alone"
    UNSEEN = "not seen"


def ended_as(fact: dict[str, Any], *, own: set[str], required: set[str]) -> tuple[Ending, str]:
    """Return how an import ended, and the module that is missing, if one is.

    A defect is a module of the project or of its requirements that is not there, a name that is not defined, a cycle,
    a syntax error. A module that raises an error by its own will, or one that speaks of its surroundings (a variable,
    a file, a setting), refuses.
    """
    if "kinds" not in fact:
        return Ending.UNSEEN, ""
    missing = [str(name) for name in fact.get("missing", ())]
    kinds = {str(kind) for kind in fact.get("kinds", ())}
    for name in missing:
        top = name.split(".")[0]
        if top in own or top in required or top in GONE:
            if not fact.get("refused"):
                return Ending.BROKEN, name
        elif top in sys.stdlib_module_names or "." not in name or not fact.get("refused"):
            return Ending.OPTIONAL, name
    if fact.get("refused") or not kinds & DEFECTS:
        return Ending.REFUSED, ""
    owner = str(fact.get("of") or "").split(".")[0]
    if owner in PLATFORM:
        return Ending.OPTIONAL, str(fact["of"])
    return Ending.BROKEN, ""


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
        told, imports = _imported(plan, context, folder)
        built, builds = built_wheel(plan.project, plan.stems, context, folder / "wheel")
        unseen = [path for path in plan.modules if path not in {fact["path"] for fact in told}]
        runs = [("imports", imports), *(("build", run) for run in builds)]
        return cls(
            how="each module imported in a process of its own, and a wheel built from a copy without network",
            commands=tuple(run.as_command(purpose) for purpose, run in runs),
            build=built,
            modules=tuple(_module(plan, fact, context) for fact in told),
            aside=tuple(plan.aside),
            warnings=tuple(dict.fromkeys(_warnings(told, context))),
            problem=f"{len(unseen)} modules were not reached, first {unseen[0]}: {imports.ended}" if unseen else "",
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
        self.stems = [name.replace(".", "/") for name in self.modules.values()]

    @property
    def required(self) -> set[str]:
        """Return the packages whose absence is a defect: what the project says that it requires."""
        plain = [text for text in texts(table(self.project, "project").get("dependencies", ())) if ";" not in text]
        wanted = {_normalised(re.split(r"[^\w.-]", text)[0]) for text in plain}
        return {name for name in self.preload if any(_normalised(name) in want for want in wanted)}


def _imported(plan: _Plan, context: Context, folder: Path) -> tuple[list[dict[str, Any]], ProcessRun]:
    asked = {
        "modules": list(plan.modules.items()), "preload": plan.preload,
        "paths": [str(root) for root in plan.roots], "limit_s": min(MODULE_LIMIT_S, context.timeout_s),
    }  # fmt: skip
    question = Question(folder / "imports.jsonl", asked)
    with question:
        argv = command(context.python, "importing", str(question.path))
        ended = started(argv, context.root, context, folder / "imports")
    told = [entry for entry in question.answer()[0] if entry["word"] == "module"]
    return told, ended.model_copy(update={"argv": ("python", "-m", "gates_importing")})


def _module(plan: _Plan, fact: dict[str, Any], context: Context) -> Imported:
    path, name = str(fact["path"]), printable(str(fact["name"]))
    if "error" not in fact:
        return Imported(path=path, name=name, ending=Ending.IMPORTED)
    ending, missing = ended_as(fact, own=plan.own, required=plan.required)
    message = ": ".join(part for part in (str(fact["error"]), str(fact.get("message", ""))) if part)
    return Imported(
        path=path, name=name, ending=ending, error=printable(message), missing=printable(missing),
        location=frame_of(fact, context) or Location(path=path),
    )  # fmt: skip


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


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "", name).lower()
