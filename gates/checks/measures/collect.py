"""The base as an arm: timed on its revision and here in turn, each side in the files of its own folder."""

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

from gates.check import Evidence
from gates.child import process
from gates.child.guardian import remove
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.evidence._timed import attempt, attempts_key
from gates.evidence.bundles import named_files
from gates.measuring.bench import ArmFailed, Bench, Launch, launch
from gates.measuring.rounds import Plan
from gates.measuring.samples import Samples
from gates.measuring.taken import MeasurementRun, Recalled, Taken, digest_of
from gates.model import CommandRecord, Model
from gates.project.copies import lay_out
from gates.project.files import files_of, import_roots, is_among
from gates.project.history import Blob, History
from gates.project.two_states import base_of
from gates.task.measurement import Arm, Measurement
from gates.task.selection import cut_short
from gates.task.task import Measure, Task
from gates.words import printable

METHOD = "gates.regression/1"
FOLDER = "regressions"
PROSE = (".md", ".rst")
BASELINE, CANDIDATE = "baseline", "candidate"
SIDES = {"base": BASELINE, "now": CANDIDATE}


def comparisons_of(task: Task) -> tuple[Measure, ...]:
    """Return the measures that compare an arm here with the same arm at the base revision."""
    return tuple(m for criterion in task.criteria for m in criterion.measures if m.against_base)


def by_sides(measure: Measure) -> Measure:
    """Return a measure with its arms named as the samples of a comparison name them."""
    return measure.model_copy(update={measure.kind: tuple(SIDES[arm] for arm in measure.arms)})


def measurement_of(task: Task, measure: Measure) -> Measurement:
    """Return the measurement whose arm is compared."""
    return next(one for one in task.measurements if one.id == measure.from_)


def arm_of(measure: Measure, measurement: Measurement) -> str:
    """Return the arm that is compared: the one named, or the only one."""
    return measure.arm or next(iter(measurement.arms), "")


def device_of(measure: Measure, measurement: Measurement) -> str:
    """Return the device that the arm is told; one that is told none runs on any."""
    if not measurement.by_device:
        return "any"
    return "cpu" if measure.on == "any" else measure.on


@dataclass(frozen=True)
class Baseline:
    """A revision, the files of the project that differ from it here, and whether it has the task's implementation.

    `code` is the digest of that: another commit with the same is no other baseline.
    """

    name: str
    commit: str
    changed: tuple[str, ...]
    implemented: bool
    code: str


def find_baseline(task: Task, history: History, context: Context) -> Baseline:
    """Return the merge base with the base branch; on that branch itself, with nothing changed, the commit before."""
    found = base_of(history, context.base)
    baseline = _compared(task, history, context, found.name, found.commit)
    before = history.commit("HEAD^1") if found.commit == history.commit("HEAD") else None
    if not baseline.changed and before and not context.base:
        return _compared(task, history, context, f"{found.name}~1", before)
    return baseline


def _compared(task: Task, history: History, context: Context, name: str, commit: str) -> Baseline:
    tree = history.tree(commit)
    code = sorted((path, blob.oid) for path, blob in tree.items() if is_among(path, task.implementation))
    changed = tuple(sorted(set(_changed(task, history, commit, tree, context.root))))
    return Baseline(name, commit, changed, implemented=bool(code), code=digest_of(code))


def _changed(task: Task, history: History, commit: str, tree: dict[str, Blob], root: Path) -> Iterator[str]:
    """Yield what may make a difference: all but tests, prose and the task's own file."""
    new = [path.relative_to(root).as_posix() for path in files_of(task.implementation, root)]
    for path in (*history.differing(commit), *(path for path in new if path not in tree)):
        if not _is_idle(path, task):
            yield path


def _is_idle(path: str, task: Task) -> bool:
    if is_among(path, task.implementation):
        return False
    return path.endswith(PROSE) or path == task.path or is_among(path, task.tests)


@dataclass(frozen=True)
class Sides:
    """The two folders of a comparison."""

    task: Task
    context: Context
    tree: Path
    baseline: Baseline

    @property
    def folders(self) -> dict[str, Path]:
        """Return the project's folder on either side, the baseline first."""
        return {BASELINE: self.tree, CANDIDATE: self.context.root}

    def launch(self, side: str, arm: Arm, measurement: Measurement, device: str, seed: int) -> Launch:
        """Return how an arm is started on a side: its code is found first, and its bytecode is its own."""
        paths = import_roots(self.task, replace(self.context, root=self.folders[side]))
        threads = measurement.threads
        made = launch(arm, python=self.context.python, paths=paths, threads=threads, device=device, seed=seed)
        found_first = [*map(str, paths), *filter(None, [os.environ.get("PYTHONPATH", "")])]
        env = {**made.env, "PYTHONPATH": os.pathsep.join(found_first)}
        if arm.time:  # what is timed from its start must not find compiled what the other must compile
            kept = self.context.evidence / f"bytecode-{side}"
            env |= {"PYTHONPYCACHEPREFIX": str(kept), "PYTHONDONTWRITEBYTECODE": ""}
        return replace(made, env=env)


