"""Training steps of the project, run in processes of their own with torch's calls recorded, once with an overflow."""

import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from gates.check import Evidence
from gates.child import process
from gates.child.channel import Channel
from gates.child.probing import RECORDER, programs
from gates.child.tracebacks import crash_of, written
from gates.context import Context
from gates.errors import EvidenceUnavailable
from gates.evidence._journal import read_journal
from gates.evidence.code_rules import rules_of
from gates.evidence.recorded_step import Attempt, Recorded
from gates.evidence.runtime_orders import RuntimeOrder, runtime_orders
from gates.model import CommandRecord, Model
from gates.project.import_paths import import_roots
from gates.task.task import Task
from gates.task.training_step import Need, TrainingStep

# What a training step shows here is its semantics: on every machine the same, on a CPU, with nobody told of it.
ALONE = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "WANDB_MODE": "offline", "WANDB_SILENT": "true"}


class StepRecording(Model):
    """One training step: as it is, and with an overflow in one of its steps, if there is a scaler to handle it.

    `orders` are those that its calls are judged by.
    """

    index: int
    name: str
    plain: Recorded
    overflow: Recorded | None = None
    orders: tuple[RuntimeOrder, ...] = ()


class Recording(Evidence):
    """All training steps of a task, recorded."""

    steps: tuple[StepRecording, ...]

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Run each training step in its own process, under the recorder."""
        if not task.training_steps:
            raise EvidenceUnavailable(f"{task.path} names no 'training_steps'")
        orders = runtime_orders(rules_of(context))
        with programs(context.folder("recording").evidence) as plugin:
            steps = tuple(
                _record(i, step, task, context, plugin).model_copy(update={"orders": orders})
                for i, step in enumerate(task.training_steps)
            )
        runs = [run for step in steps for run in (step.plain, step.overflow) if run is not None]
        return cls(
            how="each training step once as it is and once with an overflow, in processes of their own",
            commands=tuple(
                CommandRecord(
                    purpose="training step", argv=run.process.argv[-2:-1], ended=run.process.ended,
                    duration_s=run.process.duration_s,
                )
                for run in runs if run.process
            ),
            steps=steps,
        )  # fmt: skip

    def step(self, index: int) -> StepRecording | None:
        """Return the recording of a task's training step."""
        return next((step for step in self.steps if step.index == index), None)


def _record(index: int, step: TrainingStep, task: Task, context: Context, plugin: Path) -> StepRecording:
    asked = {
        "call": step.call,
        "args": step.args,
        "paths": [str(path) for path in import_roots(task, context)],
        "root": str(context.root),
    }
    limit, folder = step.timeout_s or context.timeout_s, plugin.parent
    plain = _run({**asked, "overflow": None}, context, folder / f"{index}", plugin, limit)
    scaled = any(event.word == "scaled_backward" for event in plain.events)
    steps_through_scaler = any(event.word == "step" and event.enabled for event in plain.events)
    guarded = scaled or steps_through_scaler or Need.OVERFLOW in step.needs
    overflow = None
    if plain.complete and plain.attempts and guarded:  # in the second step, if there is one: then moments are there
        at = {**step_to_overflow(plain.attempts, scaled=scaled), "scaled": scaled}
        overflow = _run({**asked, "overflow": at}, context, folder / f"{index}-overflow", plugin, limit)
    return StepRecording(index=index, name=step.name, plain=plain, overflow=overflow)


def step_to_overflow(attempts: Sequence[Attempt], *, scaled: bool) -> dict[str, int]:
    """Return which step is to overflow, and whose it is: the second one, of those through a scaler if one scales."""
    through = [i for i, attempt in enumerate(attempts) if attempt.scaler is not None or not scaled]
    known = through or list(range(len(attempts)))
    step = next((i for i in known if i), known[-1])
    return {"step": step, "optimizer": attempts[step].optimizer}


def _run(asked: dict[str, object], context: Context, log: Path, plugin: Path, limit: float) -> Recorded:
    env = {**ALONE, "WANDB_DIR": str(plugin), "PYTHONPATH": process.joined_paths(str(plugin))}
    argv = [context.python, "-m", RECORDER, json.dumps(asked)]
    log.mkdir(exist_ok=True)
    channel = Channel(log)
    try:
        ended = process.run(argv, cwd=context.root, timeout_s=limit, log=log, env=env, channel=channel)
    except OSError as error:
        return Recorded(problem=f"cannot be started: {error.strerror or error}")
    recorded = read_journal(channel.told, channel.nonce)
    with suppress(FileNotFoundError):  # the process removed the folder
        channel.told.replace(log.with_suffix(".jsonl"))
    shutil.rmtree(log, ignore_errors=True)
    shown = ended.model_copy(
        update={"argv": ("python", "-m", "gates_recorder", str(asked["call"]), f"{log.name}.jsonl")}
    )
    facts: dict[str, object] = {"process": shown, "complete": recorded.complete and ended.exit_code == 0}
    text = written(log.with_suffix(".stderr.txt"))
    crash = crash_of(text, context) if ended.exit_code and not recorded.problem else None
    if crash:
        facts |= {"crash": crash.location, "error": ": ".join(part for part in (crash.error, crash.message) if part)}
    if ended.exit_code and "No module named 'torch'" in text and not recorded.events:
        facts["problem"] = "the project's interpreter has no torch"
    return recorded.model_copy(update=facts)
