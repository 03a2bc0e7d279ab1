"""What `gates run` does: load, check what can be checked before anything runs, run, publish."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gates import pipeline, registry, render, spec, store
from gates.config import Settings
from gates.context import Context
from gates.errors import UsageError
from gates.guardian import guarded_folder
from gates.progress import shown
from gates.render import json, markdown, text
from gates.render.format import Format
from gates.stages.gate import Gate
from gates.yaml_source import did_you_mean

N = TypeVar("N", Format, Gate)
TEMPLATES = Path("reports", "templates")


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line, defaults filled in."""

    task: str
    root: Path
    settings: Settings
    gates: tuple[str, ...]
    only: str | None
    out: Path | None
    formats: tuple[str, ...]
    keep_going: bool
    timeout_s: float
    python: str
    repeat: int = 1
    claims: tuple[Path, ...] = ()


def perform(request: Request, *, say: Callable[[str], None]) -> tuple[str, int]:
    """Run a task and publish its reports; return the summary and the exit code of the verdict."""
    formats = [_named(name, registry.values(render, Format), "format") for name in request.formats]
    for name in request.gates:
        _named(name, pipeline.discover(), "gate")
    path = spec.find(request.task, request.root / request.settings.tasks, request.root)
    task = spec.load(path, request.root)
    if path.stem != task.id and request.task not in {task.id, path.name} and "/" not in request.task:
        raise UsageError(f"{task.path}: holds the task {task.id!r}, asked for {request.task!r}; mend its 'id'")
    if not path.resolve().is_relative_to(request.root):
        raise UsageError(f"{path}: the task file lies outside of the project {str(request.root)!r}; put it inside")
    pipeline.narrowed(task, request.only)
    task = task.model_copy(update={"claims": (*task.claims, *_claims(request))})
    out = request.out or request.root / request.settings.reports / task.id
    store.prepare(out)
    templates = request.root / TEMPLATES
    markdown.check(templates)
    with guarded_folder() as folder:
        context = Context(
            root=request.root,
            evidence=folder,
            python=request.python,
            timeout_s=request.timeout_s,
            repeat=request.repeat,
        )
        selection = pipeline.Selection(gates=request.gates, only=request.only, keep_going=request.keep_going)
        with shown(say) as progress:
            report = pipeline.run(task, context, selection, progress)
        files = json.render(report, None)
        for chosen in formats:
            files |= chosen.render(report, templates)
        pages = {"summary.md", "summary.txt", *(f"{gate.name}.md" for gate in report.gates)}
        store.publish(out, files, context.evidence, obsolete=pages)
    summary = text.render(report, None)["summary.txt"]
    first = "summary.md" if "summary.md" in files else "result.json"
    return f"{summary}\nreport: {_near(out / first)}\n", report.verdict.exit_code


def _claims(request: Request) -> tuple[str, ...]:
    """Return the files of claims as paths in the project; raise `UsageError` for one that is not there."""
    paths = [Path(path).resolve() for path in request.claims]
    for path in paths:
        if not path.is_file():
            raise UsageError(f"there is no file of claims {str(path)!r}")
        if not path.is_relative_to(request.root):
            raise UsageError(f"{path}: the file of claims lies outside of the project {str(request.root)!r}")
    return tuple(path.relative_to(request.root).as_posix() for path in paths)


def _named(name: str, known: Sequence[N], what: str) -> N:
    """Return the one of a name; raise `UsageError` with a suggestion where there is none."""
    for one in known:
        if one.name == name:
            return one
    raise UsageError(f"there is no {what} {name!r}{did_you_mean(name, [one.name for one in known])}")


def _near(path: Path) -> Path:
    """Return a path relative to the current folder, where it lies inside."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
