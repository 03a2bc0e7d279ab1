"""How samples were taken: all beside them that a verdict needs, and the ledger of earlier attempts."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import Field

from gates.child.process import ProcessRun
from gates.measuring.machine import Gpu, Machine
from gates.measuring.samples import Collected, Device, Ended, Metric, Ran, Samples
from gates.model import CommandRecord, Model
from gates.project.files import append
from gates.words import counted

NAME = Path(".gates", "attempts.jsonl")


class Attempt(Model):
    """One attempt to answer a criterion; `missed` measures failed by it, `drawn` is the digest of times handed over."""

    key: str
    at: str
    ended: str
    pairs: int
    unfit: tuple[str, ...] = ()
    restarts: tuple[int, ...] = ()
    split: int = 1
    one_processor: bool = False
    metrics: dict[str, Metric] = Field(default_factory=dict)
    missed: tuple[str, ...] = ()
    drawn: str = ""


class Ledger:
    """The attempts of a project, a line each, in a file that git does not see."""

    def __init__(self, root: Path) -> None:
        self._path = root / NAME

    def append(self, attempt: Attempt) -> str:
        """Add an attempt; return why it is not written, where that is so."""
        return append(self._path, attempt.model_dump_json())

    def read(self) -> tuple[list[Attempt], str]:
        """Return all attempts, at whatever, and why these may not be all, where that is so."""
        attempts: list[Attempt] = []
        try:
            lines = self._path.read_text(encoding="utf-8", errors="replace").splitlines()
            attempts.extend(map(Attempt.model_validate_json, lines))
        except (FileNotFoundError, NotADirectoryError):
            return [], ""
        except OSError as error:
            return [], f"{self._path} cannot be read: {error.strerror or error}"
        except ValueError:
            return attempts, f"{self._path} has a line that is no attempt: remove it, or the file"
        return attempts, ""


def pooled(name: str, now: Metric, earlier: Sequence[Attempt]) -> tuple[Metric, tuple[Attempt, ...]]:
    """Return the samples of a metric of all attempts on a machine that was fit, the earlier ones first."""
    fit = (one for one in earlier if not one.unfit and name in one.metrics)
    used = tuple(one for one in fit if one.metrics[name].arms.keys() == now.arms.keys())
    arms = {
        arm: (*(value for one in used for value in one.metrics[name].arms[arm]), *values)
        for arm, values in now.arms.items()
    }
    return now.model_copy(update={"arms": arms}), used


End = Literal["decided", "all pairs", "budget"]
SPLIT = 6  # of a pair on the CPU, where steps are short: noise stays for the whole of a segment, however long that is


class Taken(Model):
    """How pairs were taken in turn.

    Where steps are short each pair was split into `split` ones: these are what `pairs` and `most` count. `restarts`
    tells for each which start of the processes it came from, `copies` are the baseline's seconds beside its copy's,
    `stretch` wall over CPU time, `whole` time by the gate's clock over that by the worker's, `waiting` the share of the
    time in which something waited for a processor.
    """

    baseline: str
    clock: Literal["wall", "cpu", "either"]
    same_result: bool = False
    threads: int
    most: int
    split: int = Field(default=1, ge=1)
    one_processor: bool = False
    budget_s: float
    ended: End
    pairs: int
    restarts: tuple[int, ...] = ()
    planned_starts: int = 0
    copies: tuple[tuple[float, float], ...] = ()
    cpu_copies: tuple[tuple[float, float], ...] = ()
    stretch: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    switches: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    whole: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    digests: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    waiting: float | None = None
    before: Machine
    after: Machine
    gpu: Gpu | None = None
    measured_s: float
    started_s: float = 0.0

    @property
    def starts(self) -> int:
        """Return how many starts of the processes there are pairs from; 0 where each pair has its own."""
        return len(set(self.restarts))


STEPS = "segments of steps, arms in turn, one step discarded after each switch; timed by the gate's workers"
COMMANDS = "each command from its start to its end, arms in turn, the first round not counted; timed by the gate"


@dataclass
class Gathered:
    """What the arms told in whole rounds; `copied` of the baseline and its copy, `memory` at each start, by metric."""

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
        told = {"environment": dict(environment), "settings": dict(settings)}
        timing = STEPS if self.restarts else COMMANDS
        return Samples(schema="gates.samples/1", device=device, timing=timing, metrics=metrics, **told)

    def _by_arm(self, of: Callable[[Ran], float | None]) -> dict[str, list[float]]:
        """Return a number of each arm, round by round, where every round has it."""
        columns = {arm: [of(one[arm]) for one in self.rounds] for arm in self.arms}
        whole = ((arm, found) for arm, found in columns.items() if None not in found)
        return {arm: [each for each in found if each is not None] for arm, found in whole}


def digest_of(facts: object) -> str:
    """Return the digest of some facts."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()


class MeasurementRun(Model):
    """One measurement on one device: its samples, or why there are none; `elsewhere` names its bundle, if any."""

    id: str
    device: str
    process: ProcessRun | None = None
    samples: Samples | None = None
    problem: str = ""
    raw: str | None = None
    taken: Taken | None = None
    earlier: tuple[Attempt, ...] = ()
    ledger_problem: str = ""
    elsewhere: str = ""

    @property
    def ended(self) -> str:
        """Return how it ended, in words."""
        if self.taken:
            return f"{self.taken.ended}, after {counted(self.taken.pairs, 'pair')}"
        return self.process.ended if self.process else self.problem

    @property
    def duration_s(self) -> float:
        """Return how long it took."""
        if self.taken:
            return round(self.taken.measured_s + self.taken.started_s, 3)
        return self.process.duration_s if self.process else 0

    def recorded(self, purpose: str, argv: tuple[str, ...]) -> CommandRecord:
        """Return the record of its command."""
        return CommandRecord(purpose=purpose, argv=argv, ended=self.ended, duration_s=self.duration_s)
