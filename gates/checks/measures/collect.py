"""The base as an arm: timed on its revision and here in turn, each side in the files of its own folder."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self

from gates.check import Evidence
from gates.child import process
from gates.child.guardian import remove
from gates.config import Context
from gates.errors import Absent, EvidenceUnavailable
from gates.evidence.bundles import named_files
from gates.evidence.measurements import attempt, attempts_key, counts_cpu, kept, timed
from gates.measuring.bench import ArmFailed, Bench, Launch, launch
from gates.measuring.session import Plan
from gates.measuring.taken import MeasurementRun, digest_of
from gates.project.copies import lay_out, placed
from gates.project.files import files_of, import_roots, is_among
from gates.project.history import History, base_of
from gates.task.measurement import Arm, Measurement
from gates.task.task import Measure, Task
from gates.words import grouped

METHOD = "gates.regression/2"
FOLDER = "regressions"
PROSE = (".md", ".rst")
BASE, NOW = "base", "now"


def comparisons_of(task: Task) -> tuple[Measure, ...]:
    """Return the measures that compare an arm here with the same arm at the base revision."""
    return tuple(m for criterion in task.criteria for m in criterion.measures if m.against_base)


def arm_of(task: Task, measure: Measure) -> tuple[Measurement, str, str]:
    """Return the arm that is compared, the one named or the only one, and the device that it is told, if any."""
    measurement = next(one for one in task.measurements if one.id == measure.from_)
    device = measure.on if measure.on != "any" else "cpu"
    return measurement, measure.arm or next(iter(measurement.arms), ""), device if measurement.by_device else "any"


class Sides(NamedTuple):
    """The two folders of a comparison."""

    task: Task
    context: Context
    tree: Path

    @property
    def folders(self) -> dict[str, Path]:
        """Return the project's folder on either side, the baseline first."""
        return {BASE: self.tree, NOW: self.context.root}

    def launch(self, side: str, arm: Arm, measurement: Measurement, device: str, seed: int) -> Launch:
        """Return how an arm is started on a side: its code is found first."""
        paths = import_roots(self.task, replace(self.context, root=self.folders[side]))
        made = launch(arm, seed, python=self.context.python, paths=paths, threads=measurement.threads, device=device)
        return made._replace(env={**made.env, "PYTHONPATH": process.joined_paths(os.pathsep.join(map(str, paths)))})


def _refuse_other_code(sides: Sides, arm: Arm, plan: Plan, folder: Path) -> None:
    """Raise `ArmFailed` where an arm of the baseline runs although its code only raises: it uses other code."""
    words = [word for word in arm.run or arm.time or () if not word.startswith("/")]
    if any((sides.tree / word).is_file() and not word.endswith(".py") for word in words):
        return
    launched = plan.arms[BASE](1)
    unstored = launched._replace(env={**launched.env, "PYTHONDONTWRITEBYTECODE": "1"})
    try:
        with _raising(sides), Bench(folder) as bench:
            if plan.talks:
                worker = bench.start(BASE, unstored)
                worker.hello(timeout_s=plan.start_s)
                worker.run(1, discard=0, timeout_s=plan.start_s)
            else:
                bench.time(BASE, unstored, timeout_s=plan.start_s)
    except EvidenceUnavailable:
        return
    raise ArmFailed("the baseline runs without the implementation of its folder: it uses other code, or none")


@contextmanager
def _raising(sides: Sides) -> Iterator[None]:
    """Let the implementation in the baseline's folder raise, whoever imports or runs it, while this is open."""
    paths = [path for path in files_of(sides.task.implementation, sides.tree) if path.suffix == ".py"]
    sources = {path: path.read_bytes() for path in paths}
    for path in sources:
        placed(sides.tree, path).write_text("raise RuntimeError('this code is not there')\n", encoding="utf-8")
    try:
        yield
    finally:
        for path, source in sources.items():
            path.write_bytes(source)


