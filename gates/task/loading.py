"""The loader of task files: all that is wrong with the form of one is said at once, then what leads nowhere."""

import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from gates.config import Project
from gates.errors import UsageError
from gates.task import yaml_source
from gates.task.task import TASK_ID, Measure, Task, task_model
from gates.task.yaml_source import Document, Key, Problem, SourceError, problem_of
from gates.words import did_you_mean, printable

SUFFIXES = (".yaml", ".yml")
SPOTTED = ("implementation", "tests", "rules")
GONE = {  # keys that a task had once, and what answers in their place
    "claims": "run `gates audit REPORT --task TASK`, which ends with 1 where a claim is contradicted",
    "concurrency.in": "threads alone are started; what processes share is shown by a test that starts them",
    "criteria.measures.slope": "name what must not go on growing under 'leaks', or how it scales under 'scaling'",
    "empty_cache": "it counts among the 'synchronisations' of a step",
    "proof": "run `gates prove TASK --at-least 0.8` as a required check of its own",
    "criteria.code.reached_from": "run that code under 'entry_points', or bind a test that goes this way",
    "criteria.faults": "BL016 stubs the code out, and `gates prove` makes mutants of all that the tests run",
    "recorded_tests": "name what trains under 'training_steps': {call: ..., needs: [overflow], criteria: [...]}",
    "scaling.exponent.at_least": "say how fast a step may grow, with 'at_most'",
    "regressions": "write a criterion with measures: {from: ..., ratio: [now, base], of: ..., at_most: 2}",
}


def load(path: Path, root: Path) -> Task:
    """Load a task file; raise `UsageError` that names everything wrong in it, each with `file:line:col`."""
    shown_as = yaml_source.shown(path, root)
    if printable(shown_as) != shown_as:
        raise UsageError(f"{printable(shown_as)}: its name is not UTF-8, so no report can name it; rename the file")
    document = yaml_source.read(path, shown_as, "a task")
    own = {"path": shown_as, "digest": hashlib.sha256(document.text.encode()).hexdigest(), "line": document.value.line}
    reserved = {*own, "spots", "bundles", "only"} & document.value.keys()
    problems = [Problem(*document.keys[(name,)], f"unknown key {name!r}") for name in reserved]
    try:
        task = task_model().model_validate({**document.value, **own})
    except ValidationError as error:
        # a list is not empty because its entries are wrong
        wrong = [item for item in error.errors() if item["type"] != "too_short" or not item["input"]]
        problems += [problem_of(item, document, task_model(), GONE) for item in wrong]
        raise SourceError(shown_as, document.text, problems) from error
    problems += _loose(task, document)
    if problems:
        raise SourceError(shown_as, document.text, problems)
    words = [(key, i, word) for key in SPOTTED for i, word in enumerate(getattr(task, key))]
    return task.model_copy(update={"spots": tuple((key, word, *document.place((key, i))) for key, i, word in words)})


def of_project(name: str, project: Project) -> Task:
    """Load the task of an id, or of a file; raise `UsageError` where there is none, or it is wrong."""
    return load(find(name, project.tasks, project.root), project.root)


def load_all(project: Project) -> tuple[list[Task], list[str]]:
    """Load the tasks of a project; return what is wrong with files, too, such as several that have one id."""
    tasks, broken = list[Task](), list[str]()
    for path in task_files(project.tasks):
        try:
            tasks.append(load(path, project.root))
        except UsageError as error:
            broken.append(str(error))
    files = {task.id: [each.path for each in tasks if each.id == task.id] for task in tasks}
    return tasks, broken + [_twins(name, paths) for name, paths in files.items() if len(paths) > 1]


