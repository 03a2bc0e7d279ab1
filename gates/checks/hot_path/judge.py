"""The part of the performance gate on the hot path: what does a step of training wait for, and where does it read?"""

import statistics
from collections.abc import Iterator
from dataclasses import replace
from typing import TypedDict

from gates.check import Check, EvidenceSet, Said
from gates.checks.hot_path.collect import (
    FLOOR_S,
    LEAST,
    WARM_UP,
    HotPaths,
    HotSeen,
    Reading,
    at_each,
    counts,
    readings_of,
)
from gates.evidence._probes import checks, findings, unknown
from gates.model import Finding, Level, Location, Outcome, Planned, Row, RuleText
from gates.report import Section
from gates.task.probes import HotPath
from gates.task.task import Task

COUNTED = ("host-reads", "synchronisations", "empty-cache")
LONGEST = 20


def section(path: HotPath, seen: HotSeen) -> Section:
    """Return how long the steps of a hot path were and waited, and its reads, where there are any."""
    if not seen.enough:
        return Section(title=f"Hot path: {path.name}", text="Too little was seen of it; see the findings.")
    runs = f" in {len(seen.runs)} processes" if len(seen.runs) > 1 else ""
    step = _time(statistics.median(each.seconds for each in seen.steps))
    at = f", most of it at {line}" if (line := seen.line()) and seen.stall().value else ""
    lines = [line for aspect in COUNTED for line in readings_of(seen.steps, aspect)]
    reads = " By line, what it reads; what torch reads by itself is not counted." if lines else ""
    return Section(
        title=f"Hot path: {path.name}",
        text=f"{len(seen.steps)} steps{runs} of {step} (median) on {seen.runs[0].device}; the first ones are left out. "
        f"Waiting for batches takes {seen.stall()} of the time{at}.{reads}",
        columns=("Line", "Call", "At each step", "On so many steps", "Whose") if lines else (),
        rows=tuple(_read(line) for line in lines[:LONGEST]),
    )


def _read(line: Reading) -> tuple[str, ...]:
    whose = "torch's own" if line.read.of_torch else "the project's"
    return line.where, line.read.call, str(line.each), f"{line.often:.0%}", whose


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


RULES = (
    RuleText(
        id="PF005",
        title="No avoidable host syncs",
        meaning="It fails where the median step reads back, synchronises or empties the cache more than "
        "allowed. It also fails where it waits too long for batches.",
    ),
)
ASPECTS = (*COUNTED, "stall")
TITLES = {
    "host-reads": "Reads no value back to the host at each step",
    "synchronisations": "Waits for no device at each step",
    "empty-cache": "Empties no cache at each step",
    "stall": "Does not wait for batches",
}
DOES = {"host-reads": "reads a value back to the host", "synchronisations": "waits for the device",
        "empty-cache": "empties the allocator's cache"}  # fmt: skip
NOUNS = {"host-reads": "reads back to the host", "synchronisations": "waits for the device",
         "empty-cache": "emptied caches", "stall": "of the time spent waiting for batches"}  # fmt: skip
IMPACT = {
    "host-reads": "An accelerator must have done all that it was asked for before a value can be read; until then "
    "nothing new is asked of it.",
    "synchronisations": "The device has nothing to do from then until it is asked for more.",
    "empty-cache": "The memory must be asked of the driver again, which waits for the device each time.",
    "stall": "The device has nothing to do until the batch is there.",
}
REMEDIES = {
    "host-reads": "Keep the tensor (`.detach()`), and read it once in a while, all values at once.",
    "synchronisations": "Take it out of the loop; to time a step, use events and wait once at the end.",
    "empty-cache": "Leave it out: the allocator reuses what is free.",
    "stall": "Make batches ahead, in processes of their own (`num_workers`, `prefetch_factor`), or make them cheaper.",
}
DEFAULT_STALL = 0.1


