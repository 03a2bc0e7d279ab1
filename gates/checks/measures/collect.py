"""Regressions: arms timed on the baseline revision and here in turn, the baseline laid out in a folder of its own."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from gates.check import Evidence
from gates.checks.measures.sides import (
    Baseline,
    Sides,
    arm_of,
    compare_arms,
    comparisons_of,
    device_of,
    find_baseline,
    measurement_of,
)
from gates.child import process
from gates.child.guardian import remove
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.bundles import named_files
from gates.measuring.taken import MeasurementRun
from gates.measuring.wire import ArmFailed
from gates.model import CommandRecord, Model
from gates.project.copies import lay_out
from gates.project.files import is_among
from gates.project.history import History
from gates.task.measurement import Measurement
from gates.task.selection import cut_short
from gates.task.task import Measure, Task
from gates.words import printable

FOLDER = "regressions"


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
            base=printable(baseline.name), commit=baseline.commit, changed=tuple(map(printable, baseline.changed)),
            is_new=not baseline.implemented,
        )  # fmt: skip
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
        empty = lay_out(history.top, baseline.commit, tree)
        _build(task, root, own)
    except EvidenceUnavailable as error:
        return {"problem": str(error)}
    shared = tuple(dict.fromkeys(_lend(task, context, root)))
    ours = frozenset(history.tree(baseline.commit)) - set(shared)
    sides = Sides(
        task=task, context=replace(own, root=context.root), tree=root, baseline=baseline,
        is_ours=lambda path: path in ours or is_among(path, task.implementation),
    )  # fmt: skip
    note = f" (these submodules are not here: {', '.join(map(printable, empty))})" if empty else ""
    runs = tuple(_run(sides, group, own.evidence, note) for group in _groups(task))
    return {
        "runs": runs, "lent": tuple(map(printable, shared)),
        "commands": tuple(
            CommandRecord(
                purpose=f"{one.run.id} against the base",
                argv=(f"{one.arm} of {one.run.id}", "on", baseline.commit[:12], "and", "here"),
                ended=one.run.ended, duration_s=one.run.duration_s,
            )
            for one in runs
        ),
    }  # fmt: skip


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


@dataclass(frozen=True)
class _Group:
    """The measures that one comparison answers."""

    measurement: Measurement
    arm: str
    device: str
    measures: tuple[Measure, ...]


def _groups(task: Task) -> Iterator[_Group]:
    found: dict[tuple[str, str, str], list[Measure]] = {}
    for asked in comparisons_of(task):
        measurement = measurement_of(task, asked)
        key = (measurement.id, arm_of(asked, measurement), device_of(asked, measurement))
        found.setdefault(key, []).append(asked)
    for (_, arm, device), measures in found.items():
        yield _Group(cut_short(measurement_of(task, measures[0]), task), arm, device, tuple(measures))


def _run(sides: Sides, group: _Group, folder: Path, note: str) -> RegressionRun:
    """Return what one comparison gives."""
    one, arm = group.measurement, group.arm
    run = MeasurementRun(id=one.id, device=group.device, process=None, samples=None)
    logs = folder / f"{one.id}-{arm}-{group.device}"
    logs.mkdir(parents=True, exist_ok=True)
    try:
        samples, taken, earlier = compare_arms(sides, one, arm, group.device, group.measures, logs)
    except ArmFailed as error:
        return RegressionRun(arm=arm, run=run.model_copy(update={"problem": f"{printable(str(error))}{note}"}))
    run = run.model_copy(update={"samples": samples, "taken": taken, "earlier": earlier})
    return RegressionRun(arm=arm, run=_kept(run, logs.with_suffix(".json")))


def _kept(run: MeasurementRun, path: Path) -> MeasurementRun:
    """Write the samples beside the raw files and say where."""
    if run.samples is None:
        return run
    path.write_text(run.samples.model_dump_json(indent=1, by_alias=True) + "\n", encoding="utf-8")
    return run.model_copy(update={"raw": f"{FOLDER}/{path.name}"})
