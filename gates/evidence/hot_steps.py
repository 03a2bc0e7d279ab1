"""What was seen of steps of training: where their time went, what was read back to the host, and by which lines."""

import itertools
import statistics
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gates.interval import NEEDED, rank
from gates.model import Location, Model
from gates.process import ProcessRun

WARM_UP, WARM_UP_SHARE = 2, 0.15
BLOCKS = 12
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
    """One step: the seconds in each phase, the reads, the lines, and how often the device had nothing to do."""

    seconds: float
    phases: dict[str, float]
    device: str = ""
    reads: tuple[HotRead, ...] = ()
    lines: tuple[Seen, ...] = ()
    idle: tuple[int, int] = (0, 0)

    @property
    def stall(self) -> float:
        """Return the seconds in which batches were waited for; on a CPU without what any loader takes."""
        waited = self.phases.get("data", 0.0)
        return max(0.0, waited - FLOOR_S) if self.device == "cpu" else waited


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
        return all(run.complete and len(run.measured) >= NEEDED for run in self.runs)

    def share(self, of: Callable[[HotStep], float]) -> Share:
        """Return the share of what is taken from each step in its time; blocks of steps say how sure it is."""
        blocks = [_ratio(block, of) for run in self.runs for block in _blocks(run.measured)]
        k, _ = rank(len(blocks))
        ordered, value = sorted(blocks), _ratio(self.steps, of)
        low, high = (ordered[k - 1], ordered[-k]) if k else (0.0, 1.0)
        return Share(value, min(low, value), max(high, value), len(self.steps))

    def phase(self, name: str) -> Share:
        """Return the share of a phase."""
        return self.share(lambda step: step.phases.get(name, 0.0))

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


def _blocks(steps: tuple[HotStep, ...]) -> list[tuple[HotStep, ...]]:
    number = min(BLOCKS, len(steps))
    ends = [round(i * len(steps) / number) for i in range(number + 1)] if number else []
    return [steps[a:b] for a, b in itertools.pairwise(ends)]


def _ratio(steps: Iterable[HotStep], of: Callable[[HotStep], float]) -> float:
    steps = tuple(steps)
    whole = sum(step.seconds for step in steps)
    return min(1.0, sum(map(of, steps)) / whole) if whole else 0.0
