"""An attempt to answer a measurement: in the ledger from before its first sample on, however it ends."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from gates.evidence.measurement_run import MeasurementRun
from gates.measuring import answers
from gates.measuring.answers import Source
from gates.measuring.fitness import contended, disturbed
from gates.measuring.interval import TIME_UNITS, is_time
from gates.measuring.ledger import Attempt, Ledger, Recalled
from gates.measuring.samples import Samples
from gates.measuring.session import Plan, measure
from gates.measuring.taken import Taken, frozen_digest
from gates.measuring.wire import ArmFailed
from gates.task.task import Measure

BEGUN, FAILED = "begun", "failed"
KILLED = "it was stopped from outside"


def attempt(
    plan: Plan, measures: Sequence[Measure], key: str, root: Path, folder: Path
) -> tuple[Samples, Taken, Recalled]:
    """Measure until the measures are decided; return the samples, how they were taken, and the earlier attempts.

    One that an arm ends raises `ArmFailed`. One that is killed stays in the ledger as it was begun.
    """
    ledger = Ledger(root)
    recalled = ledger.recall(key)
    earlier = counted(recalled.attempts)
    begun = _begin(ledger, key)
    try:
        samples, taken = measure(plan, folder, partial(_settled, measures, earlier))
    except ArmFailed as error:
        ledger.append(begun.model_copy(update={"ended": FAILED, "pairs": error.pairs, "unfit": (str(error),)}))
        raise
    told = {
        "ended": taken.ended, "pairs": taken.pairs, "restarts": taken.restarts, "split": taken.split,
        "metrics": samples.metrics,
        "unfit": (*disturbed(taken), *(contended(taken) if plan.clock == "wall" else ())),
        "missed": answers.missed(_applying(measures, samples), Source(samples, taken, earlier)),
    }  # fmt: skip
    unwritten = ledger.append(begun.model_copy(update=told))
    return samples, taken, Recalled(attempts=earlier, problem=recalled.problem or unwritten)


def handed_over(measures: Sequence[Measure], key: str, root: Path, run: Callable[[], MeasurementRun]) -> MeasurementRun:
    """Run what hands over its samples itself; return it with the earlier attempts.

    The ledger keeps what it missed, not the samples: with the same seeds those of two attempts are the same ones.
    """
    ledger = Ledger(root)
    recalled = ledger.recall(key)
    begun = _begin(ledger, key)
    ended = run()
    drawn = _drawn(ended.samples) if ended.samples else ""
    if (same := ledger.same(drawn, key)) is not None:
        problem = f"its times are those of the attempt at {same.at}, to the last digit: no clock gives the same twice"
        ended = ended.model_copy(update={"samples": None, "problem": problem})
    samples = ended.samples
    told: dict[str, object] = {"ended": ended.ended, "unfit": (ended.problem,)}
    if samples:
        missed = answers.missed(_applying(measures, samples), Source(samples))
        told = {"ended": ended.ended, "unfit": (), "pairs": _longest(samples), "missed": missed, "drawn": drawn}
    unwritten = ledger.append(begun.model_copy(update=told))
    earlier = Recalled(attempts=counted(recalled.attempts), problem=recalled.problem or unwritten)
    return ended.model_copy(update={"earlier": earlier})


def _begin(ledger: Ledger, key: str) -> Attempt:
    """Write an attempt down before its first sample, as if it had been killed; return it to be told how it ended."""
    begun = Attempt(key=key, at=datetime.now(UTC).isoformat(), ended=BEGUN, pairs=0, unfit=(KILLED,))
    ledger.append(begun)
    return begun


def _longest(samples: Samples) -> int:
    return max(len(values) for metric in samples.metrics.values() for values in metric.arms.values())


def _drawn(samples: Samples) -> str:
    """Return the digest of the times among samples; none of so few that they may well come again."""
    times = {
        name: metric.arms for name, metric in samples.metrics.items() if metric.unit in TIME_UNITS or is_time(name)
    }
    values = [value for arms in times.values() for values in arms.values() for value in values]
    return frozen_digest(times) if len(set(values)) >= MANY else ""


MANY = 10  # different times: fewer may be the same by chance


def counted(lines: Sequence[Attempt]) -> tuple[Attempt, ...]:
    """Return the attempts that lines of a ledger tell of: those that came to pairs, and those that never ended."""
    ended = {line.at for line in lines if line.ended != BEGUN}
    return tuple(line for line in lines if (line.at not in ended if line.ended == BEGUN else line.pairs))


def _settled(measures: Sequence[Measure], earlier: tuple[Attempt, ...], samples: Samples, taken: Taken) -> bool:
    return answers.settled(_applying(measures, samples), Source(samples, taken, earlier))


def _applying(measures: Sequence[Measure], samples: Samples) -> list[Measure]:
    return [measure for measure in measures if measure.on in {"any", samples.device.type}]