def compare_arms(
    sides: Sides, measurement: Measurement, arm: str, device: str, asked: Sequence[Measure], folder: Path
) -> tuple[Samples, Taken, Recalled]:
    """Time an arm on both sides until the measures are decided; raise `ArmFailed` where a side cannot run."""
    measures = [by_sides(one) for one in asked]
    launches = {side: partial(sides.launch, side, measurement.arms[arm], measurement, device) for side in sides.folders}
    one = measurement.model_copy(update={"arms": {arm: measurement.arms[arm]}})
    plan = Plan.of(one, launches, sides.context.timeout_s)
    _refuse_other_code(sides, measurement.arms[arm], plan, folder)
    key = digest_of((attempts_key(sides.task, one, device, sides.context), METHOD, sides.baseline.code))
    return attempt(plan, measures, key, sides.context.root, folder)


def _refuse_other_code(sides: Sides, arm: Arm, plan: Plan, folder: Path) -> None:
    """Raise `ArmFailed` where an arm of the baseline runs although the implementation in its folder only raises.

    Then it uses other code, such as that of a project which is installed, and two equal numbers would prove nothing.
    The candidate is started in the same way. A command that names a file of the folder which is no Python runs that.
    """
    words = [word for word in arm.run or arm.time or () if not word.startswith("/")]
    if any((sides.tree / word).is_file() and not word.endswith(".py") for word in words):
        return
    launched = plan.arms[BASELINE](1)
    unstored = replace(launched, env={**launched.env, "PYTHONDONTWRITEBYTECODE": "1"})
    with _raising(path for path in files_of(sides.task.implementation, sides.tree) if path.suffix == ".py"):
        if _runs(unstored, plan, folder):
            raise ArmFailed("the baseline runs without the implementation of its folder: it uses other code, or none")


@contextmanager
def _raising(files: Iterable[Path]) -> Iterator[None]:
    """Let files of Python raise, whoever imports or runs them, while this is open."""
    sources = {path: path.read_bytes() for path in files}
    for path in sources:
        path.write_text("raise RuntimeError('this code is not there')\n", encoding="utf-8")
    yield
    for path, source in sources.items():
        path.write_bytes(source)


def _runs(launched: Launch, plan: Plan, folder: Path) -> bool:
    try:
        with Bench(folder) as bench:
            if not plan.talks:
                bench.time(BASELINE, launched, timeout_s=plan.start_s)
                return True
            worker = bench.start(BASELINE, launched)
            worker.hello(timeout_s=plan.start_s)
            worker.run(1, discard=0, timeout_s=plan.start_s)
            worker.stop()
    except ArmFailed:
        return False
    return True


class RegressionRun(Model):
    """One arm on the baseline and here, on one device; `arm` is its name in the measurement."""

    arm: str
    run: MeasurementRun


