"""Training steps of the project, run in processes of their own with torch's calls recorded."""

from collections.abc import Iterator, Sequence
from typing import Self

from gates.check import Evidence
from gates.child import process
from gates.child.probing import UNTOLD, Probe, probing
from gates.config import Context
from gates.evidence.recorded_step import Attempt, Recorded, RuntimeOrder, as_recorded, runtime_orders
from gates.evidence.source_tree import rules_of
from gates.model import Model
from gates.task.probes import Need, TrainingStep
from gates.task.task import Task

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
        probe = probing(task, context, "training_steps", "recording")
        orders = runtime_orders(rules_of(context))
        recorded = process.side_by_side(
            lambda part: _record(*part, probe, part[1].timeout_s or context.timeout_s),
            list(enumerate(task.training_steps)),
        )
        steps = tuple(step.model_copy(update={"orders": orders}) for step in recorded)
        runs = [run for step in steps for run in (step.plain, step.overflow) if run is not None]
        return cls(
            how="each training step once as it is and once with an overflow, in processes of their own",
            commands=tuple(
                run.process.as_command("training step", run.process.argv[-2:-1]) for run in runs if run.process
            ),
            steps=steps,
        )

    def recorded(self) -> Iterator[tuple[str, Recorded, Sequence[RuntimeOrder]]]:
        """Yield each training step as it is."""
        yield from ((step.name, step.plain, step.orders) for step in self.steps)

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
    seen = probe.ask("recorder.__main__", name, asked, limit_s, threads=None, env=ALONE)
    recorded = as_recorded(seen)
    cut_off = seen.process is not None and seen.process.timed_out
    unheard = "" if seen.entries or cut_off else "the recorder wrote no journal"
    return recorded.model_copy(update={"problem": recorded.problem or unheard})
