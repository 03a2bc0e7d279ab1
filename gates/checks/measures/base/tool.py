"""Another tool's benchmarks run in two folders in turn: of each run, the median of each benchmark."""

from collections.abc import Mapping
from pathlib import Path

from gates.checks.measures.base.arms import Noted, Sides, refuse_other_code
from gates.evidence._timed import times_of, turns
from gates.measuring import machine
from gates.measuring.comparison import BASELINE, CANDIDATE
from gates.measuring.samples import BadSamples, Metric, Samples
from gates.measuring.wire import ArmFailed
from gates.task.measurement import Arm, Measurement

METRIC = "time_s"
Times = Mapping[str, float]


def compare_benchmarks(sides: Sides, measurement: Measurement, device: str, folder: Path) -> dict[str, Samples]:
    """Return the samples of each benchmark that both sides have; raise `ArmFailed` where a side cannot run.

    The first run of a side is not counted: it finds cold caches, and it is asked what it loads.
    """
    for side, other in ((BASELINE, CANDIDATE), (CANDIDATE, BASELINE)):
        notes = Noted(folder / f"{side}.loaded.txt")
        _run(sides, side, measurement, device, folder / f"{side}-first", notes)
        refuse_other_code(
            f"the {side}", notes.files, measurement.run or (), folder=sides.folders[side], other=sides.folders[other],
            is_ours=sides.is_ours,
        )  # fmt: skip
    taken: list[dict[str, Times]] = []
    for number in turns(measurement):
        order = (BASELINE, CANDIDATE) if number % 2 == 0 else (CANDIDATE, BASELINE)
        taken.append({side: _run(sides, side, measurement, device, folder / f"{side}-{number}") for side in order})
    names = set.intersection(*(set(times) for pair in taken for times in pair.values()))
    return {
        name: _samples(measurement, [{side: pair[side][name] for side in pair} for pair in taken]) for name in names
    }


def _run(
    sides: Sides, side: str, measurement: Measurement, device: str, log: Path, notes: Noted | None = None
) -> Times:
    """Run the tool once on a side and read what it wrote."""
    out = log.with_suffix(".benchmark.json")
    words = tuple(word.replace("{out}", str(out)) for word in measurement.run or ())
    made = sides.launch(side, Arm(run=words), measurement, device, seed=1)
    made = notes.watching(made) if notes else made
    limit = measurement.timeout_s or sides.context.timeout_s
    try:
        return times_of(side, made, out, measurement.read, limit_s=limit, log=log)
    except BadSamples as error:
        raise ArmFailed(str(error)) from error


def _samples(measurement: Measurement, pairs: list[dict[str, float]]) -> Samples:
    arms = {side: tuple(pair[side] for pair in pairs) for side in (BASELINE, CANDIDATE)}
    return Samples(
        schema="gates.samples/1", device=machine.processor(), settings={"runs": str(len(pairs))},
        timing=f"{measurement.read}, run on both sides in turn; of each run the median",
        metrics={METRIC: Metric(unit="s", direction="lower", paired=True, arms=arms)},
    )  # fmt: skip
