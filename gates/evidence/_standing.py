"""The commands that stand for a criterion, and one run of each, in a copy in which the criterion's code raises."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from gates.child import process
from gates.context import Context
from gates.evidence.measurements import asked_of
from gates.measuring import bench
from gates.measuring.samples import BadSamples, read
from gates.measuring.wire import ArmFailed
from gates.project.import_paths import import_roots
from gates.task.measurement import Arm, Measurement
from gates.task.task import Criterion, Measure, Task
from gates.task.types import Command

STEPS = 8  # of an arm: what is called but now and then is called in one of so many
LONG_S = 60.0


@dataclass(frozen=True)
class Standing:
    """A command that stands for a criterion by itself, and what of the task it is, such as `measurement speed`.

    An `arm` is asked for one step, as when it is measured. `answers` are the measures whose arms must be among the
    samples that the command writes. `smoke` are the words with which it does less.
    """

    part: str
    command: Command
    timeout_s: float | None
    device: str = "cpu"
    arm: Arm | None = None
    answers: tuple[Measure, ...] = ()
    smoke: Command = ()

    def shortest_first(self) -> Iterator["Standing"]:
        """Yield the same with less to do, where the task says how, then as it stands."""
        if self.smoke:
            yield replace(self, command=(*self.command, *self.smoke))
        yield self


@dataclass(frozen=True)
class RunOnce:
    """How a command ended: whether well, and whether it handed over what is asked of it."""

    ended: str
    well: bool = False
    answered: bool = False
    duration_s: float = 0.0


def standing_for(task: Task, criterion: Criterion) -> Iterator[Standing]:
    """Yield the commands and the arms that stand for a criterion by themselves."""
    wanted = {measure.from_ for measure in criterion.measures}
    for measurement in task.measurements:
        if measurement.id in wanted:
            yield from _measuring(task, criterion, measurement)
    for entry in task.entry_points:
        if criterion.id in entry.criteria and entry.run:
            yield Standing("entry point", entry.run, entry.timeout_s)


def _measuring(task: Task, criterion: Criterion, measurement: Measurement) -> Iterator[Standing]:
    device = next(iter(asked_of(task, measurement)), "cpu").replace("any", "cpu")
    part, limit = f"measurement {measurement.id}", measurement.timeout_s
    if measurement.run:
        answers = tuple(each for each in criterion.measures if each.from_ == measurement.id)
        answers = answers if measurement.read == "samples" else ()
        yield Standing(part, _filled(measurement.run, device), limit, device, answers=answers, smoke=measurement.smoke)
    for arm in measurement.arms.values():
        if arm.time:
            yield Standing(part, _filled(arm.time, device), limit, device)
        else:
            yield Standing(part, _filled((arm.call,) if arm.call else arm.run or (), device), limit, device, arm)


def _filled(command: Sequence[str], device: str) -> Command:
    return tuple(word.replace("{device}", device) for word in command)


def run_once(one: Standing, task: Task, copy: Context, env: dict[str, str]) -> RunOnce:
    """Run a command to its end, or have an arm take one step."""
    limit = one.timeout_s or copy.timeout_s
    with tempfile.TemporaryDirectory(dir=copy.evidence) as fresh:
        if one.arm is not None:
            return _stepped(one, one.arm, task, copy, env, Path(fresh), limit)
        out = Path(fresh) / "out"
        argv = copy.argv(one.command, out=str(out))
        try:
            ended = process.run(argv, cwd=copy.root, timeout_s=limit, log=Path(fresh) / "run", env=env)
        except OSError:
            return RunOnce("cannot be started")
        well = ended.exit_code == 0 and not ended.timed_out
        asked = any("{out}" in word for word in one.command)
        return RunOnce(ended.ended, well, not asked or _is_answered(out, one.answers), ended.duration_s)


def _is_answered(out: Path, answers: Sequence[Measure]) -> bool:
    if not out.is_file():
        return False
    try:
        metrics = read(out.read_text(encoding="utf-8")).metrics if answers else {}
    except (BadSamples, UnicodeDecodeError):
        return False
    return all(each.of in metrics and set(each.arms) <= metrics[each.of].arms.keys() for each in answers)


def works(one: Standing, task: Task, copy: Context, env: dict[str, str], mark: Path) -> bool | None:
    """Return whether one of the steps that an arm takes once it is made leaves a mark; `None` where nobody can tell."""
    assert one.arm is not None
    limit = one.timeout_s or copy.timeout_s
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(dir=copy.evidence) as fresh:
        try:
            with _begun(one, one.arm, task, copy, env, Path(fresh), limit) as worker:
                for _ in range(STEPS):
                    mark.unlink(missing_ok=True)
                    worker.run(1, discard=0, timeout_s=limit)
                    if mark.exists():
                        return True
                    if time.monotonic() - begun > LONG_S:
                        return None
                worker.stop()
        except ArmFailed:
            return None
    return False


@contextmanager
def _begun(
    one: Standing, arm: Arm, task: Task, copy: Context, env: dict[str, str], folder: Path, limit_s: float
) -> Iterator[bench.Worker]:
    start = bench.launch(arm, python=copy.python, paths=import_roots(task, copy), threads=1, device=one.device)
    with bench.Bench(folder, timeout_s=limit_s) as running:
        worker = running.start("arm", bench.Launch(start.argv, start.cwd, {**env, **start.env}))
        worker.hello(timeout_s=limit_s)
        yield worker


def _stepped(
    one: Standing, arm: Arm, task: Task, copy: Context, env: dict[str, str], folder: Path, limit_s: float
) -> RunOnce:
    try:
        with _begun(one, arm, task, copy, env, folder, limit_s) as worker:
            took = worker.run(1, discard=0, timeout_s=limit_s)
            worker.stop()
    except ArmFailed as error:
        return RunOnce(str(error))
    return RunOnce("one step taken", well=True, answered=True, duration_s=took.wall_s)
