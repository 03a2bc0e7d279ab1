"""The plan of a measurement, and what its rounds give, gathered arm by arm until it is samples."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from gates.measuring.bench import START_S, Launch
from gates.measuring.samples import Collected, Device, Ended, Metric, Ran, Samples
from gates.task.measurement import Measurement

COPY = "a second copy of "
STEPS = "segments of steps, arms in turn, one step discarded after each switch; timed by the gate's workers"
COMMANDS = "each command from its start to its end, arms in turn, the first round not counted; timed by the gate"

MOST_START_S = 300.0
FIRST_COPIES, COPIES_APART = 6, 8  # pairs


@dataclass(frozen=True)
class Plan:
    """What is measured, as it is asked for, and how each arm is started with a hash seed; a start has a limit."""

    asked: Measurement
    arms: Mapping[str, Callable[[int], Launch]]
    limit_s: float = START_S
    segment_s: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Return the arms; the first is the baseline."""
        return tuple(self.arms)

    @property
    def talks(self) -> bool:
        """Return whether the arms are workers that take steps when asked, and not commands that are timed."""
        return not any(arm.time for arm in self.asked.arms.values())

    @property
    def start_s(self) -> float:
        """Return how long a start may take."""
        return self.asked.timeout_s or min(self.limit_s, MOST_START_S)


def turn(arms: tuple[str, ...], number: int) -> tuple[str, ...]:
    """Return the order of a pair: forwards, then backwards; of three arms each comes first, between and last."""
    first = number // 2 % len(arms) if len(arms) > 2 else 0
    order = (*arms[first:], *arms[:first])
    return order if number % 2 == 0 else order[::-1]


def apart(arms: int, split: int) -> int:
    """Return how many pairs lie between comparisons with a copy: more where pairs are short, or there is one arm."""
    return COPIES_APART * (2 if split > 1 or arms == 1 else 1)


def copies_until(pairs: int, between: int) -> int:
    """Return how often a baseline and its copy were compared by so many pairs, each time once in either order."""
    return 2 * ((pairs + between - FIRST_COPIES) // between)


@dataclass
class Gathered:
    """What the arms told round by round, as it was told; a round that is not whole is left out.

    `restarts` tells of each round of workers which start of the processes it came from, `copied` is each round of the
    baseline and its copy, `memory` what each start held, by metric and arm.
    """

    arms: tuple[str, ...]
    rounds: list[Mapping[str, Ran]] = field(default_factory=list)
    restarts: list[int] = field(default_factory=list)
    copied: list[tuple[Ran, Ran]] = field(default_factory=list)
    memory: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def take_memory(self, collected: Mapping[str, Collected], ended: Mapping[str, Ended | None]) -> None:
        """Take what the processes of one start say of their memory, and what the system says."""
        peaks = {arm: collected[arm].peak_memory_bytes for arm in self.arms}
        whole = {arm: float(end.peak_memory_bytes) for arm in self.arms if (end := ended.get(arm))}
        for metric, told in (("peak_memory_bytes", peaks), ("process_peak_bytes", whole)):
            for arm, value in told.items() if len(told) == len(self.arms) and all(told.values()) else ():
                self.memory.setdefault(metric, {}).setdefault(arm, []).append(value or 0.0)

    def facts(self) -> dict[str, object]:
        """Return what a verdict needs beside the samples, as `Taken` has it."""
        cpu = [(own.cpu_step_s, copy.cpu_step_s) for own, copy in self.copied]
        digests = {arm: {one[arm].digest for one in self.rounds} - {""} for arm in self.arms}
        return {
            "pairs": len(self.rounds),
            "restarts": self.restarts,
            "copies": [(own.step_s, copy.step_s) for own, copy in self.copied],
            "cpu_copies": [pair for pair in cpu if all(pair)],
            "stretch": self._by_arm(lambda one: one.wall_s / one.ran / one.cpu_step_s if one.cpu_step_s else None),
            "switches": self._by_arm(lambda one: one.switches),
            "whole": self._by_arm(lambda one: one.passed_s / one.wall_s if one.passed_s and not one.device_s else None),
            "digests": {arm: sorted(values) for arm, values in digests.items() if values},
        }

    def samples(self, device: Device, environment: Mapping[str, str], settings: Mapping[str, str]) -> Samples:
        """Return what was gathered as samples; a metric that some arm has too few of is left out."""
        of = "step" if self.restarts else "run"
        columns: dict[str, Mapping[str, Sequence[float]]] = {
            f"{of}_time_s": self._by_arm(lambda one: one.step_s),
            f"{of}_cpu_time_s": self._by_arm(lambda one: one.cpu_step_s),
            "peak_memory_bytes": self._by_arm(lambda one: one.peak_memory_bytes),
            "items_per_s": self._by_arm(lambda one: one.items / (one.step_s * one.ran) if one.items else None),
            **self.memory,
        }
        metrics = {}
        for name, by_arm in columns.items():
            if len(by_arm) == len(self.arms) and len({len(values) for values in by_arm.values()}) == 1:
                unit = "B" if name.endswith("bytes") else "1/s" if name.endswith("per_s") else "s"
                arms = {arm: tuple(values) for arm, values in by_arm.items()}
                better: Literal["higher", "lower"] = "higher" if unit == "1/s" else "lower"
                metrics[name] = Metric(unit=unit, direction=better, paired=True, arms=arms)
        return Samples(
            schema="gates.samples/1",
            device=device,
            environment=dict(environment),
            settings=dict(settings),
            timing=STEPS if self.restarts else COMMANDS,
            metrics=metrics,
        )

    def _by_arm(self, of: Callable[[Ran], float | None]) -> dict[str, list[float]]:
        """Return a number of each arm, round by round, where every round has it."""
        columns = {arm: [of(one[arm]) for one in self.rounds] for arm in self.arms}
        return {
            arm: [each for each in found if each is not None] for arm, found in columns.items() if None not in found
        }
