"""How the gate took a measurement, as facts for the report."""

import statistics
from collections.abc import Iterator

from gates.evidence.measurements import MeasurementRun
from gates.measuring.deciding.design import LEAST_RESTARTS
from gates.measuring.fitness import noise
from gates.measuring.taken import Taken


def facts_of(run: MeasurementRun, taken: Taken) -> Iterator[tuple[str, str]]:
    """Yield each fact with its name."""
    starts = taken.starts
    alone = ": how they differ is not in the interval" if 0 < starts < LEAST_RESTARTS else ""
    split = f", each of {taken.most // taken.split} split into {taken.split}" if taken.split > 1 else ""
    yield "Pairs", f"{taken.pairs} of at most {taken.most}{split}, ended: {taken.ended}"
    started = f"{_counted(starts, 'start')}, {_counted(taken.threads, 'thread')} each{alone}"
    yield "Processes", started if starts else "one for each sample"
    yield "Time", f"{taken.measured_s:.1f} s measuring, {taken.started_s:.1f} s starting; budget {taken.budget_s:g} s"
    seen = noise(taken)
    yield f"A second copy of {taken.baseline}", f"{seen} (noise floor {seen.floor:.1%})" if seen else "not timed"
    for arm, values in taken.stretch.items():
        yield f"Wall time over CPU time of {arm}", f"{statistics.median(values):.2f}"
    if taken.waiting is not None:
        yield "Something waited for a processor", f"{taken.waiting:.0%} of the time"
    unsettled = sum(not one.settled for one in taken.warmups)
    if taken.warmups:
        yield "Warm-up", f"{len(taken.warmups)} times, {unsettled} of them without settling"
    yield (
        "Decides by",
        {"either": "wall time, or CPU time where the wall clock was disturbed"}.get(taken.clock, f"{taken.clock} time"),
    )
    yield "Attempt", str(len(run.earlier.attempts) + 1)
    yield "Laid down before the first sample", taken.frozen[:16]


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
