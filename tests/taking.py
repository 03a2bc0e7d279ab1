"""What a measurement that the gate took itself looks like: a calm machine, 16 pairs, a clear answer."""

from typing import Any

from building import a_criterion, a_measure, a_task

from gates.evidence.measurements import Measurements
from gates.measuring.machine import Machine
from gates.measuring.samples import Samples
from gates.measuring.taken import Attempt, MeasurementRun, Taken
from gates.task.task import Task

PAIRS = 16
OLD = [2.0 + i / 1000 for i in range(PAIRS)]
NEW = [1.0 + i / 2000 for i in range(PAIRS)]


def a_taken(**changes: Any) -> Taken:
    """Sixteen pairs from four starts of the processes on a machine that had nothing else to do."""
    facts: dict[str, Any] = {
        "baseline": "old", "clock": "wall", "threads": 1, "most": 64, "budget_s": 120,
        "ended": "decided", "pairs": PAIRS, "restarts": tuple(i // 4 for i in range(PAIRS)),
        "copies": ((1.0, 1.001), (1.0, 0.999), (1.0, 1.002), (1.0, 0.998)),
        "stretch": {"old": (1.0,) * PAIRS, "new": (1.01,) * PAIRS}, "switches": {"old": (0,) * PAIRS},
        "waiting": 0.0, "before": a_machine(), "after": a_machine(), "measured_s": 2.0, "started_s": 1.0,
    }  # fmt: skip
    return Taken.model_validate({**facts, **changes})


def a_machine(**changes: Any) -> Machine:
    """Two cores, all of which may be used."""
    return Machine.model_validate({"cores": 2, "quota": "", "throttled_s": 0.0, **changes})


def some_samples(*, old: list[float] = OLD, new: list[float] = NEW, **more: tuple[list[float], list[float]]) -> Samples:
    """Samples of two arms: step times, and what else is given."""
    metrics = {
        name: {"unit": "B" if name.endswith("bytes") else "s", "direction": "lower", "paired": True,
               "arms": {"old": list(a), "new": list(b)}}
        for name, (a, b) in {"step_time_s": (old, new), **more}.items()
    }  # fmt: skip
    device = {"type": "cpu", "name": "a cpu"}
    return Samples.model_validate({"schema": "gates.samples/1", "device": device, "metrics": metrics})


def an_attempt(*, old: list[float] = OLD, new: list[float] = NEW, **changes: Any) -> Attempt:
    """An earlier attempt with samples of its own."""
    facts = {
        "key": "k", "at": "2026-01-01T00:00:00Z", "ended": "decided", "pairs": len(old),
        "restarts": tuple(i // 4 for i in range(len(old))), "metrics": some_samples(old=old, new=new).metrics,
    }  # fmt: skip
    return Attempt.model_validate({**facts, **changes})


def a_run_of(samples: Samples, taken: Taken | None = None, earlier: tuple[Attempt, ...] = ()) -> MeasurementRun:
    """A run that came to samples."""
    return MeasurementRun(id="bench", device="any", samples=samples, taken=taken, earlier=earlier)


def a_timed_task(*measures: dict[str, object], **changes: Any) -> Task:
    """A task whose measurement has arms."""
    arms = {"old": {"call": "pkg:old"}, "new": {"call": "pkg:new"}}
    bench = {"id": "bench", "arms": arms, "line": 16, **changes}
    return a_task(criteria=[a_criterion(tests=[], measures=list(measures or (a_measure(),)))], measurements=[bench])


def seen(
    samples: Samples | None = None, taken: Taken | None = None, *earlier: Attempt, problem: str = ""
) -> Measurements:
    """The run of that measurement."""
    run = MeasurementRun(
        id="bench", device="any", process=None, samples=samples or some_samples(), taken=taken or a_taken(),
        raw="measurements/bench-any.json", earlier=earlier, ledger_problem=problem,
    )  # fmt: skip
    return Measurements(how="arms in turn", runs=(run,))
