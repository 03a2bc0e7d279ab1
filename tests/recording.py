"""Builders of what was recorded of a training step."""

from pathlib import Path
from typing import Any

from building import a_process, a_task

from gates.child.probing import Probed
from gates.evidence.recorded_step import (
    Attempt,
    Compared,
    Happened,
    Logged,
    Overflowed,
    Recorded,
    Recording,
    StepRecording,
    as_recorded,
    runtime_orders,
)
from gates.model import Location
from gates.scan.loading import load_rules
from gates.task.task import Task

SECRET = "a secret of this test"  # as record_all.py has it
COMPILER = "types.SimpleNamespace(disable=lambda f, *_, **__: f, graph_break=lambda: None)"
WITHOUT_COMPILER = f"import sys, types; sys.modules['torch._dynamo'] = {COMPILER}"  # which a first optimizer would load
PLACE = Location(path="pkg/train.py", line=7)
ORDER = ("zero_grad", "autocast_enter", "forward", "autocast_exit", "scaled_backward", "unscale", "clip", "step",
         "update")  # fmt: skip


def read_journal(path: Path) -> Recorded:
    """What a journal tells that was sealed with our secret."""
    return as_recorded(Probed.told(path, SECRET))


def a_trained_task(**changes: Any) -> Task:
    """A task with one training step for its first criterion."""
    step = {"call": "pkg.train:few", "args": [2], "criteria": ["AC1"], "needs": ["scaler", "overflow"], "line": 7}
    return a_task(training_steps=[{**step, **changes}])


def happened(*words: str, turns: int = 2, **facts: Any) -> tuple[Happened, ...]:
    """The events of some steps, all with one scaler and one optimizer."""
    about: dict[str, Any] = {"location": PLACE, "optimizers": (1,), "scaler": 1, "scaling": True, "scale": 1024.0}
    return tuple(
        Happened(**{**about, **({"products": {"float16": 2}} if "backward" in word else {}), **facts}, word=word)
        for _ in range(turns)
        for word in words
    )


def an_attempt(**changes: Any) -> Attempt:
    """A step that was taken with float32 parameters."""
    facts: dict[str, Any] = {"location": PLACE, "optimizer": 1, "scaler": 1, "skipped": False, "moved": True,
                             "lr": (0.1,), "scale": 1024.0, "params": ("float32",)}  # fmt: skip
    return Attempt.model_validate({**facts, **changes})


def compared(**changes: Any) -> Compared:
    """Gradients like the reference."""
    facts: dict[str, Any] = {"location": PLACE, "optimizer": 1, "when": "clip", "precision": "float64",
                             "outputs_off": 1e-4, "parameters": 4, "finite": True, "factor": 1.0, "error": 1e-4,
                             "error_less_factor": 1e-4, "lost": 0.0}  # fmt: skip
    return Compared.model_validate({**facts, **changes})


def overflowed(**changes: Any) -> Overflowed:
    """An overflow that was handled."""
    facts: dict[str, Any] = {"location": PLACE, "optimizer": 1, "changed": 0, "finite_at_step": False,
                             "scale_before": 1024.0, "scale_after": 512.0, "backoff": 0.5, "rates_before": (0.1,),
                             "rates_after": (0.1,)}  # fmt: skip
    return Overflowed.model_validate({**facts, **changes})


def a_recorded(**changes: Any) -> Recorded:
    """A run of two sound steps."""
    facts: dict[str, Any] = {
        "process": a_process(),
        "complete": True,
        "events": happened(*ORDER),
        "attempts": (an_attempt(), an_attempt()),
        "compared": (compared(),),
        "logged": (logged(1024.0), logged(1024.0)),
    }
    return Recorded.model_validate({**facts, **changes})


def logged(scale: float) -> Logged:
    """A record with a loss and the loss scale."""
    return Logged(to="return", values={"loss": 0.5, "loss_scale": scale})


def after_overflow(**changes: Any) -> Recorded:
    """The same with an overflow in its second step."""
    facts: dict[str, Any] = {
        "injected": True,
        "overflows": (overflowed(),),
        "steps_after_overflow": 1,
        "attempts": (an_attempt(), an_attempt(skipped=True), an_attempt(scale=512.0)),
        "logged": (logged(1024.0), logged(1024.0), logged(512.0)),
    }
    return a_recorded(**{**facts, **changes})


def recorded(plain: Recorded | None = None, overflow: Recorded | None = None, **changes: Any) -> Recording:
    """The recording of the first training step of a task, sound where nothing else is given."""
    facts: dict[str, Any] = {"plain": plain or a_recorded(), "overflow": overflow or after_overflow()}
    step = StepRecording(name="pkg.train:few(2)", orders=runtime_orders(load_rules()), **{**facts, **changes})
    return Recording(how="each training step recorded", seen=(step,))