class Regressions(Evidence):
    """Every comparison with the baseline: which revision that is, what differs from it, and what was measured.

    `problem` is why nothing could be measured; `lent` are the benchmark's own files, which both sides ran.
    """

    base: str
    commit: str
    changed: tuple[str, ...]
    is_new: bool = False
    lent: tuple[str, ...] = ()
    problem: str = ""
    runs: tuple[RegressionRun, ...] = ()

    @property
    def shown(self) -> str:
        """Return the baseline as reports name it."""
        return f"{self.base} ({self.commit[:12]})"

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Lay the baseline out where something has changed since, and measure both sides in turn."""
        if not comparisons_of(task):
            raise EvidenceUnavailable(f"{task.path} compares no arm with the base")
        history = History(context.root)
        baseline = find_baseline(task, history, context)
        seen = cls(
            how=f"git, and workers in the files of {baseline.commit[:12]} and in the work tree, in turn",
            base=printable(baseline.name),
            commit=baseline.commit,
            changed=tuple(map(printable, baseline.changed)),
            is_new=not baseline.implemented,
        )
        if not baseline.changed or not baseline.implemented:
            return seen
        tree = context.folder(FOLDER).evidence / "tree"
        try:
            return seen.model_copy(update=_measured(task, history, baseline, context, tree))
        finally:
            remove(tree)

    def of(self, task: Task, measure: Measure) -> MeasurementRun | None:
        """Return the run that answers a measure."""
        measurement = measurement_of(task, measure)
        wanted = (measure.from_, arm_of(measure, measurement), device_of(measure, measurement))
        return next((one.run for one in self.runs if (one.run.id, one.arm, one.run.device) == wanted), None)


def _measured(task: Task, history: History, baseline: Baseline, context: Context, tree: Path) -> dict[str, object]:
    """Return what measuring gives: the runs, or why there are none."""
    root = tree / history.prefix
    own = context.folder(FOLDER)
    try:
        lay_out(history.top, baseline.commit, tree)
        _build(task, root, own)
    except EvidenceUnavailable as error:
        return {"problem": str(error)}
    shared = tuple(dict.fromkeys(_lend(task, context, root)))
    sides = Sides(task, replace(own, root=context.root), root, baseline)
    runs = tuple(_run(sides, arm, device, measures) for (_, arm, device), measures in _groups(task).items())
    commands = tuple(_recorded(one, baseline.commit[:12]) for one in runs)
    return {"runs": runs, "lent": tuple(map(printable, shared)), "commands": commands}


def _recorded(one: RegressionRun, commit: str) -> CommandRecord:
    purpose, argv = f"{one.run.id} against the base", (f"{one.arm} of {one.run.id}", "on", commit, "and", "here")
    return CommandRecord(purpose=purpose, argv=argv, ended=one.run.ended, duration_s=one.run.duration_s)


def _build(task: Task, root: Path, context: Context) -> None:
    """Run what makes the baseline ready; raise `EvidenceUnavailable` where that fails."""
    builds = dict.fromkeys(build for one in comparisons_of(task) if (build := measurement_of(task, one).build))
    for number, words in enumerate(builds):
        argv = context.argv(words, root=str(context.root))
        try:
            ended = process.run(argv, cwd=root, timeout_s=context.timeout_s, log=context.evidence / f"build-{number}")
        except OSError as error:
            reason = error.strerror or error
            raise EvidenceUnavailable(f"the baseline cannot be built: {words[0]}: {reason}") from error
        if ended.exit_code != 0:
            raise EvidenceUnavailable(f"the baseline does not build: {ended.ended}: {ended.last_words}")


def _lend(task: Task, context: Context, root: Path) -> Iterator[str]:
    """Put the benchmark's own files of here into the baseline, so that both sides run the same; yield their paths.

    What belongs to the implementation stays as it was: that is what is compared.
    """
    for asked in comparisons_of(task):
        measurement = measurement_of(task, asked)
        arm = arm_of(asked, measurement)
        one = measurement.model_copy(update={"arms": {arm: measurement.arms[arm]}})
        for path in named_files(task, one, context):
            if not is_among(path, task.implementation):
                target = root / path
                target.unlink(missing_ok=True)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(context.root / path, target)
                yield path


def _groups(task: Task) -> dict[tuple[str, str, str], list[Measure]]:
    """Return the measures that one comparison answers, by measurement, arm and device."""
    found: dict[tuple[str, str, str], list[Measure]] = {}
    for asked in comparisons_of(task):
        one = measurement_of(task, asked)
        found.setdefault((one.id, arm_of(asked, one), device_of(asked, one)), []).append(asked)
    return found


def _run(sides: Sides, arm: str, device: str, measures: Sequence[Measure]) -> RegressionRun:
    """Return what one comparison gives; its samples are written beside the raw files."""
    one = cut_short(measurement_of(sides.task, measures[0]), sides.task)
    logs = sides.context.evidence / f"{one.id}-{arm}-{device}"
    logs.mkdir(parents=True, exist_ok=True)
    run = MeasurementRun(id=one.id, device=device, process=None, samples=None)
    try:
        samples, taken, earlier = compare_arms(sides, one, arm, device, measures, logs)
    except ArmFailed as error:
        return RegressionRun(arm=arm, run=run.model_copy(update={"problem": printable(str(error))}))
    path = logs.with_suffix(".json")
    path.write_text(samples.model_dump_json(indent=1, by_alias=True) + "\n", encoding="utf-8")
    told = {"samples": samples, "taken": taken, "earlier": earlier, "raw": f"{FOLDER}/{path.name}"}
    return RegressionRun(arm=arm, run=run.model_copy(update=told))
