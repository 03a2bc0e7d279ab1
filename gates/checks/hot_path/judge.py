"""The part of the performance gate on the hot path: what does a step of training wait for, and where does it read?"""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from gates.check import Said
from gates.checks.hot_path.collect import (
    FLOOR_S,
    LEAST,
    WARM_UP,
    HotPaths,
    HotSeen,
    Reading,
    at_each,
    readings_of,
)
from gates.evidence._probes import Aspect, ProbeCheck, unknown
from gates.model import Level, Outcome, RuleText
from gates.report import Section
from gates.task.probes import HotPath

RULE = RuleText(
    id="PF005",
    title="No avoidable host syncs",
    meaning="It fails where the median step reads back, synchronises or empties the cache more than "
    "allowed. It also fails where it waits too long for batches.",
)
LONGEST = 20
DEFAULT_STALL = 0.1


@dataclass(frozen=True)
class Kind:
    """What a step may do too often, with its limit in the task and its words."""

    name: str
    limit: str
    title: str
    does: str
    noun: str
    impact: str
    remedy: str


COUNTED = (
    Kind(
        "host-reads",
        "host_reads",
        "Reads no value back to the host at each step",
        "reads a value back to the host",
        "reads back to the host",
        "An accelerator must have done all that it was asked for before a value can be read; until then nothing new is "
        "asked of it.",
        "Keep the tensor (`.detach()`), and read it once in a while, all values at once.",
    ),
    Kind(
        "synchronisations",
        "synchronisations",
        "Waits for no device at each step",
        "waits for the device",
        "waits for the device",
        "The device has nothing to do from then until it is asked for more.",
        "Take it out of the loop; to time a step, use events and wait once at the end.",
    ),
    Kind(
        "empty-cache",
        "empty_cache",
        "Empties no cache at each step",
        "empties the allocator's cache",
        "emptied caches",
        "The memory must be asked of the driver again, which waits for the device each time.",
        "Leave it out: the allocator reuses what is free.",
    ),
)
STALL = Kind(
    "stall",
    "stall_share",
    "Does not wait for batches",
    "waits for batches",
    "of the time spent waiting for batches",
    "The device has nothing to do until the batch is there.",
    "Make batches ahead, in processes of their own (`num_workers`, `prefetch_factor`), or make them cheaper.",
)


def _judged(kind: Kind, path: HotPath, seen: HotSeen) -> Iterator[Said]:
    """Yield what can be said of one kind, and for each line where several are at fault."""
    bad, device = next((run for run in seen.runs if not run.complete), None), seen.runs[0].device
    if bad is not None:
        yield unknown(f"{bad.problem} (after {len(bad.steps)} steps)", location=bad.crash)
    elif not seen.enough:
        yield unknown(_too_few(seen))
    elif path.on not in {"any", device}:
        yield unknown(f"its steps ran on {device or 'no device'}, and must be seen on {path.on}")
    elif kind is STALL:
        yield _stall(path, seen)
    else:
        yield from _counted(kind, path, seen)


def _counted(kind: Kind, path: HotPath, seen: HotSeen) -> Iterator[Said]:
    limit, steps, device = getattr(path.limits, kind.limit) or 0.0, len(seen.steps), seen.runs[0].device
    lines = [line for line in readings_of(seen.steps, kind.name) if line.read.counts_on(device)]
    total, often = at_each(seen.steps, kind.name), [line for line in lines if line.each]
    expected = f"at most {limit:g} {kind.noun} at each step"
    if total > limit:
        for line in often or lines:
            yield Said(
                Outcome.FAILED,
                f"{_each(line, kind, device)} ({total} at each step in all, over {steps} steps)",
                f"{total} at each step",
                location=line.read.location,
                expected=expected,
                impact=kind.impact,
                remediation=kind.remedy,
                subject=f"{line.where} ({line.read.call})",
            )
        return
    rare = "; ".join(f"{line.where} does on {line.often:.0%} of them" for line in lines[len(often) :][:3])
    here = device != "cpu" or kind.name == "host-reads"
    more = (rare, "" if here else "what is done only on an accelerator did not run here")
    told = "; ".join(filter(None, (f"{total} {kind.noun} at each of {steps} steps on {device}", *more)))
    yield Said(Outcome.PASSED, told, f"{total} at each step", expected=expected)


