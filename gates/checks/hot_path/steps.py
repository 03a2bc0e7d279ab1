"""What was seen of steps of training: where their time went, what was read back to the host, and by which lines."""

import itertools
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gates.child.process import ProcessRun
from gates.measuring.interval import NEEDED, rank
from gates.model import Location, Model

WARM_UP, WARM_UP_SHARE = 2, 0.15
BLOCKS = 12
LEAST = NEEDED + 1  # steps that are measured, of which one may be left out
PHASES = ("data", "forward", "backward", "optimizer", "evaluation", "other")
FLOOR_S = 0.002  # of a step on a CPU: a small loader's own machinery, not a wait
WAITS, EMPTIES = ("synchronize", "wait"), ("empty_cache",)
OF_TORCH = ("torch.amp", "torch.cuda.amp", "torch.optim")
NOT_OF_TORCH = ("torch.optim.lr_scheduler",)  # it reads what it was given


class HotRead(Model):
    """How often a line read a value, waited for the device or emptied its cache in one step; see `HostRead`."""

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


class Seen(Model):
    """In how many samples of a phase the training thread was at one line."""

    phase: str
    location: Location | None = None
    count: int


class HotStep(Model):
    """One step: the seconds in each phase, the reads and the lines.

    `late` is how long the thread had to wait for a processor: in batches, and in all.
    """

    seconds: float
    phases: dict[str, float]
    late: tuple[float, float] = (0.0, 0.0)
    device: str = ""
    reads: tuple[HotRead, ...] = ()
    lines: tuple[Seen, ...] = ()

    @property
    def stall(self) -> float:
        """Return the seconds in which batches were waited for; on a CPU without what any loader takes.

        What was waited for a processor, which others had, is no wait for a batch.
        """
        waited = max(0.0, self.phases.get("data", 0.0) - self.late[0])
        return max(0.0, waited - FLOOR_S) if self.device == "cpu" else waited

    @property
    def own_seconds(self) -> float:
        """Return what the step would have taken with a processor of its own."""
        return max(0.0, self.seconds - self.late[1])


Seconds = Callable[[HotStep], float]


class Loader(Model):
    """A loader of batches: how many processes it has, and where the project makes the samples."""

    workers: int
    made: Location | None = None


class HotRun(Model):
    """One process in which steps were run."""

    process: ProcessRun | None = None
    problem: str = ""
    error: str = ""
    crash: Location | None = None
    troubles: tuple[str, ...] = ()
    complete: bool = False
    stopped: bool = False
    steps: tuple[HotStep, ...] = ()
    loaders: tuple[Loader, ...] = ()

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

    index: int
    name: str
    runs: tuple[HotRun, ...]

    @property
    def steps(self) -> tuple[HotStep, ...]:
        """Return the measured steps of all processes."""
        return tuple(step for run in self.runs for step in run.measured)

    @property
    def enough(self) -> bool:
        """Return whether each process came to its end and showed as many steps as it takes to tell."""
        return all(run.complete and len(run.measured) >= LEAST for run in self.runs)

    def phase(self, name: str) -> Share:
        """Return the share of a phase."""
        return _share([run.measured for run in self.runs], lambda s: s.phases.get(name, 0.0), lambda s: s.seconds)

    def stall(self) -> Share:
        """Return the share of waiting for batches, without the longest wait of each process: one may be anybody's."""
        runs = [_but_longest(run.measured) for run in self.runs]
        return _share(runs, lambda step: step.stall, lambda step: step.own_seconds)

    def line_of(self, phase: str) -> Location | None:
        """Return the line that most of a phase was seen on."""
        lines: Counter[Location] = Counter()
        for step in self.steps:
            lines.update({seen.location: seen.count for seen in step.lines if seen.phase == phase and seen.location})
        return lines.most_common(1)[0][0] if lines else None

    def loader(self) -> Loader | None:
        """Return the loader with processes of its own whose samples the project makes, if there is one."""
        return next((each for run in self.runs for each in run.loaders if each.workers and each.made), None)


@dataclass(frozen=True)
class Line:
    """What one line does at a step: the median, and the share of the steps in which it does it at all."""

    read: HotRead
    each: int
    often: float

    @property
    def where(self) -> str:
        """Return the line, or the module that has no line of the project behind it."""
        return str(self.read.location or self.read.by or "an unknown line")


def lines_of(steps: Iterable[HotStep], aspect: str) -> list[Line]:
    """Return each line that does something, those that do it at each step first."""
    steps = tuple(steps)
    counts: dict[HotRead, Counter[int]] = {}
    for i, step in enumerate(steps):
        for read in step.reads:
            if read.aspect == aspect:
                counts.setdefault(read.model_copy(update={"count": 1}), Counter())[i] += read.count
    lines = [
        Line(read, statistics.median_low(found.get(i, 0) for i in range(len(steps))), len(found) / len(steps))
        for read, found in counts.items()
    ]
    return sorted(lines, key=lambda line: (-line.each, -line.often, line.where, line.read.call))


def at_each(steps: Iterable[HotStep], aspect: str) -> int:
    """Return how often a step does something, by the median: once in a while does not count."""
    totals = [sum(r.count for r in step.reads if r.aspect == aspect and counts(r, step)) for step in steps]
    return statistics.median_low(totals) if totals else 0


def counts(read: HotRead, step: HotStep) -> bool:
    """Return whether a read is the project's, of something that lies, or would lie, on an accelerator."""
    return not read.of_torch and not (read.device == "cpu" and step.device != "cpu")


def _share(runs: Sequence[tuple[HotStep, ...]], part: Seconds, whole: Seconds) -> Share:
    """Return the share of a part of each step in the whole; blocks of steps say how sure it is."""
    steps = tuple(step for run in runs for step in run)
    ordered = sorted(_ratio(block, part, whole) for run in runs for block in _blocks(run))
    value = _ratio(steps, part, whole)
    k, _ = rank(len(ordered))
    low, high = (ordered[k - 1], ordered[-k]) if k else (0.0, 1.0)
    return Share(value, min(low, value), max(high, value), len(steps))


def _but_longest(steps: tuple[HotStep, ...]) -> tuple[HotStep, ...]:
    longest = max(range(len(steps)), key=lambda i: steps[i].stall, default=0)
    return steps[:longest] + steps[longest + 1 :]


def _blocks(steps: tuple[HotStep, ...]) -> list[tuple[HotStep, ...]]:
    number = min(BLOCKS, len(steps))
    ends = [round(i * len(steps) / number) for i in range(number + 1)] if number else []
    return [steps[a:b] for a, b in itertools.pairwise(ends)]


def _ratio(steps: tuple[HotStep, ...], part: Seconds, whole: Seconds) -> float:
    time = sum(map(whole, steps))
    return min(1.0, sum(map(part, steps)) / time) if time else 0.0