def find(task_id: str, tasks_dir: Path, root: Path) -> Path:
    """Return the task file of an id, or of a path; raise `UsageError` where there is none, or two have the id."""
    ids = {path: _id_of(path) for path in task_files(tasks_dir)}
    if task_id.endswith(SUFFIXES) or "/" in task_id:
        if not (path := Path.cwd() / task_id).exists():
            raise UsageError(f"no task file {task_id!r} (expected a YAML file; `gates list` shows the tasks)")
        task_id = next((ids[each] for each in ids if each.resolve() == path.resolve()), "")
    else:
        path = next((each for each in ids if ids[each] == task_id), Path())
    if len(matches := [each for each in ids if ids[each] == task_id]) > 1:
        raise UsageError(_twins(task_id, [yaml_source.shown(each, root) for each in matches]))
    if path != Path():
        return path
    where = yaml_source.shown(tasks_dir, root)
    if not ids:
        raise UsageError(f"no task {task_id!r}: no task file (*.yaml) in '{tasks_dir}'; write {task_id}.yaml there")
    raise UsageError(f"no task {task_id!r} in {where!r}{did_you_mean(task_id, ids.values())}")


def _twins(task_id: str, files: list[str]) -> str:
    return f"{', '.join(files)}: each has the id {task_id!r}; give each task an id of its own"


def task_files(tasks_dir: Path) -> list[Path]:
    """Return the task files of a folder in the order of their names."""
    if not tasks_dir.is_dir():
        return []
    return sorted(path for path in tasks_dir.iterdir() if path.suffix in SUFFIXES and not path.name.startswith("."))


def _id_of(path: Path) -> str:
    """Return the id that a task file gives itself, read without parsing the file, or else its name."""
    with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
        if found := re.search(rf"^id:\s*[\"']?({TASK_ID.pattern})", file.read(yaml_source.MAX_BYTES), re.MULTILINE):
            return found[1]
    return path.stem


def _loose(task: Task, document: Document) -> Iterator[Problem]:
    """Refuse two of one id, and references to criteria, measurements and arms that the file does not have."""
    criteria, arms = [one.id for one in task.criteria], {one.id: list(one.arms) for one in task.measurements}
    yield from _twice("criteria", criteria, document)
    yield from _twice("measurements", [one.id for one in task.measurements], document)
    named: list[tuple[Key, str]] = [(("waivers", i, "criterion"), one.criterion) for i, one in enumerate(task.waivers)]
    for kind in task.part_keys():
        for i, part in enumerate(task.parts(kind)):
            named += [((kind, i, "criteria", j), name) for j, name in enumerate(part.criteria)]
    for key, name in named:
        if name not in criteria:
            yield Problem(*document.place(key), f"unknown criterion {name!r}{did_you_mean(name, criteria)}")
    for i, criterion in enumerate(task.criteria):
        for j, measure in enumerate(criterion.measures):
            where, wrong = _loose_measure(measure, arms)
            if wrong:
                yield Problem(*document.place(("criteria", i, "measures", j, where)), wrong)


def _twice(kind: str, ids: list[str], document: Document) -> Iterator[Problem]:
    for i, name in enumerate(ids):
        if (first := ids.index(name)) != i:
            line = document.place((kind, first, "id"))[0]
            yield Problem(*document.place((kind, i, "id")), f"duplicate id {name!r}, first in line {line}")


def _loose_measure(measure: Measure, known: dict[str, list[str]]) -> tuple[str, str]:
    """Return the key of a measure that leads nowhere and what is wrong with it, or nothing."""
    name, arms = measure.from_, known.get(measure.from_, [])
    if name not in known:
        return "from", f"unknown measurement {name!r}{did_you_mean(name, known)}"
    if measure.against_base and not arms:
        return "from", f"measurement {name!r} has no 'arms' that the gate times; name some there"
    if measure.against_base and not measure.arm and len(arms) > 1:
        return "from", f"expected 'arm': measurement {name!r} has {', '.join(arms)}"
    named = [measure.arm or arms[0]] if measure.against_base else measure.arms
    loose = next((arm for arm in named if arms and arm not in arms), "")
    told = f"measurement {name!r} has no arm {loose!r}{did_you_mean(loose, arms)}" if loose else ""
    return "arm" if measure.against_base else measure.kind, told