def plan(task: Task) -> Iterator[Planned]:
    """Plan what is limited, or else advised, for each hot path, and for each criterion that it stands for."""
    for i, path in enumerate(task.hot_paths):
        for aspect in ASPECTS:
            title, of_criterion = f"{TITLES[aspect]}: {path.name}", TITLES[aspect].lower()
            yield from checks(task, path, f"hot:{i}:{aspect}", title, of_criterion, **_bound(path, aspect))


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge each aspect of each hot path by its limit."""
    paths = evidence.get(HotPaths)
    for i, path in enumerate(task.hot_paths):
        seen = paths.of(i) if paths else None
        why = "" if seen else f"it was not run: {evidence.why_missing(HotPaths)}"
        for aspect in ASPECTS:
            all_said = list(_said(path, seen, aspect)) if seen else [_unknown(why)]
            raw, check = f"hot_paths/{i}-1.jsonl" if seen else None, f"hot:{i}:{aspect}"
            for said in all_said:
                yield from findings(task, path, said, rule="PF005", check=check, raw=raw, **_bound(path, aspect))


def _said(path: HotPath, seen: HotSeen, aspect: str) -> Iterator[Said]:
    """Yield what can be said of one aspect, and for each line where several are at fault."""
    bad = next((run for run in seen.runs if not run.complete), None)
    device = seen.runs[0].device
    if bad is not None:
        yield _unknown(f"{bad.problem} (after {len(bad.steps)} steps)", location=bad.crash)
    elif not seen.enough:
        yield _unknown(_too_few(seen))
    elif path.on not in {"any", device}:
        yield _unknown(f"its steps ran on {device or 'no device'}, and must be seen on {path.on}")
    elif aspect == "stall":
        yield _stall(path, seen)
    else:
        yield from _counted(path, seen, aspect)


def _counted(path: HotPath, seen: HotSeen, aspect: str) -> Iterator[Said]:
    limit, steps = _limit(path, aspect), seen.steps
    total, lines = at_each(steps, aspect), _lines(seen, aspect)
    often = [line for line in lines if line.each] or lines
    now_and_then = [line for line in lines if not line.each]
    expected = f"at most {limit:g} {NOUNS[aspect]} at each step"
    if total > limit:
        for line in often:
            said = _each(line, aspect, seen.runs[0].device)
            yield Said(
                Outcome.FAILED, f"{said} ({total} at each step in all, over {len(steps)} steps)",
                f"{total} at each step", location=line.read.location, expected=expected, impact=IMPACT[aspect],
                remediation=REMEDIES[aspect], subject=f"{line.where} ({line.read.call})",
            )  # fmt: skip
        return
    rare = "; ".join(f"{line.where} does on {line.often:.0%} of them" for line in now_and_then[:3])
    yield Said(
        Outcome.PASSED, f"{total} {NOUNS[aspect]} at each of {len(steps)} steps on {seen.runs[0].device}"
        f"{f'; {rare}' if rare else ''}{_not_here(seen.runs[0].device, aspect)}",
        f"{total} at each step", expected=expected,
    )  # fmt: skip


def _each(line: Reading, aspect: str, device: str) -> str:
    often = f"{line.each} times " if line.each > 1 else ""
    when = f"{often}at each step" if line.each else f"at {line.often:.0%} of the steps"
    would = ", for which an accelerator would be waited for" if device == "cpu" and aspect == "host-reads" else ""
    return f"{line.where} {DOES[aspect]} {when} (`{line.read.call}`){would}"


def _not_here(device: str, aspect: str) -> str:
    """Return what a run on the CPU leaves open."""
    only = device == "cpu" and aspect in {"synchronisations", "empty-cache"}
    return "; what is done only on an accelerator did not run here" if only else ""


def _stall(path: HotPath, seen: HotSeen) -> Said:
    limit, share = _limit(path, "stall"), seen.stall()
    floor = f", beyond {FLOOR_S * 1000:g} ms a step that any loader may take" if seen.runs[0].device == "cpu" else ""
    told = f"{share} of the time of a step is spent waiting for batches{floor} ({share.n} steps)"
    said = Said(Outcome.PASSED, told, f"{share}", expected=f"at most {limit:.0%} {NOUNS['stall']}")
    if share.low > limit:
        gain = f"; without it a step would be at most {share.gain:.2f} times as fast" if share.gain else ""
        return replace(
            said, outcome=Outcome.FAILED, message=f"{told}; most of it at {seen.line()}{gain}", impact=IMPACT["stall"],
            location=seen.line(), remediation=REMEDIES["stall"],
        )  # fmt: skip
    if share.high > limit:
        return replace(
            said, outcome=Outcome.UNKNOWN, message=f"Not decided: {told}, and the limit lies in between.",
            remediation="Ask for more 'steps', or measure on a machine with less else to do.",
        )  # fmt: skip
    return said


def _lines(seen: HotSeen, aspect: str) -> list[Reading]:
    device = seen.runs[0].device
    step = seen.steps[0].model_copy(update={"device": device})
    return [line for line in readings_of(seen.steps, aspect) if counts(line.read, step)]


def _unknown(why: str, location: Location | None = None) -> Said:
    return unknown(
        f"Not known what its steps wait for: {why}."[:600],
        actual="not run" if why.startswith("it was not run") else "not seen",
        location=location,
        remedy="Make the callable train steps to its end, with an optimizer of torch.",
    )


def _too_few(seen: HotSeen) -> str:
    fewest = min(seen.runs, key=lambda run: len(run.measured))
    if not fewest.steps:
        return "no optimizer of torch stepped"
    needed = f"at least {LEAST} after the first {max(WARM_UP, len(fewest.steps) - len(fewest.measured))}"
    return f"it made {len(fewest.steps)} steps, and {needed} are needed"


def _limit(path: HotPath, aspect: str) -> float:
    limits = path.limits
    asked = {"host-reads": limits.host_reads, "synchronisations": limits.synchronisations,
             "empty-cache": limits.empty_cache, "stall": limits.stall_share}[aspect]  # fmt: skip
    return asked if asked is not None else DEFAULT_STALL if aspect == "stall" else 0.0


class _Bound(TypedDict):
    level: Level
    binds: bool


def _bound(path: HotPath, aspect: str) -> _Bound:
    """Return how binding an aspect is: what the task sets no limit for is only advised."""
    limited = getattr(path.limits, {"stall": "stall_share"}.get(aspect, aspect.replace("-", "_"))) is not None
    return {"level": path.level if limited else Level.ADVISORY, "binds": limited}


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell how long steps are and wait, and which lines read what how often."""
    paths = evidence.get(HotPaths)
    if not task.hot_paths:
        return
    if paths is None:
        yield Section(title="Hot path", text=f"Not run: {evidence.why_missing(HotPaths)}.")
        return
    for i, path in enumerate(task.hot_paths):
        seen = paths.of(i)
        if seen is not None:
            yield section(path, seen)


CHECK = Check(
    name="hot_path",
    gate="performance",
    order=20,
    rules=RULES,
    uses=(HotPaths,),
    plan=plan,
    judge=judge,
    page=describe,
    row=Row.MEASURE,
)
