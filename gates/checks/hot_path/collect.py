"""The hot path: what trains is run in a process of its own; what its steps wait for and read, and at which lines."""

import itertools
import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from gates.child.probing import Entry, Probe, Probed
from gates.evidence._probes import Probes, readable
from gates.measuring.interval import NEEDED, rank
from gates.model import Location, Model
from gates.task.probes import HotPath

WARM_UP, WARM_UP_SHARE = 2, 0.15
BLOCKS = 12
LEAST = NEEDED + 1  # steps that are measured, of which one may be left out
FLOOR_S = 0.002  # of a step on a CPU: a small loader's own machinery, not a wait
WAITS, EMPTIES = ("synchronize", "wait"), ("empty_cache",)
OF_TORCH = ("torch.amp", "torch.cuda.amp", "torch.optim")
NOT_OF_TORCH = ("torch.optim.lr_scheduler",)  # it reads what it was given


class HotRead(Model):
    """How often a line read a value, waited for the device or emptied its cache in one step; see `Read`."""

    call: str
    location: Location | None = None
    by: str = ""
    device: str = ""
    count: int = 1

    @property
    def aspect(self) -> str:
        """Return which limit it counts for."""
        last = self.call.rpartition(".")[2]
        return "synchronisations" if last in WAITS else "empty-cache" if last in EMPTIES else "host-reads"

    @property
    def of_torch(self) -> bool:
        """Return whether torch itself reads, and not what was asked of it: a scaler its flags, an optimizer a count."""
        return self.by.startswith(OF_TORCH) and not self.by.startswith(NOT_OF_TORCH)

    def counts_on(self, device: str) -> bool:
        """Return whether it is the project's, of something that lies, or would lie, on an accelerator."""
        return not self.of_torch and not (self.device == "cpu" and device != "cpu")


class Line(Model):
    """In how many looks at a step it waited for a batch at one line."""

    location: Location
    count: int


class HotStep(Model):
    """One step: its seconds, those in which a batch was waited for, the reads, and the lines of the waits."""

    seconds: float
    waited: float
    device: str = ""
    reads: tuple[HotRead, ...] = ()
    lines: tuple[Line, ...] = ()

    @property
    def stall(self) -> float:
        """Return the seconds in which batches were waited for; on a CPU without what any loader takes."""
        return max(0.0, self.waited - FLOOR_S) if self.device == "cpu" else self.waited


class HotRun(Model):
    """One process in which steps were run."""

    problem: str = ""
    crash: Location | None = None
    complete: bool = False
    steps: tuple[HotStep, ...] = ()

    @property
    def measured(self) -> tuple[HotStep, ...]:
        """Return the steps without the first ones, in which caches fill and workers start."""
        return self.steps[max(WARM_UP, round(WARM_UP_SHARE * len(self.steps))) :]

    @property
    def device(self) -> str:
        """Return the kind of device that the parameters lie on."""
        return Counter(step.device for step in self.measured).most_common(1)[0][0] if self.measured else ""


@dataclass(frozen=True)
class Share:
    """The share of the time that something takes, and its interval over blocks of steps."""

    value: float
    low: float
    high: float
    n: int

    @property
    def gain(self) -> float | None:
        """Return how many times as fast a step would be without it, at most."""
        return 1 / (1 - self.value) if self.value < 1 else None

    def __str__(self) -> str:
        return f"{self.value:.1%} [{self.low:.1%}, {self.high:.1%}]"


class HotSeen(Model):
    """All that was seen of one callable: one process, and more of them where the first did not tell enough."""

    runs: tuple[HotRun, ...]

    @property
    def steps(self) -> tuple[HotStep, ...]:
        """Return the measured steps of all processes."""
        return tuple(step for run in self.runs for step in run.measured)

    @property
    def enough(self) -> bool:
        """Return whether each process came to its end and showed as many steps as it takes to tell."""
        return all(run.complete and len(run.measured) >= LEAST for run in self.runs)

    def stall(self) -> Share:
        """Return the share of waiting for batches, without the longest wait of each process: one may be anybody's.

        Blocks of steps say how sure it is.
        """
        runs = [_but_longest(run.measured) for run in self.runs]
        steps = tuple(step for run in runs for step in run)
        ordered = sorted(_stalled(block) for run in runs for block in _blocks(run))
        value = _stalled(steps)
        k, _ = rank(len(ordered))
        low, high = (ordered[k - 1], ordered[-k]) if k else (0.0, 1.0)
        return Share(value, min(low, value), max(high, value), len(steps))

    def line(self) -> Location | None:
        """Return the line that most waits for batches were seen at."""
        lines: Counter[Location] = Counter()
        for step in self.steps:
            lines.update({each.location: each.count for each in step.lines})
        return lines.most_common(1)[0][0] if lines else None


