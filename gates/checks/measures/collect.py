"""Regressions: arms timed on the baseline revision and here in turn, the baseline laid out in a folder of its own."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
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
        empty = lay_out(history.top, baseline.commit, tree)
        _build(task, root, own)
    except EvidenceUnavailable as error:
        return {"problem": str(error)}
    shared = tuple(dict.fromkeys(_lend(task, context, root)))
    sides = Sides(task, replace(own, root=context.root), root, baseline)
    note = f" (these submodules are not here: {', '.join(map(printable, empty))})" if empty else ""
    runs = tuple(_run(sides, arm, device, measures, note) for (_, arm, device), measures in _groups(task).items())
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


def _run(sides: Sides, arm: str, device: str, measures: Sequence[Measure], note: str) -> RegressionRun:
    """Return what one comparison gives; its samples are written beside the raw files."""
    one = cut_short(measurement_of(sides.task, measures[0]), sides.task)
    logs = sides.context.evidence / f"{one.id}-{arm}-{device}"
    logs.mkdir(parents=True, exist_ok=True)
    run = MeasurementRun(id=one.id, device=device, process=None, samples=None)
    try:
        samples, taken, earlier = compare_arms(sides, one, arm, device, measures, logs)
    except ArmFailed as error:
        return RegressionRun(arm=arm, run=run.model_copy(update={"problem": f"{printable(str(error))}{note}"}))
    path = logs.with_suffix(".json")
    path.write_text(samples.model_dump_json(indent=1, by_alias=True) + "\n", encoding="utf-8")
    told = {"samples": samples, "taken": taken, "earlier": earlier, "raw": f"{FOLDER}/{path.name}"}
    return RegressionRun(arm=arm, run=run.model_copy(update=told))
