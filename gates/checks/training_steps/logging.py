"""The aspect of a training step that its logs show: the loss scale of each scaler, at each step."""

from collections.abc import Iterator, Sequence

from gates.checks.training_steps.collect import StepRecording
from gates.evidence.recorded_step import Attempt, Recorded
from gates.judging.said import Said, absent
from gates.model import Outcome
from gates.task.training_step import Need


def judge_logged(step: StepRecording, _needs: frozenset[Need]) -> Iterator[Said]:
    """Judge whether the scale of each scaler is in what was logged or returned, at each step, also where it changes."""
    runs = [run for run in (step.plain, step.overflow) if run is not None and run.complete]
    scalers = _scalers([attempt for run in runs for attempt in run.attempts])
    names = {scaler: _names(runs, scaler) for scaler in scalers}
    steps = sum(len(run.attempts) for run in runs)
    if not any(run.logged for run in runs):
        yield absent("nothing was logged or returned by this training step", needed=True)
    elif all(names.values()):
        shown = ", ".join(sorted(set().union(*names.values()))[:3])
        also = ", also where an overflow lowered it" if len(runs) > 1 else ""
        yield Said(Outcome.PASSED, f"The loss scale was logged at each of {steps} steps, as {shown}{also}.", shown,
                   expected="the loss scale at each step")  # fmt: skip
    else:
        keys = sorted({name for run in runs for record in run.logged for name in record.values})
        unlogged = next(scaler for scaler in scalers if not names[scaler])
        whose = f" of scaler {unlogged}" if len(scalers) > 1 else ""
        yield Said(
            Outcome.FAILED, f"No logged value is the loss scale{whose} at each step.", f"logged: {', '.join(keys[:8])}",
            expected="the loss scale at each step", impact="A collapsing scale would not be seen.",
            remediation="Log scaler.get_scale() with each step's other values.", subject="scale not logged",
        )  # fmt: skip


def _scalers(attempts: Sequence[Attempt]) -> list[int | None]:
    """Return the scalers to be logged: those that scale, before those that only might, before none at all."""
    might = {attempt.scaler for attempt in attempts if attempt.scaler is not None}
    scale = {attempt.scaler for attempt in attempts if attempt.scaler is not None and attempt.scale != 1.0}
    return [*sorted(scale or might)] or [None]


def _names(runs: Sequence[Recorded], scaler: int | None) -> set[str]:
    """Return the names under which the scale of a scaler was logged in each run that it stepped in."""
    found = [set(_names_of_scale(run, used)) for run in runs if (used := _used(run, scaler))]
    return set.intersection(*found) if found else set()


def _used(run: Recorded, scaler: int | None) -> list[float | None]:
    """Return the scales that a scaler stepped with, once for all of the steps between two of its updates."""
    mine = [attempt for attempt in run.attempts if attempt.scaler == scaler]
    return [
        attempt.scale for i, attempt in enumerate(mine)
        if not i or attempt.window is None or attempt.window != mine[i - 1].window
    ]  # fmt: skip


def _names_of_scale(run: Recorded, used: list[float | None]) -> Iterator[str]:
    """Yield the names under which the scale of each step was logged: as it was in the step, or after it."""
    names = {(record.to, name) for record in run.logged for name in record.values}
    for to, name in sorted(names):
        values = [record.values[name] for record in run.logged if record.to == to and name in record.values]
        if _in_order(used, values) or (len(used) > 1 and _in_order(used[1:], values[:-1]) and len(values) >= len(used)):
            yield f"{name} ({to})"


def _in_order(wanted: list[float | None], values: list[float | None]) -> bool:
    """Whether the wanted values are among the others, in their order, and nothing but scales is."""
    rest = iter(values)
    return bool(wanted) and all(any(value == each for value in rest) for each in wanted) and set(values) <= {
        *wanted, *values[-1:]
    }  # fmt: skip
