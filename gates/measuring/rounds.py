"""The plan of a measurement, and what its rounds give, gathered arm by arm until it is samples."""

from collections.abc import Callable, Mapping
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
    """Raw values by metric and arm; a round that is not whole is left out."""

    arms: tuple[str, ...]
    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    copies: list[tuple[float, float]] = field(default_factory=list)
    cpu_copies: list[tuple[float, float]] = field(default_factory=list)
    stretch: dict[str, list[float]] = field(default_factory=dict)
    switches: dict[str, list[int]] = field(default_factory=dict)
    whole: dict[str, list[float]] = field(default_factory=dict)
    digests: dict[str, set[str]] = field(default_factory=dict)
    restarts: list[int] = field(default_factory=list)

    @property
    def pairs(self) -> int:
        """Return how many whole rounds there are."""
        return len(next(iter(self.values.values()), {}).get(self.arms[0], ()))

    def take(self, ran: Mapping[str, Ran], restart: int | None) -> None:
        """Take a round of segments of one start, or of commands, each of which was started for itself."""
        of = "run" if restart is None else "step"
        if restart is not None:
            self.restarts.append(restart)
        for arm in self.arms:
            one = ran[arm]
            self._add(f"{of}_time_s", arm, one.step_s)
            if one.cpu_s is not None and one.device_s is None:
                self._add(f"{of}_cpu_time_s", arm, one.cpu_s / one.ran)
                self.stretch.setdefault(arm, []).append(one.wall_s / max(one.cpu_s, 1e-9))
            if one.peak_memory_bytes is not None:
                self._add("peak_memory_bytes", arm, one.peak_memory_bytes)
            if one.passed_s is not None and one.device_s is None:
                self.whole.setdefault(arm, []).append(one.passed_s / one.wall_s)
            if one.items is not None:
                self._add("items_per_s", arm, one.items / (one.step_s * one.ran))
            if one.switches is not None:
                self.switches.setdefault(arm, []).append(one.switches)
            if one.digest:
                self.digests.setdefault(arm, set()).add(one.digest)

    def take_copied(self, own: Ran, copy: Ran) -> None:
        """Take a round of the baseline and its copy."""
        self.copies.append((own.step_s, copy.step_s))
        if own.cpu_s and copy.cpu_s and own.device_s is None:
            self.cpu_copies.append((own.cpu_s / own.ran, copy.cpu_s / copy.ran))

    def take_memory(self, collected: Mapping[str, Collected], ended: Mapping[str, Ended | None]) -> None:
        """Take what the processes of one start say of their memory, and what the system says."""
        peaks = [collected[arm].peak_memory_bytes for arm in self.arms]
        if all(peaks):
            for arm, peak in zip(self.arms, peaks, strict=True):
                self._add("peak_memory_bytes", arm, peak or 0.0)
        ends = [ended.get(arm) for arm in self.arms]
        if all(ends):
            for arm, end in zip(self.arms, ends, strict=True):
                self._add("process_peak_bytes", arm, float(end.peak_memory_bytes if end else 0))

    def samples(self, device: Device, environment: Mapping[str, str], settings: Mapping[str, str]) -> Samples:
        """Return what was gathered as samples; a metric that some arm has too few of is left out."""
        metrics = {}
        for name, by_arm in self.values.items():
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
            timing=COMMANDS if "run_time_s" in self.values else STEPS,
            metrics=metrics,
        )

    def _add(self, metric: str, arm: str, value: float) -> None:
        self.values.setdefault(metric, {}).setdefault(arm, []).append(value)
