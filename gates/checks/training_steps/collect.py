"""Training steps of the project, run in processes of their own with torch's calls recorded, once with an overflow."""

from collections.abc import Sequence
from typing import Self

from gates.check import Evidence
from gates.child.probing import UNTOLD, Probe, programs
from gates.context import Context
from gates.errors import EvidenceUnavailable
from gates.evidence.code_rules import rules_of
from gates.evidence.recorded_step import Attempt, Recorded, as_recorded
from gates.evidence.runtime_orders import RuntimeOrder, runtime_orders
from gates.model import CommandRecord, Model
from gates.project.import_paths import import_roots
from gates.task.task import Task
from gates.task.training_step import Need, TrainingStep

# What a training step shows here is its semantics: on every machine the same, on a CPU, with nobody told of it.
ALONE = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", **UNTOLD}


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
            probe = Probe(context, plugin, import_roots(task, context))
            steps = tuple(
                _record(i, step, probe, step.timeout_s or context.timeout_s).model_copy(update={"orders": orders})
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


def _record(index: int, step: TrainingStep, probe: Probe, limit_s: float) -> StepRecording:
    asked = {"call": step.call, "args": step.args}
    plain = _run(probe, {**asked, "overflow": None}, f"{index}", limit_s)
    scaled = any(event.word == "scaled_backward" for event in plain.events)
    steps_through_scaler = any(event.word == "step" and event.enabled for event in plain.events)
    guarded = scaled or steps_through_scaler or Need.OVERFLOW in step.needs
    overflow = None
    if plain.complete and plain.attempts and guarded:  # in the second step, if there is one: then moments are there
        at = {**step_to_overflow(plain.attempts, scaled=scaled), "scaled": scaled}
        overflow = _run(probe, {**asked, "overflow": at}, f"{index}-overflow", limit_s)
    return StepRecording(index=index, name=step.name, plain=plain, overflow=overflow)


def step_to_overflow(attempts: Sequence[Attempt], *, scaled: bool) -> dict[str, int]:
    """Return which step is to overflow, and whose it is: the second one, of those through a scaler if one scales."""
    through = [i for i, attempt in enumerate(attempts) if attempt.scaler is not None or not scaled]
    known = through or list(range(len(attempts)))
    step = next((i for i in known if i), known[-1])
    return {"step": step, "optimizer": attempts[step].optimizer}


def _run(probe: Probe, asked: dict[str, object], name: str, limit_s: float) -> Recorded:
    seen = probe.record("recorder", name, asked, limit_s, ALONE)
    recorded = as_recorded(seen.entries, seen.foreign)
    ended = recorded.complete and seen.process is not None and seen.process.exit_code == 0
    crash = {} if recorded.problem else {"crash": seen.place, "error": seen.error}
    facts = {"process": seen.process, "complete": ended, "problem": recorded.problem or seen.problem}
    return recorded.model_copy(update={**facts, **crash})