class Regressions(Evidence):
    """Every comparison with the baseline: its revision, what differs, what the benchmark `lent` it, and the runs."""

    base: str
    commit: str
    changed: tuple[str, ...]
    code: str = ""  # the digest of its implementation, by which attempts are known
    is_new: bool = False  # it has none
    lent: tuple[str, ...] = ()
    problem: str = ""
    runs: tuple[MeasurementRun, ...] = ()

    @property
    def shown(self) -> str:
        """Return the baseline as reports name it."""
        return f"{self.base} ({self.commit[:12]})"

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Lay the baseline out where something has changed since, and measure both sides in turn."""
        if not comparisons_of(task):
            raise Absent(f"{task.path} compares no arm with the base")
        history = History(context.root)
        name, commit = base_of(history, context.base)
        seen = cls._since(task, history, context.root, name, commit)
        before = history.commit("HEAD^1") if commit == history.commit("HEAD") else None
        if not seen.changed and before and not context.base:  # on that branch itself: the commit before
            seen = cls._since(task, history, context.root, f"{name}~1", before)
        if not seen.changed or seen.is_new:
            return seen
        tree = context.folder(FOLDER).evidence / "tree"
        try:
            return seen.model_copy(update=_measured(seen, task, history, context, tree))
        finally:
            remove(tree)

    @classmethod
    def _since(cls, task: Task, history: History, root: Path, name: str, commit: str) -> Self:
        """Return a revision with what may make a difference: all but tests, prose and the task's own file."""
        tree = history.tree(commit)
        code = sorted((path, blob.oid) for path, blob in tree.items() if is_among(path, task.implementation))
        here = [path.relative_to(root).as_posix() for path in files_of(task.implementation, root)]
        differing = {*history.differing(commit), *(path for path in here if path not in tree)}
        idle = {p for p in differing if p.endswith(PROSE) or p == task.path or is_among(p, task.tests)}
        changed = tuple(sorted(p for p in differing if p not in idle or is_among(p, task.implementation)))
        how = f"git, and workers in the files of {commit[:12]} and in the work tree, in turn"
        return cls(how=how, base=name, commit=commit, changed=changed, code=digest_of(code), is_new=not code)

    def of(self, task: Task, measure: Measure) -> MeasurementRun | None:
        """Return the run that answers a measure."""
        measurement, arm, device = arm_of(task, measure)
        return next((run for run in self.runs if (run.id, run.device) == (f"{measurement.id}/{arm}", device)), None)


def _measured(seen: Regressions, task: Task, history: History, context: Context, tree: Path) -> dict[str, object]:
    own = context.folder(FOLDER)
    sides = Sides(task, own, tree / history.prefix)
    groups = grouped(comparisons_of(task), lambda measure: (measure.from_, *arm_of(task, measure)[1:]))
    ways = [arm_of(task, measures[0]) for measures in groups.values()]
    try:
        lay_out(history.top, seen.commit, tree)
        for number, words in enumerate(dict.fromkeys(filter(None, (one.build for one, *_ in ways)))):
            _build(words, sides, own.evidence / f"build-{number}")
    except EvidenceUnavailable as error:
        return {"problem": str(error)}
    lent = tuple(dict.fromkeys(path for one, arm, _ in ways for path in _lend(_alone(one, arm), sides)))
    runs = tuple(_run(sides, measures, seen.code) for measures in groups.values())
    where = ("on", seen.commit[:12], "and", "here")
    commands = tuple(run.recorded(f"{run.id} against the base", (run.id, *where)) for run in runs)
    return {"runs": runs, "lent": lent, "commands": commands}


def _alone(measurement: Measurement, arm: str) -> Measurement:
    return measurement.model_copy(update={"arms": {arm: measurement.arms[arm]}})


def _build(words: Sequence[str], sides: Sides, log: Path) -> None:
    context = sides.context
    argv = context.argv(words, root=str(context.root))
    try:
        ended = process.run(argv, cwd=sides.tree, timeout_s=context.timeout_s, log=log)
    except EvidenceUnavailable as error:
        raise EvidenceUnavailable(f"the baseline cannot be built: {error}") from error
    if ended.exit_code != 0:
        raise EvidenceUnavailable(f"the baseline does not build: {ended.ended}: {ended.last_words}")


def _lend(measurement: Measurement, sides: Sides) -> Iterator[str]:
    """Put the benchmark's own files of here, and none of the implementation, into the baseline; yield their paths."""
    for path in named_files(sides.task, measurement, sides.context):
        if not is_among(path, sides.task.implementation):
            shutil.copy(sides.context.root / path, placed(sides.tree, path))
            yield path


def _run(sides: Sides, measures: Sequence[Measure], code: str) -> MeasurementRun:
    """Time an arm on both sides until its measures are decided; its samples are written beside the raw files."""
    measurement, arm, device = arm_of(sides.task, measures[0])
    one = _alone(measurement, arm)
    logs = sides.context.evidence / f"{one.id}-{arm}-{device}"
    logs.mkdir(parents=True, exist_ok=True)
    run = MeasurementRun(id=f"{one.id}/{arm}", device=device)
    launches = {side: partial(sides.launch, side, one.arms[arm], one, device) for side in sides.folders}
    key = digest_of((attempts_key(sides.task, one, device, sides.context), METHOD, code))
    plan = Plan(one, launches, sides.context.timeout_s, one_processor=counts_cpu(one, measures))

    def way(begun: MeasurementRun) -> MeasurementRun:
        _refuse_other_code(sides, one.arms[arm], plan, logs)
        return timed(plan, measures, logs, begun)

    return kept(attempt(run, measures, key, sides.context.root, way), logs.with_suffix(".json"))
