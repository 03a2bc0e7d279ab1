"""What a step of training waits for, and where it reads back to the host: each step of a run is taken apart."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from statistics import median, median_low
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field

from gates.check import Said
from gates.child.probing import Probe
from gates.evidence._probes import Aspect, ProbeCheck, Probes, Seen, readable, unknown
from gates.measuring.interval import LEVEL, NEEDED, Estimate, rank
from gates.model import Level, Location, Model, Outcome
from gates.task.types import Located, OneCall

Count = Annotated[float, Field(ge=0)]


class Limits(Located):
    """The most that a step may do; what is left out is only advised.

    `host_reads` and `synchronisations`, with emptied caches, count what happens at each step, not once in a while, as a
    log every ten steps; `stall_share` is the share of the time that is spent waiting for batches.
    """

    host_reads: Count | None = None
    synchronisations: Count | None = None
    stall_share: Annotated[float, Field(ge=0, le=1)] | None = None


class HotPath(OneCall):
    """A callable that trains some steps; it is run in a process of its own, and each step is taken apart.

    It is stopped after `steps` steps of an optimizer, if it does not end before. `on` is the kind of device that the
    steps must be seen on, `level` how binding its limits are.
    """

    key: ClassVar[str] = "hot_paths"

    steps: Annotated[int, Field(ge=10, le=1000)] = 50
    on: Literal["any", "cpu", "cuda", "xpu", "mps"] = "any"
    limits: Limits = Limits()
    level: Level = Level.MUST


WARM_UP, WARM_UP_SHARE = 2, 0.15
BLOCKS = 12
LEAST = NEEDED + 1  # steps that are measured, of which one may be left out
FLOOR_S = 0.002  # of a step on a CPU: a small loader's own machinery, not a wait
WAITS = ("synchronize", "wait", "empty_cache")  # the memory must be asked of the driver again, which waits
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
        return "synchronisations" if self.call.rpartition(".")[2] in WAITS else "host_reads"

    @property
    def of_torch(self) -> bool:
        """Return whether torch itself reads, and not what was asked of it: a scaler its flags, an optimizer a count."""
        return self.by.startswith(OF_TORCH) and not self.by.startswith(NOT_OF_TORCH)

    def counts_on(self, device: str) -> bool:
        """Return whether it is the project's, of something that lies, or would lie, on an accelerator."""
        return not self.of_torch and not (self.device == "cpu" and device != "cpu")


class HotStep(Model):
    """One step: its seconds, those in which a batch was waited for, the reads, and how many looks saw it wait where."""

    seconds: float
    waited: float
    device: str = ""
    reads: tuple[HotRead, ...] = ()
    lines: tuple[tuple[Location, int], ...] = ()

    @property
    def stall(self) -> float:
        """Return the seconds in which batches were waited for; on a CPU without what any loader takes."""
        return max(0.0, self.waited - FLOOR_S) if self.device == "cpu" else self.waited