def _each(line: Reading, kind: Kind, device: str) -> str:
    often = f"{line.each} times " if line.each > 1 else ""
    when = f"{often}at each step" if line.each else f"at {line.often:.0%} of the steps"
    would = ", for which an accelerator would be waited for" if device == "cpu" and kind.name == "host-reads" else ""
    return f"{line.where} {kind.does} {when} (`{line.read.call}`){would}"


def _stall(path: HotPath, seen: HotSeen) -> Said:
    asked, share = path.limits.stall_share, seen.stall()
    limit = DEFAULT_STALL if asked is None else asked
    floor = f", beyond {FLOOR_S * 1000:g} ms a step that any loader may take" if seen.runs[0].device == "cpu" else ""
    told = f"{share} of the time of a step is spent waiting for batches{floor} ({share.n} steps)"
    said = Said(Outcome.PASSED, told, f"{share}", expected=f"at most {limit:.0%} {STALL.noun}")
    if share.low > limit:
        at = seen.line()
        gain = f"; without it a step would be at most {share.gain:.2f} times as fast" if share.gain else ""
        told = f"{told}; most of it at {at}{gain}"
        said = replace(said, outcome=Outcome.FAILED, message=told, location=at)
        return replace(said, impact=STALL.impact, remediation=STALL.remedy)
    if share.high > limit:
        remedy = "Ask for more 'steps', or measure on a machine with less else to do."
        return unknown(f"{told}, and the limit of {limit:.0%} lies in between", f"{share}", remedy=remedy)
    return said


def _too_few(seen: HotSeen) -> str:
    fewest = min(seen.runs, key=lambda run: len(run.measured))
    if not fewest.steps:
        return "no optimizer of torch stepped"
    needed = f"at least {LEAST} after the first {max(WARM_UP, len(fewest.steps) - len(fewest.measured))}"
    return f"it made {len(fewest.steps)} steps, and {needed} are needed"


def _bound(kind: Kind, path: HotPath) -> tuple[Level, bool]:
    """Return how binding a kind is: what the task sets no limit for is only advised."""
    limited = getattr(path.limits, kind.limit) is not None
    return path.level if limited else Level.ADVISORY, limited


def _page(seen: Sequence[tuple[HotPath, HotSeen, Said]], not_run: str) -> Iterator[Section]:
    """Tell how long steps are and wait, and which lines read what how often."""
    if not_run:
        yield Section(title="Hot path", text=not_run)
    for path, one, _ in seen:
        yield _section(path, one)


def _section(path: HotPath, seen: HotSeen) -> Section:
    if not seen.enough:
        return Section(title=f"Hot path: {path.name}", text="Too little was seen of it; see the findings.")
    runs = f" in {len(seen.runs)} processes" if len(seen.runs) > 1 else ""
    step = statistics.median(each.seconds for each in seen.steps)
    took = f"{step:.3g} s" if step >= 1 else f"{step * 1e3:.3g} ms"
    at = f", most of it at {line}" if (line := seen.line()) and seen.stall().value else ""
    lines = [line for kind in COUNTED for line in readings_of(seen.steps, kind.name)]
    reads = " By line, what it reads; what torch reads by itself is not counted." if lines else ""
    return Section(
        title=f"Hot path: {path.name}",
        text=f"{len(seen.steps)} steps{runs} of {took} (median) on {seen.runs[0].device}; the first ones are left out. "
        f"Waiting for batches takes {seen.stall()} of the time{at}.{reads}",
        columns=("At each step", "Share of steps", "Call", "Line", "Whose") if lines else (),
        rows=tuple(_read(line) for line in lines[:LONGEST]),
    )


def _read(line: Reading) -> tuple[str, ...]:
    whose = "torch's own" if line.read.of_torch else "the project's"
    return str(line.each), f"{line.often:.0%}", line.read.call, line.where, whose


def _aspect(kind: Kind) -> Aspect[HotPath, HotSeen]:
    def title(path: HotPath) -> str:
        return f"{kind.title}: {path.name}"

    return Aspect(title, kind.title.lower(), partial(_judged, kind), kind.name, partial(_bound, kind))


CHECK = ProbeCheck(
    name="hot_path",
    order=20,
    prefix="hot",
    rule=RULE,
    evidence=HotPaths,
    aspects=tuple(map(_aspect, (*COUNTED, STALL))),
    page=_page,
    doubt="not known what its steps wait for",
    remedy="Make the callable train steps to its end, with an optimizer of torch.",
    suffix=lambda _seen: "-1",
).check()