@dataclass(frozen=True)
class Reading:
    """What one line does at a step: the median, and the share of the steps in which it does it at all."""

    read: HotRead
    each: int
    often: float

    @property
    def where(self) -> str:
        """Return the line, or the module that has no line of the project behind it."""
        return str(self.read.location or self.read.by or "an unknown line")


def readings_of(steps: Iterable[HotStep], aspect: str) -> list[Reading]:
    """Return each line that does something, those that do it at each step first."""
    steps = tuple(steps)
    counts: dict[HotRead, Counter[int]] = {}
    for i, step in enumerate(steps):
        for read in step.reads:
            if read.aspect == aspect:
                counts.setdefault(read.model_copy(update={"count": 1}), Counter())[i] += read.count
    lines = [
        Reading(read, statistics.median_low(found.get(i, 0) for i in range(len(steps))), len(found) / len(steps))
        for read, found in counts.items()
    ]
    return sorted(lines, key=lambda line: (-line.each, -line.often, line.where, line.read.call))


def at_each(steps: Iterable[HotStep], aspect: str) -> int:
    """Return how often a step does something, by the median: once in a while does not count."""
    totals = [sum(r.count for r in step.reads if r.aspect == aspect and r.counts_on(step.device)) for step in steps]
    return statistics.median_low(totals) if totals else 0


def _but_longest(steps: tuple[HotStep, ...]) -> tuple[HotStep, ...]:
    longest = max(range(len(steps)), key=lambda i: steps[i].stall, default=0)
    return steps[:longest] + steps[longest + 1 :]


def _blocks(steps: tuple[HotStep, ...]) -> list[tuple[HotStep, ...]]:
    number = min(BLOCKS, len(steps))
    ends = [round(i * len(steps) / number) for i in range(number + 1)] if number else []
    return [steps[a:b] for a, b in itertools.pairwise(ends)]


def _stalled(steps: tuple[HotStep, ...]) -> float:
    time = sum(step.seconds for step in steps)
    return min(1.0, sum(step.stall for step in steps) / time) if time else 0.0


RUNS = 3
SHARE = 0.8  # of the time limit, after which a run stops by itself


class HotPaths(Probes[HotPath, HotSeen]):
    """The hot paths of a task, step by step."""

    key = "hot_paths"
    method = "what trains, in processes of its own, with the time and the reads of each step"

    @classmethod
    def look(cls, probe: Probe, name: str, part: HotPath, limit_s: float) -> HotSeen:
        """Run a callable, and again while one more run may settle whether it waits too long for batches."""
        asked = {"call": part.call, "args": part.args, "steps": part.steps, "seconds": SHARE * limit_s}
        seen = HotSeen(runs=())
        while len(seen.runs) < RUNS:
            told = probe.ask("recorder.hot_path", f"{name}-{len(seen.runs) + 1}", asked, limit_s, threads=None)
            seen = HotSeen(runs=(*seen.runs, _read(told)))
            if not seen.enough or not _unclear(seen, part):
                break
        return seen


def _read(told: Probed) -> HotRun:
    base = HotRun(problem=told.trouble, crash=told.place, complete=not told.trouble)
    return readable(base, lambda: {"steps": tuple(map(_step, told.of("step")))})


def _step(entry: Entry) -> HotStep:
    return HotStep.model_validate({name: entry[name] for name in HotStep.model_fields})


def _unclear(seen: HotSeen, path: HotPath) -> bool:
    """Return whether the share of the waiting lies neither below nor above its limit with its whole interval."""
    limit, share = path.limits.stall_share, seen.stall()
    return limit is not None and share.low <= limit < share.high