class HotSeen(Seen):
    """The steps of one callable."""

    run: tuple[HotStep, ...] = ()

    @property
    def steps(self) -> tuple[HotStep, ...]:
        """Return the steps without the first ones, in which caches fill and workers start."""
        return self.run[max(WARM_UP, round(WARM_UP_SHARE * len(self.run))) :]

    @property
    def device(self) -> str:
        """Return the kind of device that the parameters lie on."""
        return Counter(step.device for step in self.steps).most_common(1)[0][0] if self.steps else ""

    @property
    def enough(self) -> bool:
        """Return whether it came to its end and showed as many steps as it takes to tell."""
        return not self.problem and len(self.steps) >= LEAST

    def stall(self) -> Estimate:
        """Return the share of waiting over blocks of steps, without the longest wait, which may be by chance."""
        longest = max(range(len(self.steps)), key=lambda i: self.steps[i].stall, default=0)
        steps = self.steps[:longest] + self.steps[longest + 1 :]
        ends = [i * len(steps) // number for i in range(number + 1)] if (number := min(BLOCKS, len(steps))) else []
        shares, value = sorted(_stalled(steps[a:b]) for a, b in itertools.pairwise(ends)), _stalled(steps)
        low, high = (shares[k - 1], shares[-k]) if (k := rank(len(shares))[0]) else (0.0, 1.0)
        return Estimate(value, min(low, value), max(high, value), len(steps), LEVEL)

    def line(self) -> Location | None:
        """Return the line that most waits for batches were seen at."""
        lines = sum((Counter(dict(step.lines)) for step in self.steps), Counter[Location]())
        return lines.most_common(1)[0][0] if lines else None


class Reading(NamedTuple):
    """What one line does at a step: the median, and the share of the steps in which it does it at all."""

    read: HotRead
    each: int
    often: float

    @property
    def where(self) -> str:
        """Return the line, or the module that has no line of the project behind it."""
        return str(self.read.location or self.read.by or "an unknown line")


def readings_of(steps: Sequence[HotStep], aspect: str) -> list[Reading]:
    """Return each line that does something, those that do it at each step first."""
    counts = defaultdict[HotRead, Counter[int]](Counter)
    for i, read in ((i, read) for i, step in enumerate(steps) for read in step.reads if read.aspect == aspect):
        counts[read.model_copy(update={"count": 1})][i] += read.count
    n = len(steps)
    lines = [Reading(read, median_low(found[i] for i in range(n)), len(found) / n) for read, found in counts.items()]
    return sorted(lines, key=lambda line: (-line.each, -line.often, line.where, line.read.call))


def _stalled(steps: Sequence[HotStep]) -> float:
    time = sum(step.seconds for step in steps)
    return min(1.0, sum(step.stall for step in steps) / time) if time else 0.0


class HotPaths(Probes[HotPath, HotSeen]):
    """The hot paths of a task, step by step."""

    key = "hot_paths"
    method = "what trains, in a process of its own, with the time and the reads of each step"

    @classmethod
    def look(cls, probe: Probe, name: str, part: HotPath, limit_s: float) -> HotSeen:
        """Run a callable in a process of its own."""
        asked = {"call": part.call, "args": part.args, "steps": part.steps}
        told = probe.ask("recorder.hot_path", name, asked, limit_s, env={})
        return readable(HotSeen(problem=told.trouble, place=told.place), lambda: {"run": told.of("step")})


DEFAULT_STALL = 0.1
PERCENT = "{:.1%}".format


class Kind(NamedTuple):
    """What a step may do too often, by its limit in the task, and its words."""

    limit: str
    title: str
    does: str
    impact: str
    remedy: str


COUNTED = (
    Kind(
        "host_reads",
        "Reads no value back to the host at each step",
        "reads a value back to the host",
        "An accelerator must have done all that it was asked for before a value can be read; until then nothing new is "
        "asked of it.",
        "Keep the tensor (`.detach()`), and read it once in a while, all values at once.",
    ),
    Kind(
        "synchronisations",
        "Waits for no device at each step",
        "waits for the device",
        "The device has nothing to do from then until it is asked for more.",
        "Take it out of the loop. To time a step, use events and wait once at the end.",
    ),
)
STALL = Kind(
    "stall_share",
    "Does not wait for batches",
    "waits for batches",
    "The device has nothing to do until the batch is there.",
    "Make batches ahead, in processes of their own (`num_workers`, `prefetch_factor`), or make them cheaper.",
)


def _judged(kind: Kind, path: HotPath, seen: HotSeen) -> Iterator[Said]:
    device = seen.device
    if seen.problem:
        yield unknown(f"{seen.problem} (after {len(seen.run)} steps)", location=seen.place)
    elif not seen.enough:
        made = len(seen.run)
        needed = f"at least {LEAST} after the first {max(WARM_UP, round(WARM_UP_SHARE * made))}"
        yield unknown(f"it made {made} steps, and {needed} are needed" if made else "no optimizer of torch stepped")
    elif path.on not in {"any", device}:
        yield unknown(f"its steps ran on {device or 'no device'}, and must be seen on {path.on}")
    else:
        yield from [_stall(path, seen)] if kind is STALL else _counted(kind, path, seen)


def _counted(kind: Kind, path: HotPath, seen: HotSeen) -> Iterator[Said]:
    limit, steps, device = getattr(path.limits, kind.limit) or 0.0, len(seen.steps), seen.device
    lines = [line for line in readings_of(seen.steps, kind.limit) if line.read.counts_on(device)]
    counted = [[r.count for r in s.reads if r.aspect == kind.limit and r.counts_on(s.device)] for s in seen.steps]
    total, often = median_low(map(sum, counted)), [line for line in lines if line.each]
    expected = f"{kind.does} at most {limit:g} times a step"
    if total > limit:
        for line in often or lines:
            told = f"{_each(line, kind, device)} ({total} at each step in all, over {steps} steps)"
            subject, actual = f"at {line.where} ({line.read.call})", f"{total} at each step"
            yield Said(Outcome.FAILED, told, actual, line.read.location, expected, kind.impact, kind.remedy, subject)
        return
    rare = "; ".join(f"{line.where} does on {line.often:.0%} of them" for line in lines[len(often) :][:3])
    here = device != "cpu" or kind.limit == "host_reads"
    more = (rare, "" if here else "what is done only on an accelerator did not run here")
    told = "; ".join(filter(None, (f"{kind.does} {total} times at each of {steps} steps on {device}", *more)))
    yield Said(Outcome.PASSED, told, f"{total} at each step", expected=expected)


def _each(line: Reading, kind: Kind, device: str) -> str:
    often = f"{line.each} times " if line.each > 1 else ""
    when = f"{often}at each step" if line.each else f"at {line.often:.0%} of the steps"
    would = ", for which an accelerator would be waited for" if device == "cpu" and kind.limit == "host_reads" else ""
    return f"{line.where} {kind.does} {when} (`{line.read.call}`){would}"


def _stall(path: HotPath, seen: HotSeen) -> Said:
    asked, share = path.limits.stall_share, seen.stall()
    limit, shown = DEFAULT_STALL if asked is None else asked, share.said(PERCENT)
    floor = f", beyond {FLOOR_S * 1000:g} ms a step that any loader may take" if seen.device == "cpu" else ""
    told = f"{shown} of the time of a step is spent waiting for batches{floor} ({share.n} steps)"
    most = f"{STALL.does} at most {limit:.0%} of the time"
    if share.low > limit:
        at = seen.line()
        told = f"{told}; most of it at {at}"
        if share.value < 1:
            told = f"{told}; without it a step would be at most {1 / (1 - share.value):.2f} times as fast"
        return Said(Outcome.FAILED, told, shown, at, most, STALL.impact, STALL.remedy)
    if share.high > limit:
        remedy = "Ask for more 'steps', or measure on a machine with less else to do."
        return unknown(f"{told}, and the limit of {limit:.0%} lies in between", shown, remedy=remedy)
    return Said(Outcome.PASSED, told, shown, expected=most)


def _summary(seen: HotSeen) -> str:
    if not seen.enough:
        return "Too little was seen of it; see the findings."
    step = median(each.seconds for each in seen.steps)
    took = f"{step:.3g} s" if step >= 1 else f"{step * 1e3:.3g} ms"
    at = f", most of it at {line}" if (line := seen.line()) and seen.stall().value else ""
    steps = f"{len(seen.steps)} steps of {took} (median) on {seen.device}; the first ones are left out."
    return f"{steps} Waiting for batches takes {seen.stall().said(PERCENT)} of the time{at}."


def _rows(path: HotPath, seen: HotSeen, _said: Said) -> Iterator[tuple[str, ...]]:
    for kind in COUNTED if seen.enough else ():
        for line in readings_of(seen.steps, kind.limit):
            whose = "torch's own" if line.read.of_torch else "the project's"
            yield str(line.each), f"{line.often:.0%}", line.read.call, line.where, whose, path.name


def _aspect(kind: Kind) -> Aspect[HotPath, HotSeen]:
    """Return the aspect of a kind; what the task sets no limit for is only advised."""

    def level(path: HotPath) -> Level | None:
        return None if getattr(path.limits, kind.limit) is None else path.level

    name = kind.limit.removesuffix("_share").replace("_", "-")
    return Aspect(lambda path: f"{kind.title}: {path.name}", lambda path, seen: _judged(kind, path, seen), name, level)


ASPECTS = tuple(map(_aspect, (*COUNTED, STALL)))
CHECK = ProbeCheck(
    name="hot_path",
    order=20,
    rule="PF005",
    evidence=HotPaths,
    aspects=lambda _path: ASPECTS,
    promise="its steps wait for nothing avoidable",
    title="Hot Paths",
    text="By line, what a step reads; what torch reads by itself is not counted.",
    columns=("At each step", "Share of steps", "Read", "Line", "Whose", "Call"),
    rows=_rows,
    facts=lambda _path, seen: _summary(seen),
    doubt="not known what its steps wait for",
    remedy="Make the callable train steps to its end, with an optimizer of torch.",
).check()
